"""Jobs and queues: what waits, what failed and why, and acts on them."""

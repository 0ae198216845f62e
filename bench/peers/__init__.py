"""The drivers of the peers. They run in `.peers/`, never in our environment."""

"""Queues: what enters them, and which comes next."""

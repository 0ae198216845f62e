"""Queues: what enters them, and what comes next."""

"""Queues: their envelopes, and the choice of the next message."""

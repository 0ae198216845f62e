"""Verbs of arrivals: acceptance, the queues of messages, connectors and what is asked of them."""

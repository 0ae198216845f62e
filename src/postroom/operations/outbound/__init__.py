"""Outgoing mail: tenants, senders, destinations, the queue and its figures."""

"""Verbs of outgoing mail: tenants, senders, destinations, turns, delivery and its results."""

"""Verbs of accounts, their secrets, and requests to their mailboxes."""

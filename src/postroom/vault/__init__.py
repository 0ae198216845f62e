"""Encryption of stored secrets, and the keys for it."""

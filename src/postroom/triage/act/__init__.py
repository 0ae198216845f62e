"""Carry out decided actions in a mailbox."""

"""Carries out what was decided, through a mailbox."""

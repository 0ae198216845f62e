"""Verbs of people, their sessions, tokens, and the audit log."""

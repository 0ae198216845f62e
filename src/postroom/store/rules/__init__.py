"""Verbs of rules, proposals and guidance, and of how their decisions were received."""

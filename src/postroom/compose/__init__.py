"""Puts the parts together: each can be started and stopped alone."""

"""Verbs of decisions and actions: approvals, undo, limits on automation, calls of the model."""

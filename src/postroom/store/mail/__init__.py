"""Verbs of stored mail: messages, threads, labels and contacts, lists of them, and search."""

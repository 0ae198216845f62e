"""Verbs of the database as a whole: its health, its history, restores, and counts by hour."""

"""Stored mail: lists, one message, its story, and actions on it."""

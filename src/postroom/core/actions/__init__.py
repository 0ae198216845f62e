"""Actions: what can be done to a message, when it may be, and how it is undone."""

"""Actions: what can be done to a message, when that is allowed, and how it is undone."""

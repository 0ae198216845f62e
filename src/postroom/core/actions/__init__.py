"""Actions on a message, when they are allowed, and their undo."""

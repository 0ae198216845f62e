"""The HTTP application: its doors, what guards them, and what it answers."""

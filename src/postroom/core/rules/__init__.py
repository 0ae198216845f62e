"""Rules: their conditions, where they come from, and how they decide."""

"""Rules: what they say, where they come from, and what they decide."""

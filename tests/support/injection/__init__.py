"""A corpus of hostile mail, and what must never come of it."""

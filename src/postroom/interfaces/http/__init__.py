"""The HTTP application: its endpoints, and the checks that every request must pass."""

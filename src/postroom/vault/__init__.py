"""Secrets at rest, and the keys that seal them."""

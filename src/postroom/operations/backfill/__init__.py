"""Backfills: estimate, begin and follow them, and the work that connectors do for them."""

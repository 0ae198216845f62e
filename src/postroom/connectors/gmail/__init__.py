"""The Gmail connector: fetches, assigns the tier, and hands in."""

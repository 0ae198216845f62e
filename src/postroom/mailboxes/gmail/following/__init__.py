"""The Gmail connector: fetches mail, assigns the tier, and ingests it."""

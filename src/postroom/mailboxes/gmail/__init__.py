"""A client of Google's Gmail API; knows nothing of ours but the core."""

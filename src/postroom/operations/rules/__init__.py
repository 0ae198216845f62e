"""Rules: written, tried, imported, proposed, simulated; and guidance for the model."""

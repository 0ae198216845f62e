"""Decides what to do with a message: rules first, then the model."""

"""Compose the parts from the settings; each can be started and stopped alone."""

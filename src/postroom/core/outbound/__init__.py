"""Decisions about outgoing mail: turns, throttles, and the meaning of replies."""

"""Postroom stands between a mailbox and everything that wants its owner's attention."""

__version__ = "0.1.0"

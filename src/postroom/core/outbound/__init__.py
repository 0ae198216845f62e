"""Decisions about outgoing mail: whose turn it is, who is throttled, what a reply means."""

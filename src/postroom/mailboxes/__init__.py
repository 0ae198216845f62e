"""Connectors: sources of mail and events. Each knows its source, a switchboard client and its own folder."""

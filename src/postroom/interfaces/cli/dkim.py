"""`postroom dkim`: the keys that sign outgoing mail of a domain."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "Make keys that sign outgoing mail of a domain; list or remove them."
app = group_of(SUMMARY, "dkim", "outbound.destinations")

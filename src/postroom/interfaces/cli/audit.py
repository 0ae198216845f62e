"""`postroom audit`: what was done, and by whom."""

from postroom.interfaces.cli.table import group_of

app = group_of("Show the audit log.", "audit", "people.audit")

"""`postroom tenant`: those on whose account mail is sent, with their domains and weights."""

from postroom.interfaces.cli.table import group_of

app = group_of("Add tenants, list them, pause and resume them, set their weights.", "tenant", "outbound.tenants")

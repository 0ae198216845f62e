"""`postroom token`: create, list and revoke tokens."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "Create, list and revoke tokens for connectors, pages, agents and senders."
app = group_of(SUMMARY, "token", "people.tokens")

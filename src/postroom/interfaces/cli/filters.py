"""`postroom filters`: ingestion rules, which say how much of a message is stored."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "List the filters (ingestion rules) that say how much of a message is stored; add or remove some."
app = group_of(SUMMARY, "filters", "connectors.filters")

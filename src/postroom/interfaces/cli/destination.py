"""`postroom destination`: where outgoing mail goes, and where it waits."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "Pause and resume destinations of outgoing mail; list those that are paused."
app = group_of(SUMMARY, "destination", "outbound.destinations")

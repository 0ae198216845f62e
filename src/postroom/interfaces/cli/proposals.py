"""`postroom proposals`: rules that Postroom proposes from what you do by hand. You decide."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "List rules that Postroom proposes from what you do by hand; accept or dismiss them."
app = group_of(SUMMARY, "proposals", "rules.proposals")

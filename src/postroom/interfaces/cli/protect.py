"""`postroom protect`: senders, domains and labels whose mail no rule, model or agent ever changes."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "Protect senders, domains and labels: their mail is never changed."
app = group_of(SUMMARY, "protect", "actions.protection")

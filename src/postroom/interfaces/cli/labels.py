"""`postroom labels`: the labels of the mailboxes, their purpose, and whether the classifier may use them."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "List labels; describe what they are for, and allow or deny them to the classifier."
app = group_of(SUMMARY, "labels", "accounts.labels")

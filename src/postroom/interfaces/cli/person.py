"""`postroom person`: the people who may sign in to the pages."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "Add people who may sign in to the pages; change their roles, help them in, sign them out."
app = group_of(SUMMARY, "person", "people.people")

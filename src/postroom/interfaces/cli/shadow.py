"""`postroom shadow`: rules, categories and the model deciding without acting, and how well they do."""

from postroom.interfaces.cli.table import group_of

SUMMARY = "Let rules, categories of mail or the model decide without acting, and compare with what you do."
app = group_of(SUMMARY, "shadow", "rules.shadow")

"""`postroom model-rules`: rules in words, given to the model with the mail they apply to."""

from postroom.interfaces.cli.table import group_of

app = group_of("Give the model rules in words; list or change them.", "model-rules", "rules.guidance")

"""`postroom directions`: general instructions for the model."""

from postroom.interfaces.cli.table import group_of

app = group_of("Give the model general instructions; list or change them.", "directions", "rules.guidance")

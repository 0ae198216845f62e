"""`postroom reclassify`: decide again about messages, with today's rules and model."""

from postroom.interfaces.cli.table import command_of

app = command_of("reclassify", "mail.reclassify")

"""`postroom pause`: change nothing in any mailbox until `postroom resume`."""

from postroom.interfaces.cli.table import command_of

app = command_of("pause", "actions.kill_switch")

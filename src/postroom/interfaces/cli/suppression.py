"""`postroom suppression`: addresses that get no more mail of a tenant."""

from postroom.interfaces.cli.table import group_of

app = group_of("List addresses that get no more mail; add or remove some.", "suppression", "outbound.suppressions")

"""The channel on which changes of outgoing mail, and of who may send it, are told."""

CHANNEL = "outbound"

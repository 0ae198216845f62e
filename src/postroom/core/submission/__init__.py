"""Submitted mail: the commands, the message and the limits on logins, decided without the network."""

"""Where events come from besides mailboxes, and the client of the switchboard that all sources use."""

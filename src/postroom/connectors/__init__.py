"""Where mail and events come from. A connector knows its source, a switchboard client and its own folder."""

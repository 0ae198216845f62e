"""What people may do and ask: every command, page and tool calls this, and decides nothing itself."""

"""The MCP tools, by family."""

"""Takes mail from senders: over SMTP, HTTP and MCP, with the same checks for all of them."""

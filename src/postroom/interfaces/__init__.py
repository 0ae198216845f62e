"""How people and programs reach Postroom: the command line, the pages, and HTTP with the JSON API and MCP."""

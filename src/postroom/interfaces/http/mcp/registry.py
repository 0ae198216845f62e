"""All tools over MCP, in the order of the table of operations."""

from postroom.core.roles import Principal
from postroom.interfaces.http.mcp.operation import McpTool
from postroom.operations.registry import operations

ALL_TOOLS = tuple(McpTool(each, each.tool) for each in operations() if each.tool)
TOOLS_BY_NAME = {tool.name: tool for tool in ALL_TOOLS}


def tools_of(principal: Principal) -> tuple[McpTool, ...]:
    """The tools that exist for the caller."""
    return tuple(tool for tool in ALL_TOOLS if tool.exists_for(principal))

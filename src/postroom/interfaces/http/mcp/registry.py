"""All tools, in the order in which they are listed. A new family adds its tuple here."""

from postroom.core.roles import Principal
from postroom.interfaces.http.mcp import (
    backfill,
    backfill_estimate,
)
from postroom.interfaces.http.mcp.operation import McpTool
from postroom.interfaces.http.mcp.tool import Tool
from postroom.operations.registry import operations

MADE_TOOLS = {each.tool.name: McpTool(each, each.tool) for each in operations() if each.tool}
ALL_TOOLS: tuple[Tool | McpTool, ...] = (
    *backfill.TOOLS,
    *backfill_estimate.TOOLS,
    *MADE_TOOLS.values(),
)
TOOLS_BY_NAME = {tool.name: tool for tool in ALL_TOOLS}


def tools_of(principal: Principal) -> tuple[Tool | McpTool, ...]:
    """The tools that exist for the caller."""
    return tuple(tool for tool in ALL_TOOLS if tool.exists_for(principal))

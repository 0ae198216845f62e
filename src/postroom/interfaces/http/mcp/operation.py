"""The tools over MCP, made from the table of operations."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from postroom.core.roles import Principal, Role
from postroom.interfaces.argument_forms import Arguments, form_of_arguments, read_arguments, values_of
from postroom.interfaces.http.answers import form_of, json_of
from postroom.operations.caller import Caller
from postroom.operations.operation import Hints, Operation, Tool
from postroom.operations.parts import Parts
from postroom.operations.running import run_operation


@dataclass(frozen=True)
class McpTool:
    """An operation as a tool."""

    operation: Operation
    tool: Tool

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def title(self) -> str:
        return self.tool.title

    @property
    def hints(self) -> Hints:
        return self.tool.hints

    @property
    def description(self) -> str:
        return self.operation.description

    @property
    def roles(self) -> frozenset[Role]:
        return self.operation.tokens

    @property
    def across_accounts(self) -> bool:
        return self.tool.across_accounts

    def exists_for(self, principal: Principal) -> bool:
        return self.operation.exists_for(principal)

    @cached_property
    def arguments(self) -> type[Arguments]:
        """The form of its arguments."""
        return form_of_arguments(self.operation.id, self.operation.arguments)

    @property
    def answer(self) -> type[Any]:
        """The form of its answer."""
        return form_of(self.operation.answer)

    async def run(self, parts: Parts, by: Caller, given: Mapping[str, Any] | None) -> Any:
        """Run it, and return its answer as JSON."""
        return json_of(self.operation.answer, await run_operation(self.operation, parts, by, self.values(given)))

    def values(self, given: Mapping[str, Any] | None, name: str | None = None) -> dict[str, Any]:
        """Read its arguments. Errors name the tool, or what else it is called here."""
        return values_of(self.operation, read_arguments(name or self.name, self.arguments, given))

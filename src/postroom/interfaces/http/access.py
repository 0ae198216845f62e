"""Access of programs to tools."""

from typing import Protocol

from postroom.core.errors import AccessRefused
from postroom.core.roles import Principal, Role


class _Tool(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def roles(self) -> frozenset[Role]: ...

    def exists_for(self, principal: Principal) -> bool: ...


def require_role(principal: Principal, tool: _Tool) -> None:
    if principal.role not in tool.roles:
        names = " or ".join(sorted(tool.roles))
        raise AccessRefused(
            "token", f"the role {principal.role} may not call {tool.name}", f"use a token of the role {names}", "role"
        )
    if not tool.exists_for(principal):
        raise AccessRefused(
            "token",
            f"an agent that is bound to an account has no queues, and may not call {tool.name}",
            "use the token of an agent that was created without --account",
            "role",
        )

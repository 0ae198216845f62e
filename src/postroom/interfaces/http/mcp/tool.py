"""The parts that every family of tools shares: how a tool is declared, its arguments, and the call that it answers."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Set
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, get_type_hints

from postroom.core.audited_actions import AuditedAction
from postroom.core.errors import Refused
from postroom.core.roles import Principal, Role
from postroom.interfaces.argument_forms import Arguments, Text
from postroom.interfaces.http.services import Services
from postroom.operations.operation import ADDS, ADDS_ONCE, ENDS, READS, Hints
from postroom.operations.people.audit import signature
from postroom.store.people.audit import Signature, record_audit
from postroom.triage.act.agents import Agents

__all__ = ["ADDS", "ADDS_ONCE", "ENDS", "READS", "Arguments", "Hints", "Text"]
MOST_IN_BATCH = 100
MOST_LISTED = 50
LONGEST_WAIT_S = 60


class NoArguments(Arguments):
    """The arguments of tools that take none."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the caller, and awaitables that end when nobody waits for the answer any more."""

    services: Services
    principal: Principal
    ends: tuple[Callable[[], Awaitable[object]], ...] = ()

    @property
    def agents(self) -> Agents:
        """The service that acts for agents. Raises Refused where there is none."""
        if self.services.agents is None:
            raise Refused("this server only ingests mail; it does not act on it")
        return self.services.agents

    def signed(self, reason: str | None = None) -> Signature:
        return signature(self.principal.actor, self.principal.role, reason)

    async def audit(
        self, action: AuditedAction, object_type: str, object_id: str, after: Mapping[str, Any] | None
    ) -> None:
        entry = self.signed().under(action, object_type, object_id, after=after)
        await self.services.database.run(record_audit(entry, self.services.clock()))

    async def audit_read(self, action: AuditedAction, object_type: str, object_id: str, **after: object) -> None:
        """Audit what was read. Repeated reads are written once a minute, with their number."""
        what = (self.principal.actor, action, object_id, str(after.get("level", "")))
        repeated = self.services.looks.since_last(what, self.services.clock())
        if repeated is not None:
            details = {**after, "repeated": repeated} if repeated else after
            await self.audit(action, object_type, object_id, details or None)

    @contextlib.asynccontextmanager
    async def caller_left(self, wait: timedelta) -> AsyncGenerator[asyncio.Event]:
        """An event that is set when nobody waits for the answer to this long poll any more."""
        left = asyncio.Event()
        leaving = [asyncio.create_task(_set_when(end, left)) for end in self.ends] if wait else []
        try:
            yield left
        finally:
            for task in leaving:
                task.cancel()


async def _set_when(end: Callable[[], Awaitable[object]], left: asyncio.Event) -> None:
    await end()
    left.set()


Run = Callable[[Call, Any], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. The types of its function are those of its arguments and its answer.

    A tool does not exist for a role that is not listed. `across_accounts` tools show the events of every account: they
    do not exist for an agent that is bound to one.
    """

    name: str
    title: str
    description: str
    hints: Hints
    roles: frozenset[Role]
    across_accounts: bool
    run: Run

    def exists_for(self, principal: Principal) -> bool:
        return principal.role in self.roles and not (self.across_accounts and principal.is_bound_agent)

    @property
    def arguments(self) -> type[Arguments]:
        return _types(self.run)["arguments"]

    @property
    def answer(self) -> type[Any]:
        return _types(self.run)["return"]


def tool(
    name: str, title: str, hints: Hints, *, roles: Set[Role], across_accounts: bool = False
) -> Callable[[Run], Tool]:
    """Declare the decorated function as a tool for these roles. Its docstring is the description that callers read."""

    def declared(run: Run) -> Tool:
        description = " ".join((run.__doc__ or "").split())
        return Tool(name, title, description, hints, frozenset(roles), across_accounts, run)

    return declared


@cache
def _types(run: Run) -> dict[str, type[Any]]:
    return get_type_hints(run)

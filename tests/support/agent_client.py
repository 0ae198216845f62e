"""An agent or an operator: the mcp package's own client for the tools of the switchboard."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

from mcp.client import Client

from postroom.core.actions.safety import Policy
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import AuditView, list_audit
from support.mail import keep_mail
from support.switchboard import services_on

AGENT = Principal(Role.AGENT, token_id=new_id())
ADMIN = Principal(Role.ADMIN, token_id=new_id())


def trusting(services: Services) -> Services:
    """The same, where the user trusts agents with what can be undone."""
    return services_on(services.database, services.clock, policy=Policy(trust_agents=True))


@contextlib.asynccontextmanager
async def client_of(services: Services, principal: Principal = AGENT) -> AsyncGenerator[Client]:
    async with Client(build_server(services, principal)) as client:
        yield client


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.structured_content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return result.structured_content


async def stored(services: Services, number: object = 1, **parts: Any) -> UUID:
    return await keep_mail(services.database, services.clock, number, **parts)


async def audited(services: Services, action: str | None = None) -> list[AuditView]:
    return await services.database.run(list_audit(1000, action=action))

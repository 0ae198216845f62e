"""The switchboard with everything behind it, served over real HTTP, with tokens for tests."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from datetime import datetime
from typing import Any
from uuid import UUID

import httpx2
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette

from postroom.core.actions.safety import Policy
from postroom.core.jobs.types import CATALOGUE
from postroom.core.queue.queues import Queues
from postroom.core.roles import Role
from postroom.core.tally import Tally
from postroom.intake.buffer import Buffer
from postroom.intake.disk import DiskReserve
from postroom.intake.intake import Intake
from postroom.interfaces.http.services import Services
from postroom.interfaces.http.switchboard import McpEndpoint, running_mcp, switchboard_routes
from postroom.interfaces.http.token_check import TokenCheck
from postroom.mailboxes.gmail.credentials import AccessTokens
from postroom.outbound.submission.submissions import SubmissionOptions, Submissions
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.store.people.audit import AuditView, Signature, list_audit
from postroom.store.people.tokens import create_token, mint
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents
from support.patience import PATIENCE_S

OWNER = "ada@example.com"
HOSTS = ("127.0.0.1", "localhost", "[::1]")


def services_on(
    database: Database,
    clock: Callable[[], datetime],
    *,
    reserve: DiskReserve | None = None,
    poll_s: float = 60,
    credentials: AccessTokens | None = None,
    policy: Policy | None = None,
    settings: Settings | None = None,
) -> Services:
    """The services. Whoever waits is woken by signals; polls are too rare to help a test."""
    queues, tally = Queues(), Tally()
    return Services(
        settings=settings or Settings.model_validate({}),
        intake=Intake(database, reserve, clock, queues=queues, tally=tally),
        buffer=Buffer(database, queues, clock, tally=tally, poll_s=poll_s),
        database=database,
        queues=queues,
        token_check=TokenCheck(database, clock),
        tally=tally,
        clock=clock,
        credentials=credentials,
        agents=Agents(ActionRequests(database, CATALOGUE, policy or Policy(), clock)),
        submissions=Submissions(database, SubmissionOptions("mail.example"), tally=tally, clock=clock),
    )


async def open_account(services: Services, email: str = OWNER) -> None:
    """An account, without which no mail would be accepted for it; that of `mail` unless another is named."""
    await services.database.run(keep_account(new_id(), "gmail", f"gmail:user:{email}", email, services.clock()))


class Served:
    """A switchboard that answers at `address`."""

    def __init__(self, services: Services, address: str, mcp: McpEndpoint) -> None:
        self.services = services
        self.address = address
        self.mcp = mcp

    async def token(
        self,
        role: str,
        identity: str | None = None,
        expires_at: datetime | None = None,
        account_id: UUID | None = None,
        sender_id: int | None = None,
    ) -> str:
        minted = mint(Role(role), identity, expires_at=expires_at, account_id=account_id, sender_id=sender_id)
        signed = Signature(new_id(), "test", "admin")
        await self.services.database.run(create_token(minted.token, signed, self.services.clock()))
        return minted.text

    @contextlib.asynccontextmanager
    async def client(self, token: str, mode: str = "auto") -> AsyncGenerator[Client]:
        """A real client of the mcp package."""
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
            Client(streamable_http_client(f"{self.address}/mcp", http_client=http), mode=mode) as client,
        ):
            yield client

    async def audit(self) -> list[AuditView]:
        """What was refused, the newest first."""
        return await self.services.database.run(list_audit(1000, action="access.refused"))


@contextlib.asynccontextmanager
async def served(services: Services, port: int = 0) -> AsyncGenerator[Served]:
    """In a task of its own, since fixtures are torn down by another task than the one that set them up."""
    up: asyncio.Future[Served] = asyncio.get_running_loop().create_future()
    down = asyncio.Event()
    running = asyncio.create_task(_serve(services, port, up, down))
    try:
        await asyncio.wait((up, running), return_when=asyncio.FIRST_COMPLETED)
        if not up.done():
            running.result()
        yield await up
    finally:
        down.set()
        await running


async def _serve(services: Services, port: int, up: asyncio.Future[Served], down: asyncio.Event) -> None:
    await open_account(services)
    async with running_mcp(services, HOSTS) as mcp:
        listener = socket.create_server(("127.0.0.1", port))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        app = Starlette(routes=switchboard_routes(services, mcp))
        # Clients close idle connections first: a server that does so breaks a request that is just being sent.
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_keep_alive=240)
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            await server.ready.wait()
            up.set_result(Served(services, f"http://127.0.0.1:{listener.getsockname()[1]}", mcp))
            await down.wait()
        finally:
            mcp.stop_waiting()
            server.stopping.set()
            await serving
            listener.close()
            await services.token_check.close()


class _Server(uvicorn.Server):
    """Says when it is up, and stops when it is told to and not at its next look at the clock."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self.stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.stopping.wait()


def mail(number: int | str = 1, **parts: dict[str, Any]) -> dict[str, Any]:
    """A message for the queue `email`."""
    source = {"channel": "email", "provider": "gmail", "endpoint_identity": f"gmail:user:{OWNER}"}
    return envelope(number, **{"source": source, **parts})


def envelope(number: int | str = 1, **parts: dict[str, Any]) -> dict[str, Any]:
    """An event for the queue `gateway`; `parts` are laid over its parts."""
    whole: dict[str, Any] = {
        "schema_version": "ingest.v1",
        "source": {"channel": "webhook", "provider": "webhook", "endpoint_identity": "webhook:ci"},
        "event": {
            "external_event_id": f"event-{number}",
            "observed_at": "2026-11-15T08:00:00Z",
            "kind": "deploy.done",
        },
        "sender": {"identity": "ci@example.com"},
        "payload": {"raw": {"number": str(number)}, "normalized_text": f"deploy {number} is done"},
    }
    for name, part in parts.items():
        whole[name] = {**whole.get(name, {}), **part}
    return whole

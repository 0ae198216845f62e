"""The programs and customers of the demo: they get tokens, tenants and a server to send to, and then use Postroom over
HTTP like any others.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import httpx2
import structlog

from postroom.core.errors import BadInput, PostroomError
from postroom.core.queue.queues import GATEWAY
from postroom.operations.caller import Caller
from postroom.operations.outbound.senders import WantedSender, add_sender
from postroom.operations.people.audit import signature
from postroom.operations.people.tokens import TokenRole, make_token
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom.store.people.audit import Signature
from postroom_sandbox.town import (
    CUSTOMERS,
    ENDPOINT,
    FLOODER,
    Customer,
    Post,
    flood,
    mail_exchange,
    send_events,
    submit_mail,
)

log = structlog.get_logger()

LIFETIME = timedelta(days=1)
DEMO = "demo"
SCORING_S = 5.0
"""In a demo, a sender that sends too much is noticed within seconds."""
PROTOCOL = "2025-11-25"
READER = "household helper"
READS_EVERY_S = 20.0
MOST_READ = 100
TellStory = Callable[["Town", httpx2.AsyncClient], Awaitable[None]]
"""Told once, by the programs and customers of the town."""


@contextlib.asynccontextmanager
async def mail_goes_nowhere(settings: Settings) -> AsyncGenerator[Settings]:
    """Yield settings under which all outgoing mail goes to a server in this process, whatever else they say."""
    async with mail_exchange() as server:
        delivery = settings.delivery.model_copy(
            update={
                "smart_host": server.host,
                "smart_host_port": server.port,
                "smart_host_tls": "opportunistic",
                "smart_host_username": None,
                "smart_host_password": None,
            }
        )
        outbound = settings.outbound.model_copy(update={"scoring_s": SCORING_S})
        yield settings.model_copy(update={"delivery": delivery, "outbound": outbound})


class Town:
    """Starts when the address is known, and ends with its `async with` block."""

    def __init__(self, database: Database, seed: int, story: TellStory) -> None:
        self._database = database
        self._story = story
        self._rng = Random(seed)  # noqa: S311 - a sample, not a secret
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Town":
        return self

    async def __aexit__(self, *_error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def starting(self, ready: Callable[[str], None]) -> Callable[[str], None]:
        """Return `ready` with the start of the town before it."""

        def start(address: str) -> None:
            if not self._tasks:
                self._tasks.append(asyncio.create_task(self._live(address)))
            ready(address)

        return start

    async def _live(self, address: str) -> None:
        events = await self._token("connector", identity=ENDPOINT, name="programs of the house")
        senders = {each.username: await self._sender_token(each) for each in CUSTOMERS}
        async with httpx2.AsyncClient(base_url=address, timeout=30) as http, asyncio.TaskGroup() as tasks:
            tasks.create_task(send_events(_posting(http), events, self._rng))
            tasks.create_task(read_events(Agent(http, await self.agent_token(READER))))
            tasks.create_task(submit_mail(_posting(http), senders, self._rng))
            tasks.create_task(self._tell(http))

    async def _tell(self, http: httpx2.AsyncClient) -> None:
        try:
            await self._story(self, http)
        except* (PostroomError, httpx2.HTTPError) as errors:
            log.warning("demo.story_ended_early", errors=[str(each) for each in errors.exceptions])

    async def flood(self, http: httpx2.AsyncClient) -> None:
        """Let one more customer send hundreds of mails at once."""
        await flood(_posting(http), await self._sender_token(FLOODER), self._rng)

    async def agent_token(self, name: str) -> str:
        return await self._token("agent", name=name)

    async def _sender_token(self, customer: Customer) -> str:
        try:
            await add_sender(
                Caller(self._database, demo_signature()), WantedSender(customer.username, plan=customer.plan)
            )
        except BadInput:
            log.debug("demo.sender_is_known")  # from an earlier demo on the same data
        return await self._token("sender", sender=customer.username, name=customer.username)

    async def _token(
        self, role: TokenRole, *, name: str, identity: str | None = None, sender: str | None = None
    ) -> str:
        by = Caller(self._database, demo_signature())
        return (await make_token(by, role, identity, sender=sender, name=name, expires_at=by.clock() + LIFETIME)).text


@dataclass(frozen=True, slots=True)
class Agent:
    """A program with an agent's token, over MCP."""

    http: httpx2.AsyncClient
    token: str

    async def call(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """Call a tool, and return its answer; an empty one if it was refused."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json",
            "MCP-Protocol-Version": PROTOCOL,
        }
        params = {"name": tool, "arguments": arguments}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.http.post("/mcp", json=request, headers=headers)
        log.debug("demo.agent_called", tool=tool, status=answer.status_code)
        return answer.json().get("result", {}).get("structuredContent") or {} if answer.is_success else {}


async def read_events(agent: Agent, every_s: float = READS_EVERY_S) -> None:
    """Take the events of the house every few seconds and finish them, until the task is cancelled."""
    while True:
        try:
            leased = (await agent.call("queue.next", queue=GATEWAY.queue, max=MOST_READ)).get("messages", [])
            held = [{name: each[name] for name in ("message_id", "lease_token")} for each in leased]
            if held:
                await agent.call("queue.ack", items=held)
        except httpx2.HTTPError as error:
            log.debug("demo.not_answered", error=type(error).__name__)
        await asyncio.sleep(every_s)


def _posting(http: httpx2.AsyncClient) -> Post:
    async def post(path: str, token: str, content: Mapping[str, Any]) -> int:
        try:
            answer = await http.post(path, json=content, headers={"Authorization": f"Bearer {token}"})
        except httpx2.HTTPError as error:
            log.debug("demo.not_answered", error=type(error).__name__)
            return 0
        return answer.status_code

    return post


def demo_signature() -> Signature:
    return signature(DEMO, "admin", "for the demo")

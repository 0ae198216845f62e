"""The receiver of the approval webhook, over real HTTP, and our own endpoint for its answers."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from postroom.store.engine.database import Database
from postroom.triage.act.webhook import HEADER, AnswerHook, WebhookChannel, signature
from postroom_sandbox.server import running
from support.approval_setup import ApprovalSetup, pending
from support.clocks import ManualClock
from support.patience import PATIENCE_S

SECRET = "a secret of the test"


@dataclass
class Receiver:
    """What is at the other end of the webhook, and our own door for its answers."""

    setup: ApprovalSetup
    http: httpx2.AsyncClient
    channel: WebhookChannel
    url: str
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    taken: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])

    async def take(self, request: Request) -> Response:
        self.taken.append((dict(request.headers), await request.body()))
        return Response("x" * 100_000, self.status, self.headers)

    async def answer(self, body: Any, *, secret: str = SECRET, at: timedelta = timedelta(0)) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {HEADER: signature(secret, content, self.setup.clock() + at)}
        return await self.http.post(f"{self.url}/hooks/approvals", content=content, headers=headers)

    async def told(self) -> dict[str, Any]:
        """What is sent of a new action that waits."""
        id = await pending(self.setup, "forward", {"to": "boss@example.com"}, actor="rule")
        await self.setup.notify(id, [self.channel])
        return json.loads(self.taken[-1][1])


@asynccontextmanager
async def webhook_receiver(database: Database, clock: ManualClock) -> AsyncGenerator[Receiver]:
    setup, there = ApprovalSetup(database, clock), list[Receiver]()

    async def take(request: Request) -> Response:
        return await there[0].take(request)

    hook = AnswerHook(setup.answers, SECRET)
    routes = [Route("/told", take, methods=["POST"]), Route("/hooks/approvals", hook.take, methods=["POST"])]
    async with running(Starlette(routes=routes)) as url, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        channel = WebhookChannel(http, f"{url}/told", SECRET, clock, "https://mail.example.com")
        there.append(Receiver(setup, http, channel, url))
        yield there[0]

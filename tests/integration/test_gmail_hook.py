"""`/hooks/gmail`: pushes with Google's signature trigger a sync; everything else is refused."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from postroom.core.mail.accounts import endpoint_of
from postroom.interfaces.http.hooks import GmailHook, GoogleKeys, PushTerms
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.connector_requests import ASKED, lease_requests
from postroom.store.mail.mail import keep_account
from postroom_sandbox.pubsub import PUSHER
from postroom_sandbox.server import LoopbackServer, listening
from postroom_sandbox.signing import Signer
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.sandbox import OWNER, Sandbox, running_sandbox

TOPIC, AUDIENCE = "projects/home/topics/mail", "https://postroom.example/hooks/gmail"


@dataclass
class Hooked:
    sandbox: Sandbox
    database: Database
    address: str

    async def post(self, token: str | None, body: object = None) -> httpx2.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        content = json.dumps(body if body is not None else push(OWNER)) if not isinstance(body, bytes) else body
        return await self.sandbox.http.post(self.address, content=content, headers=headers)

    def claims(self, **changed: Any) -> dict[str, Any]:
        now = int(self.sandbox.clock().timestamp())
        usual = {
            "iss": "https://accounts.google.com",
            "aud": AUDIENCE,
            "email": PUSHER,
            "email_verified": True,
            "iat": now,
            "exp": now + 3600,
        }
        return {name: value for name, value in (usual | changed).items() if value is not None}

    def token(self, **changed: Any) -> str:
        return self.sandbox.emulator.pubsub._signer.sign(self.claims(**changed))

    async def syncs(self) -> list[Any]:
        leased = lease_requests(endpoint_of("gmail", OWNER), 10, new_id(), timedelta(seconds=0), self.sandbox.clock())
        return [request.kind for request in await self.database.run(leased)]


def push(email: str) -> dict[str, Any]:
    data = base64.b64encode(json.dumps({"emailAddress": email, "historyId": 7}).encode()).decode()
    return {"message": {"data": data, "messageId": "1"}, "subscription": "projects/home/subscriptions/postroom"}


@asynccontextmanager
async def serving(app: Starlette) -> AsyncGenerator[str]:
    with listening(0) as listener:
        server = LoopbackServer(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        await server.ready.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.stop()
            await running


@pytest.fixture
async def hooked(database: Database, clock: ManualClock) -> AsyncIterator[Hooked]:
    async with running_sandbox(clock) as sandbox:
        await database.run(keep_account(new_id(), "gmail", endpoint_of("gmail", OWNER), OWNER, clock()))
        keys = GoogleKeys(sandbox.http, f"{sandbox.url}/oauth2/v3/certs")
        terms = PushTerms(AUDIENCE, PUSHER)
        hook = GmailHook(database, terms, keys, clock)
        app = Starlette(routes=[Route("/hooks/gmail", hook.take, methods=["POST"])])
        async with serving(app) as address:
            yield Hooked(sandbox, database, f"{address}/hooks/gmail")


async def test_a_watched_mailbox_that_changes_is_looked_at(hooked: Hooked) -> None:
    taken = asyncio.Event()
    hooked.database.subscribe(ASKED, lambda _message: taken.set())
    sandbox = hooked.sandbox
    config = {"pushEndpoint": hooked.address, "oidcToken": {"audience": AUDIENCE, "serviceAccountEmail": PUSHER}}
    subscription = "/v1/projects/home/subscriptions/postroom"
    made = await sandbox.raw("PUT", subscription, json={"topic": TOPIC, "pushConfig": config})
    assert made.status_code == 200
    await sandbox.json("POST", "/watch", json={"topicName": TOPIC})
    async with asyncio.timeout(PATIENCE_S):
        while not await hooked.syncs():
            await taken.wait()
            taken.clear()


async def test_many_pushes_while_one_look_is_still_to_come_ask_for_one(hooked: Hooked) -> None:
    for _ in range(3):
        assert (await hooked.post(hooked.token())).status_code == 204
    assert len(await hooked.syncs()) == 1


async def test_a_push_for_a_mailbox_that_is_not_ours_is_taken_and_forgotten(hooked: Hooked) -> None:
    assert (await hooked.post(hooked.token(), push("someone@else.example"))).status_code == 204
    assert await hooked.syncs() == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"message": {}}', b'{"message": {"data": "!!"}}', b"x" * 100_000])
async def test_a_push_that_is_invalid_is_not_asked_for_again(hooked: Hooked, body: bytes) -> None:
    assert (await hooked.post(hooked.token(), body)).status_code == 204
    assert await hooked.syncs() == []


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": "https://elsewhere.example"},
        {"iss": "https://evil.example"},
        {"email": "other@evil.example"},
        {"email_verified": False},
        {"exp": 1},
        {"exp": None},
    ],
    ids=["audience", "issuer", "account", "unverified", "expired", "endless"],
)
async def test_a_token_that_is_not_googles_for_us_is_refused(hooked: Hooked, changed: dict[str, Any]) -> None:
    answer = await hooked.post(hooked.token(**changed))
    assert answer.status_code == 401
    assert await hooked.syncs() == []


async def test_a_token_with_another_key_or_no_key_or_no_token_at_all_is_refused(hooked: Hooked) -> None:
    forged = Signer().sign(hooked.claims())
    unknown = Signer("sandbox-2").sign(hooked.claims())
    head = base64.urlsafe_b64encode(b'{"alg":"none","kid":"sandbox-1"}').rstrip(b"=").decode()
    unsigned = f"{head}.{forged.split('.')[1]}."
    for token in (forged, unknown, unsigned, "no.jwt", None):
        assert (await hooked.post(token)).status_code == 401, token
    assert await hooked.syncs() == []

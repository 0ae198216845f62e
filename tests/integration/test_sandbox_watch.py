"""Watched mailboxes: notifications that are pulled, and pushed ones with Google's signature."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from joserfc import jwt
from joserfc.jwk import KeySet
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from postroom_sandbox.methods import MODIFY
from postroom_sandbox.pubsub import PUSHER
from postroom_sandbox.server import LoopbackServer, listening
from support.clocks import ManualClock
from support.sandbox import OWNER, Sandbox, raw_mail, running_sandbox

TOPIC = "projects/home/topics/mail"
SUBSCRIPTION = "/v1/projects/home/subscriptions/postroom"


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock) as running:
        yield running


async def watched(sandbox: Sandbox, **more: Any) -> dict[str, Any]:
    return await sandbox.json("POST", "/watch", json={"topicName": TOPIC, **more})


async def subscribed(sandbox: Sandbox, **more: Any) -> None:
    assert (await sandbox.raw("PUT", SUBSCRIPTION, json={"topic": TOPIC, **more})).status_code == 200


async def pulled(sandbox: Sandbox) -> list[dict[str, Any]]:
    answer = await sandbox.raw("POST", f"{SUBSCRIPTION}:pull", json={"maxMessages": 10, "returnImmediately": True})
    assert answer.status_code == 200
    return answer.json().get("receivedMessages", [])


def content(received: dict[str, Any]) -> Any:
    return json.loads(base64.b64decode(received["message"]["data"]))


async def test_a_watch_tells_at_once_and_whenever_something_changes(sandbox: Sandbox) -> None:
    await subscribed(sandbox)
    begun = await watched(sandbox)
    assert int(begun["expiration"]) == int((sandbox.clock().timestamp() + 7 * 86400) * 1000)
    message = sandbox.mailbox.deliver(raw_mail())
    first, second = await pulled(sandbox)
    assert content(first) == {"emailAddress": OWNER, "historyId": int(begun["historyId"])}
    assert content(second) == {"emailAddress": OWNER, "historyId": message.history_id}


async def test_what_is_not_acknowledged_comes_again(sandbox: Sandbox) -> None:
    await subscribed(sandbox)
    await watched(sandbox)
    (first,) = await pulled(sandbox)
    assert await pulled(sandbox) == []
    sandbox.clock.forward(10)
    (again,) = await pulled(sandbox)
    assert again["message"]["messageId"] == first["message"]["messageId"]
    assert again["deliveryAttempt"] == 2
    await sandbox.raw(
        "POST", f"{SUBSCRIPTION}:modifyAckDeadline", json={"ackIds": [again["ackId"]], "ackDeadlineSeconds": 0}
    )
    (third,) = await pulled(sandbox)
    await sandbox.raw("POST", f"{SUBSCRIPTION}:acknowledge", json={"ackIds": [third["ackId"]]})
    sandbox.clock.forward(60)
    assert await pulled(sandbox) == []


async def test_a_pull_waits_for_what_comes(sandbox: Sandbox) -> None:
    await subscribed(sandbox)
    subscription = sandbox.emulator.pubsub.subscription(SUBSCRIPTION.removeprefix("/v1/"))
    await watched(sandbox)
    subscription.acknowledge([each["ackId"] for each in await pulled(sandbox)])
    pulling = asyncio.create_task(sandbox.raw("POST", f"{SUBSCRIPTION}:pull", json={"maxMessages": 1}))
    await subscription.awaited.wait()
    sandbox.mailbox.deliver(raw_mail())
    assert len((await pulling).json()["receivedMessages"]) == 1


@pytest.mark.parametrize(("behaviour", "told"), [("include", 1), ("exclude", 2)])
async def test_labels_narrow_what_is_told(sandbox: Sandbox, behaviour: str, told: int) -> None:
    await subscribed(sandbox)
    await watched(sandbox, labelIds=["INBOX"], labelFilterBehavior=behaviour)
    sandbox.mailbox.deliver(raw_mail())
    sandbox.mailbox.deliver(raw_mail(), ["SPAM"])
    sandbox.mailbox.deliver(raw_mail(), ["SENT"])
    assert len(await pulled(sandbox)) == 1 + told


async def test_a_watch_ends_after_a_week_or_when_it_is_stopped(sandbox: Sandbox) -> None:
    await subscribed(sandbox)
    await watched(sandbox)
    sandbox.clock.forward(7 * 86400)
    sandbox.mailbox.deliver(raw_mail())
    assert len(await pulled(sandbox)) == 1
    await watched(sandbox)
    assert (await sandbox.ask("POST", "/stop")).status_code == 204
    sandbox.mailbox.deliver(raw_mail())
    assert len(await pulled(sandbox)) == 1


async def test_a_mailbox_has_one_topic_at_a_time(sandbox: Sandbox) -> None:
    await watched(sandbox)
    await watched(sandbox)
    other = await sandbox.ask("POST", "/watch", json={"topicName": f"{TOPIC}-2"})
    assert other.status_code == 400
    assert "Only one user push notification client" in other.json()["error"]["message"]
    assert (await sandbox.ask("POST", "/watch", json={"topicName": "mail"})).status_code == 400


async def test_pulling_needs_the_scope_and_the_subscription(sandbox: Sandbox) -> None:
    body = {"maxMessages": 1, "returnImmediately": True}
    assert (await sandbox.raw("POST", f"{SUBSCRIPTION}:pull", json=body)).status_code == 404
    token = sandbox.emulator.issue_token(scopes=[MODIFY]).access_token
    await subscribed(sandbox)
    assert (await sandbox.raw("POST", f"{SUBSCRIPTION}:pull", token, json=body)).status_code == 403
    assert (await sandbox.raw("PUT", SUBSCRIPTION, json={"topic": TOPIC})).status_code == 409
    assert (await sandbox.raw("POST", f"{SUBSCRIPTION}:pull", json={})).status_code == 400


class Hook:
    """Somebody who takes pushes, and refuses the first ones."""

    def __init__(self, refusing: int) -> None:
        self.address = ""
        self.pushes: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self._refusing = refusing

    async def take(self, request: Request) -> Response:
        if self._refusing:
            self._refusing -= 1
            return Response(status_code=503)
        self.pushes.put_nowait((request.headers["Authorization"], await request.json()))
        return Response(status_code=204)


@asynccontextmanager
async def hook(refusing: int = 0) -> AsyncGenerator[Hook]:
    taking = Hook(refusing)
    app = Starlette(routes=[Route("/hooks/gmail", taking.take, methods=["POST"])])
    with listening(0) as listener:
        server = LoopbackServer(
            uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
        )
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await server.ready.wait()
        taking.address = f"http://127.0.0.1:{listener.getsockname()[1]}/hooks/gmail"
        try:
            yield taking
        finally:
            server.stop()
            await serving


async def test_a_push_is_signed_by_google_for_its_audience(sandbox: Sandbox) -> None:
    async with hook() as taking:
        push = {"pushEndpoint": taking.address, "oidcToken": {"audience": "https://postroom.example/hooks/gmail"}}
        await subscribed(sandbox, pushConfig=push)
        await watched(sandbox)
        authorization, body = await taking.pushes.get()
    assert json.loads(base64.b64decode(body["message"]["data"]))["emailAddress"] == OWNER
    assert body["subscription"] == SUBSCRIPTION.removeprefix("/v1/")
    published = (await sandbox.http.get(f"{sandbox.url}/oauth2/v3/certs")).json()
    claims = jwt.decode(authorization.removeprefix("Bearer "), KeySet.import_key_set(published), ["RS256"]).claims
    assert claims["aud"] == "https://postroom.example/hooks/gmail"
    assert claims["iss"] == "https://accounts.google.com"
    assert claims["email"] == PUSHER
    assert claims["email_verified"] is True


async def test_a_push_is_repeated_until_it_is_taken_and_nothing_overtakes_it(sandbox: Sandbox) -> None:
    async with hook(refusing=2) as taking:
        await subscribed(sandbox, pushConfig={"pushEndpoint": taking.address})
        begun = await watched(sandbox)
        message = sandbox.mailbox.deliver(raw_mail())
        told = [json.loads(base64.b64decode((await taking.pushes.get())[1]["message"]["data"])) for _ in range(2)]
    assert [each["historyId"] for each in told] == [int(begun["historyId"]), message.history_id]
    assert [status for _, status in sandbox.emulator.pubsub.pushed][:3] == [503, 503, 204]
    assert sandbox.sleeps == [1.0, 1.0]

"""Mail of senders over HTTP and MCP: submitted, looked up, canceled, and accepted once for a key."""

import base64
import email
import email.policy
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest

from postroom.core.outbound.priority import Throttle
from postroom.store.engine.database import Database
from postroom.store.outbound import outbound, senders
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.store.fault_cases_registry import signed
from support.submission import ADA, MESSAGE, added_sender
from support.switchboard import Served, served, services_on

MAIL: dict[str, Any] = {"from": f"Ada <{ADA}>", "to": ["Bob <bob@example.net>"], "subject": "Hällo", "text": "Grüße\n"}


@pytest.fixture
async def switchboard(sqlite: Database, clock: ManualClock) -> AsyncIterator[Served]:
    async with served(services_on(sqlite, clock)) as running:
        yield running


async def token_of(switchboard: Served, username: str = ADA) -> str:
    sender = await added_sender(switchboard.services.database, username, switchboard.services.clock)
    return await switchboard.token("sender", sender_id=sender.id)


async def ask(
    switchboard: Served, token: str, body: Any = None, path: str = "", method: str = "POST", **headers: str
) -> tuple[int, dict[str, Any]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        answer = await http.request(
            method,
            f"{switchboard.address}/v1/messages{path}",
            json=body,
            headers={"Authorization": f"Bearer {token}", **named},
        )
    return answer.status_code, answer.json()


async def content(switchboard: Served, answer: dict[str, Any]) -> bytes:
    return await switchboard.services.database.run(outbound.load_content(UUID(answer["id"])))


async def test_a_mail_in_parts_is_built_and_queued(switchboard: Served) -> None:
    token = await token_of(switchboard)
    attachment = {"filename": "ä.pdf", "mime_type": "application/pdf", "data": base64.b64encode(b"%PDF\0").decode()}
    copies = {"cc": ["c@example.net"], "bcc": ["d@example.net"]}
    body = {**MAIL, **copies, "html": "<p>Grüße</p>", "attachments": [attachment]}
    status, answer = await ask(switchboard, token, body)
    assert (status, answer["status"], answer["duplicate"]) == (202, "accepted", False)
    kept = await content(switchboard, answer)
    message = email.message_from_bytes(kept, policy=email.policy.default)
    assert (message["Subject"], message["To"], message["Bcc"]) == ("Hällo", "Bob <bob@example.net>", None)
    assert message.get_body(("plain",)).get_content() == "Grüße\r\n"  # type: ignore[union-attr]
    assert [each.get_filename() for each in message.iter_attachments()] == ["ä.pdf"]  # type: ignore[union-attr]
    assert kept.isascii()
    status, shown = await ask(switchboard, token, path=f"/{answer['id']}", method="GET")
    assert status == 200
    assert [each["address"] for each in shown["recipients"]] == ["bob@example.net", "c@example.net", "d@example.net"]
    assert {each["state"] for each in shown["recipients"]} == {"queued"}


@pytest.mark.parametrize("raw", [MESSAGE, MESSAGE.replace(b"\r\n", b"\n")])
async def test_a_whole_message_goes_to_those_it_names(switchboard: Served, raw: bytes) -> None:
    token = await token_of(switchboard)
    hidden = b"Bcc: Carol <Carol@example.net>" + (b"\r\n" if b"\r" in raw else b"\n")
    status, answer = await ask(switchboard, token, {"raw": base64.b64encode(hidden + raw).decode()})
    assert status == 202
    assert (await content(switchboard, answer)).endswith(MESSAGE)
    _, shown = await ask(switchboard, token, path=f"/{answer['id']}", method="GET")
    assert [each["address"] for each in shown["recipients"]] == ["bob@example.net", "Carol@example.net"]


@pytest.mark.parametrize(
    "change",
    [
        {"from": "ceo@bank.example"},
        {"from": None},
        {"to": []},
        {"to": ["nobody"]},
        {"to": ["a@example.net\r\nBcc: x@example.net"]},
        {"subject": "Hello\r\nBcc: x@example.net"},
        {"reply_to": "x@example.net\nX: y"},
        {"from": f"Ada\r\nX: y <{ADA}>"},
        {"attachments": [{"filename": "a\r\nb", "data": ""}]},
        {"attachments": [{"filename": "a", "data": "not base64"}]},
        {"attachments": [{"filename": "a", "mime_type": "message/rfc822", "data": ""}]},
        {"raw": base64.b64encode(MESSAGE).decode()},
        {"send_at": "2026-11-20T08:00:00"},
        {"send_at": "2026-12-16T08:00:00Z"},
        {"unknown": 1},
        {"to": [f"r{number}@example.net" for number in range(101)]},
    ],
)
async def test_what_is_wrong_is_refused_and_nothing_is_queued(switchboard: Served, change: dict[str, Any]) -> None:
    token = await token_of(switchboard)
    status, answer = await ask(switchboard, token, {**MAIL, **change})
    assert status == 400, answer
    assert answer["error"]["code"] == "bad_input"
    assert answer["error"]["remedy"]
    assert not await switchboard.services.database.run(outbound.any_mail_due(switchboard.services.clock()))


async def test_a_repeated_request_under_one_key_gets_the_first_answer_and_another_is_a_conflict(
    switchboard: Served,
) -> None:
    token = await token_of(switchboard)
    _, first = await ask(switchboard, token, MAIL, Idempotency_Key="k-1")
    status, again = await ask(switchboard, token, MAIL, Idempotency_Key="k-1")
    assert (status, again) == (202, {**first, "duplicate": True})
    status, answer = await ask(switchboard, token, {**MAIL, "subject": "Other"}, Idempotency_Key="k-1")
    assert (status, answer["error"]["code"]) == (409, "conflict")
    async with switchboard.client(token) as client:
        result = await client.call_tool("outbound.submit", {**MAIL, "idempotency_key": "k-1"})
        assert result.structured_content == {**first, "duplicate": True}


async def test_scheduled_mail_is_canceled_before_it_leaves(switchboard: Served, clock: ManualClock) -> None:
    token = await token_of(switchboard)
    due = clock() + timedelta(days=30)
    _, answer = await ask(switchboard, token, {**MAIL, "send_at": due.isoformat()})
    path = f"/{answer['id']}"
    assert (await ask(switchboard, token, path=path, method="GET"))[1]["send_at"].startswith("2026-12-15T08:00:00")
    assert await ask(switchboard, token, path=path, method="DELETE") == (
        200,
        {"id": answer["id"], "result": "canceled"},
    )
    assert (await ask(switchboard, token, path=path, method="DELETE"))[0] == 409
    assert (await ask(switchboard, token, path=path, method="GET"))[1]["state"] == "canceled"


async def test_another_senders_mail_does_not_exist(switchboard: Served) -> None:
    ada, bob = await token_of(switchboard), await token_of(switchboard, "bob@example.org")
    _, answer = await ask(switchboard, ada, MAIL)
    for method in ("GET", "DELETE"):
        assert (await ask(switchboard, bob, path=f"/{answer['id']}", method=method))[0] == 404
    assert (await ask(switchboard, bob, path="/not-an-id", method="GET"))[0] == 400
    assert (await ask(switchboard, bob, MAIL))[0] == 400  # not an address of bob


async def test_other_roles_methods_and_bodies_are_refused(switchboard: Served) -> None:
    token = await token_of(switchboard)
    assert (await ask(switchboard, await switchboard.token("admin"), MAIL))[0] == 403
    assert (await ask(switchboard, "nothing", MAIL))[0] == 401
    assert (await ask(switchboard, token, MAIL, method="PUT"))[0] == 405
    assert (await ask(switchboard, token, MAIL, path="/x"))[0] == 405
    assert (await ask(switchboard, token, [MAIL]))[0] == 400
    assert (await ask(switchboard, token, MAIL, Origin="https://elsewhere.example"))[0] == 403


async def test_a_throttled_sender_is_told_to_come_back_and_a_disabled_one_is_refused(switchboard: Served) -> None:
    token, database, clock = await token_of(switchboard), switchboard.services.database, switchboard.services.clock
    throttle = Throttle(clock() + timedelta(hours=4), "bounces")
    await database.run(senders.throttle_sender(ADA, throttle, signed(), clock()))
    status, answer = await ask(switchboard, token, MAIL)
    assert (status, answer["error"]["code"]) == (429, "not_admitted")
    await database.run(senders.disable_sender(ADA, signed(), clock()))
    assert (await ask(switchboard, token, MAIL))[0] == 403


async def test_mcp_submits_shows_and_cancels(switchboard: Served) -> None:
    async with switchboard.client(await token_of(switchboard)) as client:
        sent = await client.call_tool("outbound.submit", MAIL)
        id = sent.structured_content["id"]
        shown = await client.call_tool("outbound.status", {"id": id})
        assert shown.structured_content["recipients"][0]["address"] == "bob@example.net"
        canceled = await client.call_tool("outbound.cancel", {"id": id})
        assert canceled.structured_content == {"id": id, "result": "canceled"}

"""The signed webhook over real HTTP, both ways: its notices, retries, and which answers count."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.errors import Fatal, Refused, Retryable
from postroom.store.actions import approvals
from postroom.triage.act.webhook import HEADER, LARGEST_BODY, WebhookChannel, check_signature, signature
from support.approval_setup import pending
from support.approvals import tamper
from support.clocks import ManualClock
from support.webhook_receiver import SECRET, Receiver


def verdict_on(told: dict[str, Any], verdict: str = "approve", **changes: Any) -> dict[str, Any]:
    given = {"action_id": told["action_id"], "action_hash": told["action_hash"], "verdict": verdict, "by": "mara"}
    return given | changes


async def test_the_webhook_is_told_what_waits_signed_and_with_an_id_of_its_own(receiver: Receiver) -> None:
    told = await receiver.told()
    headers, body = receiver.taken[0]
    check_signature(SECRET, headers[HEADER.lower()], body, receiver.setup.clock())
    assert told["id"] == headers["idempotency-key"] == f"approval.asked:{told['action_id']}"
    assert told["event"] == "approval.asked"
    assert (told["action"], told["to"], told["parameters"]) == (
        "forward",
        ["boss@example.com"],
        {"to": "boss@example.com"},
    )
    assert (told["sender"], told["subject"], told["account"]) == ("a@example.com", "Hello", "me@example.com")
    assert told["why"] == ["it is old", "agents propose, people approve"]
    assert told["open"] == "https://mail.example.com/"


async def test_a_retry_has_the_same_id_and_what_was_told_is_not_told_again(receiver: Receiver) -> None:
    id = await pending(receiver.setup)
    receiver.status = 503
    with pytest.raises(Retryable):
        await receiver.setup.notify(id, [receiver.channel])
    receiver.status = 200
    await receiver.setup.notify(id, [receiver.channel])
    await receiver.setup.notify(id, [receiver.channel])
    assert [headers["idempotency-key"] for headers, _ in receiver.taken] == [f"approval.asked:{id}"] * 2


async def test_the_webhook_is_reported_the_answer_once(receiver: Receiver) -> None:
    told = await receiver.told()
    await receiver.answer(verdict_on(told, "reject"))
    for seconds_later in (0, 15, 0):
        receiver.setup.clock.forward(seconds_later)
        assert len(receiver.taken) == 1 or not seconds_later, "nothing is told while it can be taken back"
        await receiver.setup.notify(UUID(told["action_id"]), [receiver.channel])
    (answered,) = [json.loads(body) for _, body in receiver.taken[1:]]
    assert (answered["event"], answered["state"]) == ("approval.answered", "rejected")
    assert answered["answer"] == "rejected: rejected by webhook:mara"


@pytest.mark.parametrize(
    ("status", "kind", "after"),
    [(302, Fatal, None), (404, Fatal, None), (500, Retryable, None), (429, Retryable, 7), (503, Retryable, None)],
)
async def test_what_the_webhook_refuses_is_tried_again_only_when_that_may_help(
    receiver: Receiver, status: int, kind: type[Exception], after: int | None
) -> None:
    id = await pending(receiver.setup)
    receiver.status = status
    receiver.headers = {"Location": receiver.channel.url, **({"Retry-After": str(after)} if after else {})}
    with pytest.raises(kind) as raised:
        await receiver.setup.notify(id, [receiver.channel])
    assert len(receiver.taken) == 1
    if isinstance(raised.value, Retryable):
        assert raised.value.after == (None if after is None else timedelta(seconds=after))


async def test_a_webhook_that_is_not_there_is_tried_again(receiver: Receiver) -> None:
    id = await pending(receiver.setup)
    gone = WebhookChannel(receiver.http, "http://127.0.0.1:9/", SECRET, receiver.setup.clock)
    with pytest.raises(Retryable, match="cannot be reached"):
        await receiver.setup.notify(id, [gone])


@pytest.mark.parametrize(("verdict", "state"), [("approve", "queued"), ("reject", "rejected")])
async def test_a_signed_answer_counts_once(receiver: Receiver, verdict: str, state: str) -> None:
    told = await receiver.told()
    first, second = [await receiver.answer(verdict_on(told, verdict)) for _ in range(2)]
    assert (first.status_code, first.json()["state"]) == (200, state)
    assert second.status_code == 409
    assert "nothing was changed" in second.json()["error"]
    assert len(await receiver.setup.refused()) == 1


async def test_what_is_not_signed_or_not_fresh_is_refused(receiver: Receiver) -> None:
    told = await receiver.told()
    body = verdict_on(told)
    for answer in (
        await receiver.answer(body, secret="another secret"),
        await receiver.answer(body, at=timedelta(minutes=-6)),
        await receiver.answer(body, at=timedelta(minutes=6)),
        await receiver.http.post(f"{receiver.url}/hooks/approvals", content=json.dumps(body)),
    ):
        assert answer.status_code == 401
    assert (await receiver.setup.database.run(approvals.list_waiting(1))) != []


async def test_what_was_sent_to_the_webhook_is_no_answer(receiver: Receiver) -> None:
    await receiver.told()
    headers, body = receiver.taken[0]
    sent_back = {HEADER: headers[HEADER.lower()]}
    answer = await receiver.http.post(f"{receiver.url}/hooks/approvals", content=body, headers=sent_back)
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"action_hash": "0" * 64}, 409),
        ({"action_hash": "short"}, 400),
        ({"action_id": "01997000-0000-7000-8000-000000000000"}, 404),
        ({"action_id": "x"}, 400),
        ({"verdict": "maybe"}, 400),
        ({"by": ""}, 400),
        ({"by": "a\nb"}, 400),
        ({"extra": 1}, 400),
    ],
)
async def test_an_answer_that_is_not_exactly_one_is_refused(
    receiver: Receiver, changes: dict[str, Any], status: int
) -> None:
    told = await receiver.told()
    answer = await receiver.answer(verdict_on(told, **changes))
    assert answer.status_code == status
    assert (await receiver.setup.database.run(approvals.list_waiting(1))) != []


@pytest.mark.parametrize(("body", "status"), [(b"", 400), (b"[]", 400), (b"{", 400), (b"x" * (LARGEST_BODY + 1), 413)])
async def test_nonsense_is_refused(receiver: Receiver, body: bytes, status: int) -> None:
    assert (await receiver.answer(body)).status_code == status


async def test_the_approval_of_an_action_that_was_changed_afterwards_is_refused(receiver: Receiver) -> None:
    told = await receiver.told()
    (waiting,) = await receiver.setup.database.run(approvals.list_waiting(1))
    change = """parameters_json = '{"to":"thief@example.net"}'"""
    await receiver.setup.database.run(tamper(change, waiting.id))
    answer = await receiver.answer(verdict_on(told))
    assert answer.status_code == 409
    assert await receiver.setup.state(waiting.id) == approvals.WAITING


def test_a_signature_is_for_one_body_and_one_time() -> None:
    now = ManualClock()()
    header = signature(SECRET, b"body", now)
    check_signature(SECRET, header, b"body", now)
    later = header.replace(f"t={int(now.timestamp())}", f"t={int(now.timestamp()) + 60}")
    for wrong, body in ((header, b"bodY"), (later, b"body"), (header.upper(), b"body"), ("", b"body")):
        with pytest.raises(Refused):
            check_signature(SECRET, wrong, body, now)

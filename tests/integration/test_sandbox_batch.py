"""The batch endpoint: many calls in one, each with its own result."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroom_sandbox.faults import Fault
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.quota import Limits
from support.clocks import ManualClock
from support.sandbox import OTHER, OWNER, Sandbox, raw_mail, running_sandbox

USER = "/gmail/v1/users/me"


def five(mailbox: Mailbox) -> None:
    for number in range(5):
        mailbox.deliver(raw_mail(f"number {number}"))


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock, five) as running:
        yield running


def part(request: str, name: str = "", headers: str = "", body: str = "") -> str:
    about = f"Content-Type: application/http\r\nContent-ID: <{name or request}>\r\n\r\n"
    return f"{about}{request} HTTP/1.1\r\n{headers}\r\n{body}"


def whole(*parts: str) -> dict[str, Any]:
    content = "".join(f"--cut\r\n{each}\r\n" for each in parts) + "--cut--\r\n"
    return {"content": content.encode(), "headers": {"Content-Type": "multipart/mixed; boundary=cut"}}


async def batch(sandbox: Sandbox, *parts: str, path: str = "/batch/gmail/v1") -> list[tuple[str, int, Any]]:
    answer = await sandbox.raw("POST", path, **whole(*parts))
    assert answer.status_code == 200, answer.text
    boundary = answer.headers["content-type"].partition("boundary=")[2]
    verdicts: list[tuple[str, int, Any]] = []
    for each in answer.content.decode().split(f"--{boundary}")[1:-1]:
        about, head, body = each.split("\r\n\r\n", 2)
        name = about.partition("Content-ID: ")[2].partition("\r\n")[0]
        verdicts.append((name, int(head.split(" ")[1]), json.loads(body) if body.strip() else None))
    return verdicts


@pytest.mark.parametrize("path", ["/batch/gmail/v1", "/batch"])
async def test_every_part_has_its_own_verdict_under_its_own_name(sandbox: Sandbox, path: str) -> None:
    stored = next(sandbox.mailbox.search())
    verdicts = await batch(
        sandbox,
        part(f"GET {USER}/messages/{stored.id}?format=minimal", "one"),
        part(f"GET {USER}/messages/00000000deadbeef", "two"),
        part(f"GET {USER}/messages/no-id", "three"),
        part(f"DELETE {USER}/messages/{stored.id}", "four"),
        part(f"GET {USER}/nothing", "five"),
        path=path,
    )
    assert [(name, status) for name, status, _ in verdicts] == [
        ("<response-one>", 200),
        ("<response-two>", 404),
        ("<response-three>", 400),
        ("<response-four>", 204),
        ("<response-five>", 404),
    ]
    assert verdicts[0][2]["id"] == stored.id
    assert stored.id not in sandbox.mailbox


async def test_a_part_may_have_a_body(sandbox: Sandbox) -> None:
    stored = next(sandbox.mailbox.search())
    body = json.dumps({"addLabelIds": ["STARRED"]})
    headers = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    await batch(sandbox, part(f"POST {USER}/messages/{stored.id}/modify", headers=headers, body=body))
    assert "STARRED" in stored.labels


async def test_a_part_may_bring_a_token_of_its_own(sandbox: Sandbox, clock: ManualClock) -> None:
    sandbox.emulator.add(Mailbox(OTHER, sandbox.mailbox.rng, clock), "token-of-ida")
    verdicts = await batch(
        sandbox,
        part(f"GET {USER}/profile"),
        part(f"GET {USER}/profile", headers="Authorization: Bearer token-of-ida\r\n"),
        part(f"GET {USER}/profile", headers="Authorization: Bearer nonsense\r\n"),
    )
    assert [status for _, status, _ in verdicts] == [200, 200, 401]
    assert [body["emailAddress"] for _, _, body in verdicts[:2]] == [OWNER, OTHER]


async def test_a_batch_without_a_token_is_refused_part_by_part(sandbox: Sandbox) -> None:
    answer = await sandbox.http.post(f"{sandbox.url}/batch", **whole(part(f"GET {USER}/profile")))
    assert answer.status_code == 200
    assert "HTTP/1.1 401 Unauthorized" in answer.text


async def test_every_part_is_paid_for_and_may_be_one_too_many(sandbox: Sandbox) -> None:
    sandbox.emulator.quota.limits = Limits(per_user_minute=45)
    stored = next(sandbox.mailbox.search())
    verdicts = await batch(sandbox, *[part(f"GET {USER}/messages/{stored.id}", str(number)) for number in range(4)])
    assert [status for _, status, _ in verdicts] == [200, 200, 403, 403]
    assert sandbox.emulator.quota.counters.units["messages.get"] == 40
    assert sandbox.emulator.quota.counters.batches == 1


async def test_too_many_at_once_are_too_many_even_in_one_batch(sandbox: Sandbox) -> None:
    sandbox.emulator.quota.limits = Limits(concurrent=3)
    verdicts = await batch(sandbox, *[part(f"GET {USER}/profile", str(number)) for number in range(5)])
    assert [status for _, status, _ in verdicts] == [200, 200, 200, 429, 429]
    assert "concurrent" in verdicts[-1][2]["error"]["message"]


async def test_a_fault_strikes_single_parts(sandbox: Sandbox) -> None:
    sandbox.emulator.faults.order(Fault(429, "rateLimitExceeded", method="messages.get", times=2))
    stored = next(sandbox.mailbox.search())
    verdicts = await batch(sandbox, *[part(f"GET {USER}/messages/{stored.id}", str(number)) for number in range(3)])
    assert [status for _, status, _ in verdicts] == [429, 429, 200]


@pytest.mark.parametrize(("number", "status"), [(100, 200), (101, 400)])
async def test_a_hundred_parts_are_the_most(sandbox: Sandbox, number: int, status: int) -> None:
    answer = await sandbox.raw("POST", "/batch", **whole(*[part(f"GET {USER}/labels", str(n)) for n in range(number)]))
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "multipart/mixed; boundary=cut"),
        (b"--cut\r\n\r\nGET / HTTP/1.1\r\n", "multipart/mixed; boundary=cut"),
        (b"--cut\r\n\r\nnonsense\r\n--cut--", "multipart/mixed; boundary=cut"),
        (b"--cut--", "multipart/mixed"),
        (b"{}", "application/json"),
    ],
)
async def test_a_broken_batch_is_refused_as_a_whole(sandbox: Sandbox, content: bytes, kind: str) -> None:
    answer = await sandbox.raw("POST", "/batch", content=content, headers={"Content-Type": kind})
    assert answer.status_code == 400
    assert answer.json()["error"]["status"] == "INVALID_ARGUMENT"

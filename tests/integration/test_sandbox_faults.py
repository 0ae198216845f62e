"""Every fault of the emulator, as a client sees it."""

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import httpx2
import pytest

from postroom_sandbox.faults import Fault, Faults
from postroom_sandbox.mailbox import Mailbox
from support.clocks import ManualClock
from support.sandbox import OTHER, OWNER, SEED, Sandbox, encoded, raw_mail, running_sandbox


def ten(mailbox: Mailbox) -> None:
    for number in range(10):
        mailbox.deliver(raw_mail(f"number {number}"))


@pytest.fixture
async def sandbox(clock: ManualClock) -> AsyncIterator[Sandbox]:
    async with running_sandbox(clock, ten, seed=SEED) as running:
        yield running


def order(sandbox: Sandbox, **fault: Any) -> None:
    sandbox.emulator.faults.order(Fault(**fault))


async def statuses(sandbox: Sandbox, number: int, path: str = "/profile") -> list[int]:
    return [(await sandbox.ask("GET", path)).status_code for _ in range(number)]


async def test_a_delay_holds_the_answer_back(clock: ManualClock) -> None:
    waiting, go = asyncio.Event(), asyncio.Event()
    asked: list[float] = []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)
        waiting.set()
        await go.wait()

    async with running_sandbox(clock, sleep=sleep) as sandbox:
        order(sandbox, kind="delay", delay_s=2.5)
        answering = asyncio.create_task(sandbox.ask("GET", "/profile"))
        await waiting.wait()
        assert not answering.done()
        assert (await sandbox.ask("GET", "/profile")).status_code == 200
        go.set()
        assert (await answering).status_code == 200
    assert asked == [2.5]


async def test_a_reset_closes_the_connection_without_an_answer_or_an_effect(sandbox: Sandbox) -> None:
    order(sandbox, kind="reset", path="/labels")
    with pytest.raises(httpx2.NetworkError):
        await sandbox.ask("POST", "/labels", json={"name": "Trips"})
    assert sandbox.mailbox.labels.named("Trips") is None
    await sandbox.json("POST", "/labels", json={"name": "Trips"})


async def test_a_dropped_reply_comes_after_the_effect(sandbox: Sandbox) -> None:
    order(sandbox, kind="drop_reply", path="/messages/send")
    with pytest.raises(httpx2.NetworkError):
        await sandbox.ask("POST", "/messages/send", json={"raw": encoded(raw_mail(To=OTHER))})
    assert len(list(sandbox.mailbox.search("in:sent"))) == 1
    assert sandbox.emulator.quota.counters.calls["messages.send"] == 1


async def test_a_truncated_body_is_shorter_than_it_says(sandbox: Sandbox) -> None:
    order(sandbox, kind="truncate")
    with pytest.raises(httpx2.RemoteProtocolError):
        await sandbox.ask("GET", "/labels")
    await sandbox.json("GET", "/labels")


async def test_a_gzip_bomb_unpacks_into_as_much_as_was_ordered(sandbox: Sandbox) -> None:
    order(sandbox, kind="gzip_bomb", size=3 << 20)
    headers = {"Authorization": f"Bearer {sandbox.token}"}
    async with sandbox.http.stream("GET", f"{sandbox.url}/gmail/v1/users/me/labels", headers=headers) as answer:
        assert int(answer.headers["content-length"]) < 20_000
        unpacked = sum([len(chunk) async for chunk in answer.aiter_bytes()])
    assert unpacked >= 3 << 20


async def test_a_page_token_that_loops_names_the_same_page_for_ever(sandbox: Sandbox) -> None:
    order(sandbox, kind="loop_pages", method="messages.list", times=100)
    first = await sandbox.json("GET", "/messages?maxResults=6")
    token = first["nextPageToken"]
    for _ in range(3):
        page = await sandbox.json("GET", f"/messages?maxResults=6&pageToken={token}")
        assert len(page["messages"]) == 4
        assert page["nextPageToken"] == token


async def test_fields_can_be_missing_at_any_depth(sandbox: Sandbox) -> None:
    order(sandbox, kind="missing_fields", fields=("threadId", "historyId"), method="messages.list")
    page = await sandbox.json("GET", "/messages?maxResults=2")
    assert [each.keys() for each in page["messages"]] == [{"id"}, {"id"}]
    stored = next(sandbox.mailbox.search())
    order(sandbox, kind="missing_fields", fields=("headers",), method="messages.get")
    message = await sandbox.json("GET", f"/messages/{stored.id}")
    assert "headers" not in message["payload"]


async def test_a_share_of_calls_fails_as_the_seed_draws_it(sandbox: Sandbox, clock: ManualClock) -> None:
    order(sandbox, code=503, share=0.3)
    drawn = await statuses(sandbox, 100)
    assert 15 <= drawn.count(503) <= 45
    async with running_sandbox(clock, seed=SEED) as again:
        order(again, code=503, share=0.3)
        assert await statuses(again, 100) == drawn


def test_a_share_is_drawn_evenly_however_many_calls_there_are(clock: ManualClock) -> None:
    rng = Random(SEED)
    for share in (0.005, 0.3, 0.9):
        faults = Faults(clock, seed=rng.randrange(2**32))
        faults.order(Fault(429, share=share))
        for number in range(1, 5_001):
            faults.answer_fault("/gmail/", "messages.get", "ada")
            assert abs(len(faults.struck) - share * number) < 8


async def test_an_outage_lasts_as_long_as_ordered(sandbox: Sandbox) -> None:
    order(sandbox, code=503, seconds=300)
    assert await statuses(sandbox, 3) == [503] * 3
    sandbox.clock.forward(299)
    assert await statuses(sandbox, 1) == [503]
    sandbox.clock.forward(1)
    assert await statuses(sandbox, 1) == [200]
    assert list(sandbox.emulator.faults) == []


async def test_a_fault_can_be_meant_for_one_user_and_one_method(sandbox: Sandbox, clock: ManualClock) -> None:
    sandbox.emulator.add(Mailbox(OTHER, sandbox.mailbox.rng, clock), "token-of-ida")
    order(sandbox, code=500, user=OTHER, method="labels.list", times=5)
    assert await statuses(sandbox, 1, "/labels") == [200]
    assert (await sandbox.ask("GET", "/labels", token="token-of-ida")).status_code == 500
    assert (await sandbox.ask("GET", "/profile", token="token-of-ida")).status_code == 200


async def test_the_token_endpoint_can_fail_too(sandbox: Sandbox) -> None:
    order(sandbox, kind="reset", path="/token")
    with pytest.raises(httpx2.NetworkError):
        await sandbox.http.post(f"{sandbox.url}/token", data={})
    assert (await sandbox.http.post(f"{sandbox.url}/token", data={})).status_code == 400


async def test_calls_that_a_fault_refused_are_counted_and_cost_nothing(sandbox: Sandbox) -> None:
    order(sandbox, code=429, reason="rateLimitExceeded", times=2)
    assert await statuses(sandbox, 3, "/labels") == [429, 429, 200]
    counters = sandbox.emulator.quota.counters
    assert (counters.calls["labels.list"], counters.units["labels.list"]) == (3, 1)
    assert sandbox.emulator.faults.struck == ["refuse", "refuse"]


async def test_faults_are_ordered_listed_and_cleared_from_outside(sandbox: Sandbox) -> None:
    fault = {"kind": "delay", "delay_s": 1.5, "share": 0.5, "seconds": 60}
    assert (await sandbox.raw("POST", "/sandbox/faults", json=fault)).status_code == 200
    listed = (await sandbox.raw("GET", "/sandbox/faults")).json()
    assert listed["seed"] == SEED
    assert listed["faults"][0]["kind"] == "delay"
    await sandbox.raw("DELETE", "/sandbox/faults")
    assert (await sandbox.raw("GET", "/sandbox/faults")).json()["faults"] == []


@pytest.mark.parametrize(
    "fault", [{"kind": "earthquake"}, {"code": 299}, {"code": 503, "share": "half"}, {"code": 503, "colour": "red"}]
)
async def test_a_fault_that_does_not_exist_is_refused(sandbox: Sandbox, fault: dict[str, Any]) -> None:
    assert (await sandbox.raw("POST", "/sandbox/faults", json=fault)).status_code == 400


async def test_history_expires_on_order(sandbox: Sandbox) -> None:
    start = sandbox.mailbox.history_id
    sandbox.mailbox.deliver(raw_mail("late"))
    assert (await sandbox.ask("GET", f"/history?startHistoryId={start}")).status_code == 200
    now = (await sandbox.raw("POST", "/sandbox/history/expire", json={})).json()["historyId"]
    answer = await sandbox.ask("GET", f"/history?startHistoryId={start}")
    assert answer.status_code == 404
    assert answer.json()["error"]["errors"][0]["reason"] == "notFound"
    assert (await sandbox.ask("GET", f"/history?startHistoryId={now}")).status_code == 200


async def test_tokens_consents_and_accounts_are_made_and_ended_from_outside(sandbox: Sandbox) -> None:
    made = (await sandbox.raw("POST", "/sandbox/accounts", json={"email": OTHER})).json()
    assert (await sandbox.json("GET", "/profile", token=made["access_token"]))["emailAddress"] == OTHER
    assert (await sandbox.raw("POST", "/sandbox/accounts", json={"email": OTHER})).status_code == 409
    issued = (await sandbox.raw("POST", "/sandbox/tokens", json={})).json()
    assert (await sandbox.json("GET", "/profile", token=issued["access_token"]))["emailAddress"] == OWNER
    await sandbox.raw("POST", "/sandbox/tokens/revoke", json={"user": OTHER})
    assert (await sandbox.ask("GET", "/profile", token=made["access_token"])).status_code == 401
    await sandbox.raw("POST", "/sandbox/consent", json={"expireAccess": True, "testing": True})
    assert (await sandbox.ask("GET", "/profile", token=issued["access_token"])).status_code == 401
    assert sandbox.emulator.consents.behaviour.testing


async def test_the_emulators_own_token_survives_its_revocation_for_the_controls(sandbox: Sandbox) -> None:
    await sandbox.raw("POST", "/sandbox/tokens/revoke", json={"user": OWNER})
    assert (await sandbox.ask("GET", "/profile")).status_code == 401
    assert (await sandbox.raw("GET", "/sandbox/counters")).status_code == 200


async def test_addresses_are_added_from_outside_and_gone_after_a_reset(sandbox: Sandbox) -> None:
    for address, more, code in (
        ("mara@work.example", {"isDefault": True}, 200),
        ("Mara@Work.example", {}, 409),
        (OWNER, {}, 409),
        ("old@school.example", {"verificationStatus": "pending"}, 200),
        ("new@school.example", {"verificationStatus": "pending", "isDefault": True}, 400),
        ("new@school.example", {"verificationStatus": "perhaps"}, 400),
        ("nobody", {}, 400),
    ):
        answer = await sandbox.raw("POST", "/sandbox/sendAs", json={"sendAsEmail": address, **more})
        assert answer.status_code == code, answer.text
    listed = (await sandbox.json("GET", "/settings/sendAs"))["sendAs"]
    assert [each["sendAsEmail"] for each in listed] == [OWNER, "mara@work.example", "old@school.example"]
    await sandbox.raw("POST", "/sandbox/reset")
    (own,) = (await sandbox.json("GET", "/settings/sendAs"))["sendAs"]
    assert (own["isPrimary"], own["isDefault"]) == (True, True)

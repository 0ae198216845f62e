"""Calls of many jobs to one mailbox: few requests, each call with its own result."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from random import Random

import httpx2
import pytest

from postroom.core.errors import MessageGone
from postroom.core.mail.mailbox import Placed
from postroom.mailboxes.gmail.errors import GmailError, RateLimited
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.mailboxes.gmail.quota import Quota, Ticket
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.faults import Fault
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.gates import owners_client
from support.patience import PATIENCE_S

OWNER = "mara@lindqvist.example"
TOKEN = "token-of-the-sandbox"


@pytest.fixture
def emulator() -> Emulator:
    mailbox = Mailbox(OWNER, Random(4))
    for number in range(60):
        mailbox.deliver(f"From: a@b.example\r\nTo: {OWNER}\r\nSubject: {number}\r\n\r\nHello.\r\n".encode())
    return Emulator(mailbox, TOKEN)


@pytest.fixture
async def gmail(emulator: Emulator) -> AsyncGenerator[GmailMailbox]:
    async def token() -> str:
        return TOKEN

    async with running_emulator(emulator) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        yield GmailMailbox(owners_client(http, address, token))


def ids(emulator: Emulator) -> list[str]:
    return [message.id for message in emulator.mailbox.search("")]


async def test_many_changes_at_once_take_few_requests_and_each_is_reported_its_own_end(
    emulator: Emulator, gmail: GmailMailbox
) -> None:
    wanted = ids(emulator)
    emulator.mailbox.delete(wanted[7])
    found = await asyncio.gather(*(gmail.modify(id, remove=["INBOX"]) for id in wanted), return_exceptions=True)
    counters = emulator.quota.counters
    assert counters.calls["messages.modify"] == len(wanted)
    assert counters.batches <= 5
    assert isinstance(found[7], MessageGone)
    assert all("INBOX" not in placed.labels for placed in found if isinstance(placed, Placed))
    assert sum(isinstance(placed, Placed) for placed in found) == len(wanted) - 1


async def test_a_single_change_is_a_single_call(emulator: Emulator, gmail: GmailMailbox) -> None:
    await gmail.modify(ids(emulator)[0], add=["STARRED"])
    assert emulator.quota.counters.batches == 0


async def test_changes_of_one_message_are_made_in_their_order(emulator: Emulator, gmail: GmailMailbox) -> None:
    id, *others = ids(emulator)
    changes = [gmail.modify(id, add=["STARRED"]), gmail.modify(id, remove=["STARRED"])] * 10
    looking = asyncio.gather(*(gmail.labels_of(each) for each in others))
    found = await asyncio.gather(*changes)
    await looking
    assert ["STARRED" in placed.labels for placed in found] == [True, False] * 10


async def test_when_the_whole_request_fails_everyone_is_reported_and_the_next_goes_well(
    emulator: Emulator, gmail: GmailMailbox
) -> None:
    wanted = ids(emulator)[:30]
    emulator.faults.order(Fault(kind="reset", path="/batch", times=1))
    found = await asyncio.gather(*(gmail.labels_of(id) for id in wanted), return_exceptions=True)
    failed = [each for each in found if isinstance(each, GmailError)]
    assert failed
    assert await asyncio.gather(*(gmail.labels_of(id) for id in wanted))


async def test_who_is_canceled_takes_nobody_along(emulator: Emulator, gmail: GmailMailbox) -> None:
    wanted = ids(emulator)[:10]
    asked = [asyncio.create_task(gmail.labels_of(id)) for id in wanted]
    await asyncio.sleep(0)
    asked[3].cancel()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(found[3], asyncio.CancelledError)
    assert sum(isinstance(each, frozenset) for each in found) == 9


async def test_what_nobody_waits_for_any_more_is_not_sent(emulator: Emulator) -> None:
    """While Google asks for silence, changes wait; one that is canceled meanwhile is never made."""
    rings: list[Callable[[], None]] = []

    def on_demand(_seconds: float, ring: Callable[[], None]) -> asyncio.TimerHandle:
        """Time stands still until the test rings."""
        rings.append(ring)
        return asyncio.get_running_loop().call_later(10 * PATIENCE_S, ring)

    now = [1000.0]
    quota = Quota(clock=lambda: now[0], call_later=on_demand)
    quota.limited(Ticket("messages.modify", 5, "live", 0.0), RateLimited("x", "x", timedelta(seconds=0.5)))

    async def token() -> str:
        return TOKEN

    async with running_emulator(emulator) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        gmail = GmailMailbox(owners_client(http, address, token, quota=quota))
        wanted = ids(emulator)[:6]
        asked = [asyncio.create_task(gmail.modify(id, add=["TRASH"])) for id in wanted]
        for _ in range(100):  # until they stand in line
            await asyncio.sleep(0)
        assert quota.waiting
        for task in asked[:3]:
            task.cancel()
        now[0] += 1
        for ring in rings:
            ring()
        await asyncio.gather(*asked, return_exceptions=True)
    trashed = ["TRASH" in emulator.mailbox.get(id).labels for id in wanted]
    assert trashed == [False, False, False, True, True, True]


async def test_a_limit_that_lasts_is_reported_to_all_after_a_few_requests(emulator: Emulator) -> None:
    """Not after as many times as there are calls."""
    emulator.faults.order(Fault(429, "rateLimitExceeded", times=10_000))
    waits: list[float] = []

    def at_once(seconds: float, ring: Callable[[], None]) -> asyncio.Handle:
        """Time flies: whoever waits for an alarm is rung at once."""
        waits.append(seconds)
        now[0] += seconds
        return asyncio.get_running_loop().call_soon(ring)

    now = [1000.0]
    quota = Quota(clock=lambda: now[0], call_later=at_once)

    async def token() -> str:
        return TOKEN

    async with running_emulator(emulator) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        gmail = GmailMailbox(owners_client(http, address, token, quota=quota))
        found = await asyncio.gather(*(gmail.labels_of(id) for id in ids(emulator)), return_exceptions=True)
    assert {type(each) for each in found} == {RateLimited}
    assert sum(waits) < 30 * 60, "the jobs of an account would be held up for hours"

"""Messages that Gmail does not return are set aside and delay nothing, and an outage sets nothing aside."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from postroom.mailboxes.following.set_aside import ROUNDS, set_aside_in
from postroom.mailboxes.gmail.errors import GmailError
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.faults import Fault
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, raw_mail

ALWAYS = 10_000


@pytest.fixture
async def setup(sqlite: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    """A mailbox whose earlier mail was handed in."""
    await sqlite.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    async with gmail_setup(sqlite, clock, tmp_path / "state") as found:
        for number in range(12):
            found.mailbox.deliver(raw_mail(f"earlier {number}"))
        await found.connector().sync()
        yield found


class Spoiling(httpx2.AsyncHTTPTransport):
    """A connection that breaks whenever the answer would hold this message."""

    id = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.id and self.id.encode() in request.url.raw_path + await request.aread():
            raise httpx2.ReadError("the connection was closed")
        return await super().handle_async_request(request)


def never_given(setup: GmailSetup, id: str, code: int = 503, reason: str = "backendError") -> None:
    setup.emulator.faults.order(Fault(code, reason, path=id, times=ALWAYS))


async def rounds(connector: GmailConnector, most: int = ROUNDS) -> int:
    """Makes rounds until one ends well; returns how many did not."""
    for failed in range(most):
        try:
            await connector.sync()
        except GmailError:
            continue
        return failed
    return most


@pytest.mark.parametrize(("code", "reason"), [(503, "backendError"), (400, "failedPrecondition")])
async def test_one_that_gmail_never_gives_is_set_aside_in_the_fourth_round(setup: GmailSetup, code: int, reason: str):
    stubborn = setup.mailbox.deliver(raw_mail("stubborn")).id
    others = {setup.mailbox.deliver(raw_mail(f"{number}")).id for number in range(30)}
    never_given(setup, stubborn, code, reason)
    connector = setup.connector()
    reached = setup.health.cursor
    assert await rounds(connector) == ROUNDS - 1
    assert others <= set(await setup.waiting())
    assert setup.health.cursor != reached, "the checkpoint moves on without it"
    assert [each.id for each in set_aside_in(setup.folder)] == [stubborn]
    assert setup.health.counters["set_aside"] == 1


async def test_it_is_set_aside_although_nothing_else_has_come(setup: GmailSetup):
    stubborn = setup.mailbox.deliver(raw_mail("stubborn")).id
    never_given(setup, stubborn)
    assert await rounds(setup.connector()) == ROUNDS - 1
    assert [each.id for each in set_aside_in(setup.folder)] == [stubborn]


async def test_rounds_are_counted_across_restarts(setup: GmailSetup):
    never_given(setup, setup.mailbox.deliver(raw_mail("stubborn")).id)
    failed = [await rounds(setup.connector(), 1) for _ in range(ROUNDS)]
    assert failed == [1] * (ROUNDS - 1) + [0]


async def test_it_is_tried_again_after_ever_longer_pauses_and_delivered_when_gmail_gives_it(
    setup: GmailSetup, clock: ManualClock
):
    stubborn = setup.mailbox.deliver(raw_mail("stubborn")).id
    never_given(setup, stubborn)
    await rounds(setup.connector())
    connector, tried = setup.connector(), list[int]()
    for minute in range(16):
        before = setup.calls["messages.get"]
        await connector.sync()
        if setup.calls["messages.get"] > before:
            tried.append(minute)
        clock.forward(60)
    assert tried == [1, 3, 7, 15]
    setup.emulator.faults.clear()
    clock.forward(timedelta(days=1).total_seconds())
    assert await connector.sync() == 1
    assert stubborn in await setup.waiting()
    assert set_aside_in(setup.folder) == []
    assert setup.health.counters["set_aside"] == 0


async def test_one_that_is_deleted_meanwhile_is_forgotten(setup: GmailSetup, clock: ManualClock):
    stubborn = setup.mailbox.deliver(raw_mail("stubborn")).id
    never_given(setup, stubborn)
    connector = setup.connector()
    await rounds(connector)
    setup.emulator.faults.clear()
    setup.mailbox.delete(stubborn)
    clock.forward(61)
    await connector.sync()
    assert set_aside_in(setup.folder) == []


@pytest.mark.parametrize("share", [1.0, 0.6, 0.4])
async def test_while_gmail_fails_in_general_nothing_is_set_aside(setup: GmailSetup, share: float):
    for number in range(100):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    setup.emulator.faults.order(Fault(503, method="messages.get", share=share, times=ALWAYS))
    connector = setup.connector()
    for _ in range(2 * ROUNDS):
        await rounds(connector, 1)
    assert set_aside_in(setup.folder) == []
    setup.emulator.faults.clear()
    await connector.sync()
    assert len(await setup.waiting()) == 100, "as many as are shown"


async def test_an_outage_of_everything_is_still_asked_about_with_one_call_a_round(setup: GmailSetup):
    setup.mailbox.deliver(raw_mail("hello"))
    connector = setup.connector()
    await connector.sync()
    setup.mailbox.deliver(raw_mail("again"))
    setup.emulator.faults.order(Fault(503, path="/gmail/", times=ALWAYS))
    before = setup.calls.total()
    assert await rounds(connector, 6) == 6
    assert setup.calls.total() - before == 6


async def test_one_that_spoils_the_answer_of_its_whole_batch_is_found_and_set_aside(setup: GmailSetup):
    ids = [setup.mailbox.deliver(raw_mail(f"{number}")).id for number in range(40)]
    async with httpx2.AsyncClient(transport=(spoiling := Spoiling()), trust_env=False, timeout=PATIENCE_S) as http:
        spoiling.id, setup.http = ids[20], http
        assert await rounds(setup.connector(), 20) < 20
        assert [each.id for each in set_aside_in(setup.folder)] == [ids[20]]
        assert set(ids) - {ids[20]} <= set(await setup.waiting())

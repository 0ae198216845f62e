"""Looking back at mail that is there already: all of the window, whatever the search index knows of it."""

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from conftest import ManualClock
from integration.gmail_desk import GmailDesk, gmail_desk
from integration.product import ENDPOINT, OWNER, letter
from postroom.connectors.gmail import look_back
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail import keep_account
from postroom_sandbox.faults import Fault

NEVER = timedelta(days=3650)
# Small pages, so that a few messages are many of them.
PAGE = 50


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path, None)
    await opened.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    yield opened
    await opened.close()


@pytest.fixture
async def desk(
    database: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[GmailDesk]:
    monkeypatch.setattr(look_back, "PAGE", PAGE)
    async with gmail_desk(database, clock, tmp_path / "state") as found:
        yield found


def deliver(desk: GmailDesk, count: int, age: timedelta = timedelta(0), apart: timedelta = timedelta(0)) -> set[str]:
    start = desk.mailbox.clock() - age
    return {desk.mailbox.deliver(letter(f"{number}"), received_at=start - number * apart).id for number in range(count)}


async def arrived(desk: GmailDesk) -> set[str]:
    """Everything the switchboard has; nothing may have come twice."""
    found: list[str] = []
    while leased := await desk.services.buffer.next("email", 100):
        found += [each.envelope["event"]["external_event_id"] for each in leased]
    assert len(found) == len(set(found)), "something came twice"
    return set(found)


async def test_a_burst_that_the_search_does_not_find_yet_is_taken_in_whole(desk: GmailDesk):
    indexed = deliver(desk, 1, age=timedelta(hours=1))
    burst = deliver(desk, 300)
    desk.mailbox.search_lag = timedelta(minutes=5)
    assert await desk.connector().sync() == 301
    assert await arrived(desk) == indexed | burst


async def test_mail_between_messages_that_the_search_finds_is_taken_in_too(desk: GmailDesk):
    delivered = deliver(desk, 170, apart=timedelta(minutes=10))
    desk.mailbox.search_gaps = 0.5
    assert await desk.connector().sync() == 170
    assert await arrived(desk) == delivered


@pytest.mark.parametrize("expired", [False, True])
async def test_a_search_that_finds_nothing_at_all_hides_no_mail(desk: GmailDesk, clock: ManualClock, expired: bool):
    connector = desk.connector()
    if expired:
        await connector.sync()
        clock.forward(3600)
    desk.mailbox.search_lag = NEVER
    old = deliver(desk, 60, age=timedelta(days=8), apart=timedelta(seconds=1))
    recent = deliver(desk, 131, apart=timedelta(minutes=1))
    desk.mailbox.expire_history()
    assert await connector.sync() == 131
    found = await arrived(desk)
    assert found == recent
    assert not found & old


@pytest.mark.parametrize("recent", [0, 1, 24, 25, 26, 49, 50, 51, 70])
async def test_the_window_ends_exactly_at_its_start_wherever_that_lies_on_a_page(desk: GmailDesk, recent: int):
    wanted = deliver(desk, recent, apart=timedelta(seconds=1))
    deliver(desk, 70, age=timedelta(days=7, seconds=1), apart=timedelta(seconds=1))
    assert await desk.connector().sync() == recent
    assert await arrived(desk) == wanted


async def test_finding_the_start_of_the_window_costs_a_few_calls_and_not_one_for_every_message(
    desk: GmailDesk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(look_back, "PAGE", 500)
    deliver(desk, 250, apart=timedelta(seconds=1))
    deliver(desk, 900, age=timedelta(days=30), apart=timedelta(seconds=1))
    assert await desk.connector().sync() == 250
    assert desk.calls["messages.list"] == 2, "one of sent mail, one of all mail"
    assert desk.calls["messages.get"] <= 250 + 60


async def test_messages_that_vanish_while_their_dates_are_asked_for_end_nothing(desk: GmailDesk):
    delivered = deliver(desk, 40, apart=timedelta(minutes=1))
    desk.emulator.faults.order(Fault(404, "notFound", method="messages.get", times=2))
    found = await desk.connector().sync()
    assert found == 40
    assert await arrived(desk) == delivered


class Killed(Exception):
    """Stands for the end of the process."""


def kill_after(desk: GmailDesk, count: int) -> None:
    def before(ingested: int) -> None:
        if ingested >= count:
            desk.board.before = lambda _count: None
            raise Killed

    desk.board.before = before


async def test_a_look_back_goes_on_where_it_was_and_its_window_does_not_move(desk: GmailDesk, clock: ManualClock):
    delivered = deliver(desk, 130, apart=timedelta(minutes=75))
    kill_after(desk, 75)
    with pytest.raises(Killed):
        await desk.connector().sync()
    (desk.folder / "handed_in.ids").unlink()
    clock.forward(5 * 86400)
    taken, read = desk.board.ingested, desk.calls["messages.get"]
    await desk.connector().sync()
    assert await arrived(desk) == delivered
    assert desk.board.ingested - taken == 80, "the first page is not read again"
    assert desk.calls["messages.get"] - read < 80 + 10


@pytest.mark.parametrize("deleted", [False, True])
async def test_the_message_at_which_it_was_left_may_be_gone(desk: GmailDesk, deleted: bool):
    delivered = deliver(desk, 130, apart=timedelta(minutes=1))
    kill_after(desk, 75)
    with pytest.raises(Killed):
        await desk.connector().sync()
    kept = set(delivered)
    if deleted:
        newest_first = sorted(delivered, key=lambda id: desk.mailbox.get(id).place, reverse=True)
        for id in newest_first[45:55]:
            desk.mailbox.delete(id)
            kept.remove(id)
    await desk.connector().sync()
    assert kept <= await arrived(desk) <= delivered


async def test_what_arrives_during_a_look_back_is_taken_in_before_its_end(desk: GmailDesk):
    deliver(desk, 150, apart=timedelta(minutes=1))
    late: list[str] = []

    def before(ingested: int) -> None:
        if ingested >= 25 and not late:
            late.append(desk.mailbox.deliver(letter("just now")).id)

    desk.board.before = before
    assert await desk.connector().sync() == 151
    order = [each.envelope["event"]["external_event_id"] for each in await desk.services.buffer.next("email", 100)]
    assert late[0] in order


async def test_history_that_expires_during_a_look_back_loses_nothing(desk: GmailDesk, clock: ManualClock):
    """The look back lasts ten days, and Gmail has forgotten its beginning when it ends."""
    delivered = deliver(desk, 120, apart=timedelta(minutes=1))
    desk.mailbox.search_lag = NEVER

    def before(ingested: int) -> None:
        if ingested >= 50:
            desk.board.before = lambda _count: None
            for _ in range(10):
                delivered.add(desk.mailbox.deliver(letter("in between")).id)
                clock.forward(86400)
            desk.mailbox.expire_history()

    desk.board.before = before
    connector = desk.connector()
    await connector.sync()
    await connector.sync()
    assert await arrived(desk) == delivered


async def test_any_mailbox_is_taken_in_once_through_kills_expiries_and_a_search_that_is_behind(
    desk: GmailDesk, clock: ManualClock
):
    seed = 20261116
    print(f"seed {seed}")
    rng = Random(seed)
    desk.mailbox.search_lag, desk.mailbox.search_gaps = timedelta(hours=1), 0.3
    delivered = deliver(desk, 160, apart=timedelta(minutes=60))
    for _ in range(8):
        kill_after(desk, desk.board.ingested + rng.randrange(60))
        if rng.random() < 0.5:
            desk.mailbox.expire_history()
        with contextlib.suppress(Killed):
            await desk.connector().sync()
        clock.forward(rng.randrange(40_000))
        delivered |= deliver(desk, rng.randrange(40))
    desk.board.before = lambda _count: None
    for _ in range(2):
        await desk.connector().sync()
    assert await arrived(desk) == delivered

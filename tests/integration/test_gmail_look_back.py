"""Looking back at existing mail: all of the window, whatever the search index contains."""

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from postroom.mailboxes.following import connector as mail_connector
from postroom.mailboxes.gmail.following import look_back
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.faults import Fault
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.product import ENDPOINT, OWNER, raw_mail

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
async def setup(
    database: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[GmailSetup]:
    monkeypatch.setattr(look_back, "PAGE", PAGE)
    async with gmail_setup(database, clock, tmp_path / "state") as found:
        yield found


def deliver(setup: GmailSetup, count: int, age: timedelta = timedelta(0), apart: timedelta = timedelta(0)) -> set[str]:
    start = setup.mailbox.clock() - age
    return {
        setup.mailbox.deliver(raw_mail(f"{number}"), received_at=start - number * apart).id for number in range(count)
    }


async def arrived(setup: GmailSetup) -> set[str]:
    """Everything the switchboard has; nothing may have come twice."""
    found: list[str] = []
    while leased := await setup.services.buffer.next("email", 100):
        found += [each.envelope["event"]["external_event_id"] for each in leased]
    assert len(found) == len(set(found)), "something came twice"
    return set(found)


async def test_a_burst_that_the_search_does_not_find_yet_is_ingested_in_full(setup: GmailSetup):
    indexed = deliver(setup, 1, age=timedelta(hours=1))
    burst = deliver(setup, 300)
    setup.mailbox.search_lag = timedelta(minutes=5)
    assert await setup.connector().sync() == 301
    assert await arrived(setup) == indexed | burst


async def test_mail_between_messages_that_the_search_finds_is_ingested_too(setup: GmailSetup):
    delivered = deliver(setup, 170, apart=timedelta(minutes=10))
    setup.mailbox.search_gaps = 0.5
    assert await setup.connector().sync() == 170
    assert await arrived(setup) == delivered


@pytest.mark.parametrize("expired", [False, True])
async def test_a_search_that_finds_nothing_at_all_hides_no_mail(setup: GmailSetup, clock: ManualClock, expired: bool):
    connector = setup.connector()
    if expired:
        await connector.sync()
        clock.forward(3600)
    setup.mailbox.search_lag = NEVER
    old = deliver(setup, 60, age=timedelta(days=8), apart=timedelta(seconds=1))
    recent = deliver(setup, 131, apart=timedelta(minutes=1))
    setup.mailbox.expire_history()
    assert await connector.sync() == 131
    found = await arrived(setup)
    assert found == recent
    assert not found & old


@pytest.mark.parametrize("recent", [0, 1, 24, 25, 26, 49, 50, 51, 70])
async def test_the_window_ends_exactly_at_its_start_wherever_that_lies_on_a_page(setup: GmailSetup, recent: int):
    wanted = deliver(setup, recent, apart=timedelta(seconds=1))
    deliver(setup, 70, age=timedelta(days=7, seconds=1), apart=timedelta(seconds=1))
    assert await setup.connector().sync() == recent
    assert await arrived(setup) == wanted


async def test_finding_the_start_of_the_window_costs_a_few_calls_and_not_one_for_every_message(
    setup: GmailSetup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(look_back, "PAGE", 500)
    deliver(setup, 250, apart=timedelta(seconds=1))
    deliver(setup, 900, age=timedelta(days=30), apart=timedelta(seconds=1))
    assert await setup.connector().sync() == 250
    assert setup.calls["messages.list"] == 4, "all mail and sent mail; and for the order, conversations and direct mail"
    assert setup.calls["messages.get"] <= 250 + 60


async def test_messages_that_vanish_while_their_dates_are_asked_for_end_nothing(setup: GmailSetup):
    delivered = deliver(setup, 40, apart=timedelta(minutes=1))
    setup.emulator.faults.order(Fault(404, "notFound", method="messages.get", times=2))
    found = await setup.connector().sync()
    assert found == 40
    assert await arrived(setup) == delivered


class Killed(Exception):
    """Stands for the end of the process."""


def kill_after(setup: GmailSetup, count: int) -> None:
    def before(ingested: int) -> None:
        if ingested >= count:
            setup.board.before = lambda _count: None
            raise Killed

    setup.board.before = before


async def test_a_look_back_goes_on_where_it_was_and_its_window_does_not_move(setup: GmailSetup, clock: ManualClock):
    delivered = deliver(setup, 130, apart=timedelta(minutes=75))
    kill_after(setup, 75)
    with pytest.raises(Killed):
        await setup.connector().sync()
    (setup.folder / "handed_in.ids").unlink()
    clock.forward(5 * 86400)
    taken, read = setup.board.ingested, setup.calls["messages.get"]
    await setup.connector().sync()
    assert await arrived(setup) == delivered
    assert setup.board.ingested - taken == 55, "what was accepted is not read again"
    assert setup.calls["messages.get"] - read == 55


@pytest.mark.parametrize("deleted", [False, True])
async def test_the_message_at_which_it_was_left_may_be_gone(setup: GmailSetup, deleted: bool):
    delivered = deliver(setup, 130, apart=timedelta(minutes=1))
    kill_after(setup, 75)
    with pytest.raises(Killed):
        await setup.connector().sync()
    kept = set(delivered)
    if deleted:
        newest_first = sorted(delivered, key=lambda id: setup.mailbox.get(id).place, reverse=True)
        for id in newest_first[45:55]:
            setup.mailbox.delete(id)
            kept.remove(id)
    await setup.connector().sync()
    assert kept <= await arrived(setup) <= delivered


async def test_what_arrives_during_a_look_back_is_ingested_before_its_end(
    setup: GmailSetup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mail_connector, "A_WHILE_S", 0.0)
    monkeypatch.setattr(mail_connector, "TIMES_AS_LONG", 0)
    deliver(setup, 150, apart=timedelta(minutes=1))
    late: list[str] = []

    def before(ingested: int) -> None:
        if ingested >= 25 and not late:
            late.append(setup.mailbox.deliver(raw_mail("just now")).id)

    setup.board.before = before
    assert await setup.connector().sync() == 151
    order = [each.envelope["event"]["external_event_id"] for each in await setup.services.buffer.next("email", 100)]
    assert late[0] in order


async def test_history_that_expires_during_a_look_back_loses_nothing(setup: GmailSetup, clock: ManualClock):
    """The look back lasts ten days, and Gmail has forgotten its beginning when it ends."""
    delivered = deliver(setup, 120, apart=timedelta(minutes=1))
    setup.mailbox.search_lag = NEVER

    def before(ingested: int) -> None:
        if ingested >= 50:
            setup.board.before = lambda _count: None
            for _ in range(10):
                delivered.add(setup.mailbox.deliver(raw_mail("in between")).id)
                clock.forward(86400)
            setup.mailbox.expire_history()

    setup.board.before = before
    following = setup.connector()
    await following.sync()
    await following.sync()
    assert await arrived(setup) == delivered


async def test_any_mailbox_is_ingested_once_through_kills_expiries_and_a_search_that_is_behind(
    setup: GmailSetup, clock: ManualClock
):
    seed = 20261116
    print(f"seed {seed}")
    rng = Random(seed)
    setup.mailbox.search_lag, setup.mailbox.search_gaps = timedelta(hours=1), 0.3
    delivered = deliver(setup, 160, apart=timedelta(minutes=60))
    for _ in range(8):
        kill_after(setup, setup.board.ingested + rng.randrange(60))
        if rng.random() < 0.5:
            setup.mailbox.expire_history()
        with contextlib.suppress(Killed):
            await setup.connector().sync()
        clock.forward(rng.randrange(40_000))
        delivered |= deliver(setup, rng.randrange(40))
    setup.board.before = lambda _count: None
    for _ in range(2):
        await setup.connector().sync()
    assert await arrived(setup) == delivered

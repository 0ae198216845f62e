"""The order in which new mail at Gmail is read: urgent first by searches, which decide nothing else."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import PostroomError, SwitchboardUnavailable
from postroom.core.mail.providers import facts_of
from postroom.mailboxes.following import connector as mail_connector
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.receiving_hosts import ReceivingHosts
from postroom.sources.switchboard_client import Receipt
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.faults import Fault
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.product import ENDPOINT, OWNER

FRIEND = "ida@people.example"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path, None)
    await opened.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    yield opened
    await opened.close()


@pytest.fixture
async def setup(database: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    async with gmail_setup(database, clock, tmp_path / "state") as found:
        found.contacts = lambda: frozenset({FRIEND, "quoted name@people.example"})
        await found.connector().sync()
        yield found


def mail(sender: str, *more: str) -> bytes:
    lines = (f"From: {sender}", f"To: {OWNER}", "Subject: Hello", *more, "", "Text.", "")
    return "\r\n".join(lines).encode()


def newsletters(setup: GmailSetup, count: int) -> list[str]:
    raw = mail("news@shop.example", "List-Unsubscribe: <mailto:no@shop.example>")
    return [setup.mailbox.deliver(raw).id for _ in range(count)]


def watched(setup: GmailSetup) -> list[str]:
    """The ids of the messages as they are handed in."""
    order: list[str] = []
    usual = setup.board.ingest_batch

    async def ingest_batch(envelopes: Sequence[Mapping[str, Any]]) -> list[Receipt | PostroomError]:
        order.extend(each["event"]["external_event_id"] for each in envelopes)
        return await usual(envelopes)

    setup.board.ingest_batch = ingest_batch
    return order


async def interrupted(setup: GmailSetup, after: int) -> None:
    """A round that ends when so many more were taken in."""
    begun = setup.board.ingested

    def before(ingested: int) -> None:
        if ingested >= begun + after:
            raise SwitchboardUnavailable("not now")

    setup.board.before = before
    with pytest.raises(SwitchboardUnavailable):
        await setup.connector().sync()
    setup.board.before = lambda _count: None


async def arrived(setup: GmailSetup) -> dict[str, str]:
    """The tier of each message that the switchboard has; nothing may have come twice."""
    found: list[tuple[str, str]] = []
    while leased := await setup.services.buffer.next("email", 100):
        found += [(each.envelope["event"]["external_event_id"], each.tier) for each in leased]
    assert len(found) == len(dict(found)), "something came twice"
    return dict(found)


async def test_mail_of_contacts_and_answers_go_before_newsletters(setup: GmailSetup):
    sent = setup.mailbox.deliver(mail(OWNER, "Message-ID: <question@x.example>"), labels={"SENT"})
    await setup.connector().sync()
    before = newsletters(setup, 60)
    letter = setup.mailbox.deliver(mail(FRIEND)).id
    answer = mail("someone@else.example", "In-Reply-To: <question@x.example>", "References: <question@x.example>")
    reply = setup.mailbox.deliver(answer, thread_id=sent.thread_id).id
    after = newsletters(setup, 60)
    order = watched(setup)
    assert await setup.connector().sync() == 122
    assert set(order[:2]) == {letter, reply}
    tiers = await arrived(setup)
    assert tiers.keys() == {letter, reply, *before, *after}
    assert {tiers[letter], tiers[reply]} == {"high_priority"}


@pytest.mark.parametrize("trouble", ["lag", "error"])
async def test_a_search_that_finds_nothing_or_fails_hides_no_mail(setup: GmailSetup, trouble: str):
    delivered = newsletters(setup, 40)
    delivered.append(setup.mailbox.deliver(mail(FRIEND)).id)
    if trouble == "lag":
        setup.mailbox.search_lag = timedelta(days=1)
    else:
        setup.emulator.faults.order(Fault(500, method="messages.list"))
    assert await setup.connector().sync() == 41
    assert (await arrived(setup)).keys() == set(delivered)


async def test_the_tier_is_that_of_the_message_and_not_that_of_the_search(setup: GmailSetup):
    """A search finds a forged sender too; what counts is what the message says when it is read."""
    newsletters(setup, 40)
    forged = setup.mailbox.deliver(
        mail(FRIEND, f"Authentication-Results: mx.google.com; dmarc=fail header.from={FRIEND}")
    )
    order = watched(setup)
    hosts = ReceivingHosts(facts_of("gmail").receiving_hosts(None))
    await setup.connector(knowledge=Knowledge([OWNER], contacts=setup.contacts, hosts=hosts)).sync()
    assert order[0] == forged.id
    assert (await arrived(setup))[forged.id] != "high_priority"


async def test_mail_that_comes_while_others_are_read_goes_ahead_of_them(
    setup: GmailSetup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(mail_connector, "A_WHILE_S", 0.0)
    monkeypatch.setattr(mail_connector, "TIMES_AS_LONG", 0)
    newsletters(setup, 150)
    late: list[str] = []

    def before(ingested: int) -> None:
        if not late and ingested:
            late.append(setup.mailbox.deliver(mail("stranger@x.example")).id)

    setup.board.before = before
    order = watched(setup)
    assert await setup.connector().sync() == 151
    assert order.index(late[0]) < 100, "the newest takes turns with the oldest, whatever a search says"


async def test_after_a_kill_only_what_was_being_read_is_read_again(setup: GmailSetup):
    delivered = newsletters(setup, 100)
    await interrupted(setup, 50)
    (setup.folder / "handed_in.ids").unlink()
    pages, taken = setup.calls["history.list"], setup.board.ingested
    assert await setup.connector().sync() == len(delivered) - taken
    assert setup.board.ingested == len(delivered)
    assert setup.calls["history.list"] - pages == 1
    assert (await arrived(setup)).keys() == set(delivered)


async def test_mail_that_is_deleted_before_it_is_read_is_not_asked_for(setup: GmailSetup):
    delivered = newsletters(setup, 30)
    await interrupted(setup, 0)
    for id in delivered[:10]:
        setup.mailbox.delete(id)
    read = setup.calls["messages.get"]
    assert await setup.connector().sync() == 20
    assert setup.calls["messages.get"] - read == 20


async def test_a_list_that_was_lost_is_made_again_by_looking_back(setup: GmailSetup):
    delivered = newsletters(setup, 60)
    await interrupted(setup, 0)
    for file in setup.folder.glob("to_read.db*"):
        file.unlink()
    assert await setup.connector().sync() == 60
    assert (await arrived(setup)).keys() == set(delivered)


async def test_more_mail_than_the_list_holds_is_taken_part_by_part(setup: GmailSetup, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("postroom.mailboxes.following.reading_list.MOST", 30)
    monkeypatch.setattr("postroom.mailboxes.gmail.following.follow.RECORDS_PER_PAGE", 10)
    monkeypatch.setattr("postroom.mailboxes.gmail.following.look_back.PAGE", 10)
    delivered = newsletters(setup, 75)
    assert await setup.connector().sync() == 75
    setup.mailbox.expire_history()
    delivered += newsletters(setup, 75)
    assert await setup.connector().sync() == 75
    assert (await arrived(setup)).keys() == set(delivered)

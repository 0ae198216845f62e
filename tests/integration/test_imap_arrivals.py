"""Which mail is new to the IMAP connector, whatever clocks say, and what is reported of many messages at once."""

import re
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from postroom.mailboxes.imap.following import follow
from postroom.store.engine.database import Database
from support.clocks import ManualClock
from support.imap_server import ImapServer
from support.imap_setup import OWNER, ImapSetup, imap_setup
from support.scripted_imap import Meddler
from support.sqlite import new_sqlite

NOW = datetime.now(UTC)
LONG_AGO = datetime(2020, 1, 1, 10, 0, tzinfo=UTC)
WRONG_CLOCK = datetime(1970, 1, 2, tzinfo=UTC)


def mail(subject: str, sent: datetime | None, received: datetime | None = None) -> bytes:
    head = f"From: ada@example.com\r\nTo: {OWNER}\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x.example>\r\n"
    if received is not None:
        head += f"Received: from a.example by b.example;\r\n {format_datetime(received)}\r\n"
    if sent is not None:
        head += f"Date: {format_datetime(sent)}\r\n"
    return f"{head}\r\nHello {subject}\r\n".encode()


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield opened
    await opened.close()


@pytest.fixture(params=["dovecot", "cyrus"])
async def setup(
    request: pytest.FixtureRequest, database: Database, clock: ManualClock, tmp_path: Path
) -> AsyncGenerator[ImapSetup]:
    async with imap_setup(request.getfixturevalue(request.param), database, clock, tmp_path) as made:
        yield made


def append(setup: ImapSetup, arrived: datetime, content: bytes) -> None:
    date = f'"{arrived:%d-%b-%Y %H:%M:%S} +0000"'
    assert setup.beside.client.append("INBOX", "", date, content)[0] == "OK"


async def test_mail_is_new_if_any_clock_on_its_way_says_so_and_otherwise_was_brought_in(setup: ImapSetup) -> None:
    connector = setup.connector()
    await connector.sync()
    recently = NOW - timedelta(hours=1)
    # The server's clock is wrong, the sender's or another server's is not.
    append(setup, WRONG_CLOCK, mail("clock-sender", recently, WRONG_CLOCK))
    append(setup, WRONG_CLOCK, mail("clock-server", None, recently))
    # The sender's clock is wrong, or a program on the server wrote it.
    append(setup, recently, mail("sender", LONG_AGO, recently))
    append(setup, recently, mail("local", LONG_AGO))
    # Somebody has put old mail here, with its date or with today's.
    append(setup, LONG_AGO, mail("old", LONG_AGO, LONG_AGO))
    append(setup, recently, mail("old-dated-today", LONG_AGO, LONG_AGO))
    append(setup, recently, mail("old-without-date", None, LONG_AGO))
    await connector.sync()
    texts = {each["payload"]["normalized_text"].strip() for each in (await setup.waiting()).values()}
    assert texts == {"Hello clock-sender", "Hello clock-server", "Hello sender", "Hello local"}
    # Reading it did not count as a change by others.
    await connector.sync()
    assert setup.board.reports == []


async def test_the_first_look_reaches_back_to_the_time_from_which_its_owner_wants_mail_acted_on(
    setup: ImapSetup,
) -> None:
    chosen = NOW - timedelta(days=9)
    for subject, at in (("older", chosen - timedelta(days=1)), ("inside", chosen + timedelta(hours=1)), ("new", NOW)):
        append(setup, at, mail(subject, at, at))
    connector = setup.connector(clock=ManualClock(NOW), acts_from=chosen)
    assert await connector.sync() == 2
    texts = {each["payload"]["normalized_text"].strip() for each in (await setup.waiting()).values()}
    assert texts == {"Hello inside", "Hello new"}


async def test_mail_that_came_while_our_clock_was_wrong_is_taken_in_when_it_is_right_again(setup: ImapSetup) -> None:
    clock = ManualClock(NOW)
    connector = setup.connector(clock=clock)
    await connector.sync()
    clock.now = NOW + timedelta(days=10)
    await connector.sync()
    append(setup, NOW, mail("meanwhile", NOW, NOW))
    append(setup, LONG_AGO, mail("old", LONG_AGO, LONG_AGO))
    assert await connector.sync() == 0
    clock.now = NOW + timedelta(minutes=1)
    assert await connector.sync() == 1
    (only,) = (await setup.waiting()).values()
    assert only["payload"]["normalized_text"].strip() == "Hello meanwhile"
    # Once: what was looked at again is not looked at in every round.
    assert await connector.sync() == 0
    assert setup.board.reports == []


async def test_mails_that_differ_in_their_text_only_are_each_taken_in(setup: ImapSetup) -> None:
    """As a program writes them that puts them into the mailbox itself: one of them moves, and is the same."""
    for text in (b"Hello a", b"Hello b"):
        append(setup, NOW - timedelta(hours=1), mail("same", NOW).replace(b"Hello same", text))
    connector = setup.connector()
    assert await connector.sync() == 2
    texts = {each["payload"]["normalized_text"].strip() for each in (await setup.waiting()).values()}
    assert texts == {"Hello a", "Hello b"}
    first = setup.beside.ids()[0]
    setup.beside.client.select("INBOX")
    setup.beside.client.uid("MOVE", "1", "Archive")
    for _ in range(2):
        assert await connector.sync() == 0
    assert _sums(setup) == {first: (set(), {"INBOX"})}


async def test_changes_of_more_messages_than_are_read_at_once_are_all_reported(
    setup: ImapSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "MOST_NEW", 2)
    ids = [setup.beside.put(mail(f"n{number}", NOW)) for number in range(5)]
    setup.beside.client.create("Work")
    connector = setup.connector()
    assert await connector.sync() == 5
    setup.beside.client.select("INBOX")
    setup.beside.client.uid("MOVE", "1:*", "Work")
    for _ in range(2):
        assert await connector.sync() == 0
    assert _sums(setup) == {id: ({"folder:Work"}, {"INBOX"}) for id in ids}


async def test_changes_in_a_large_folder_that_was_made_anew_are_all_reported(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "MOST_NEW", 2)
    validity = {"now": b"111"}
    meddler = Meddler(answers=lambda chunk: re.sub(rb"UIDVALIDITY \d+", b"UIDVALIDITY " + validity["now"], chunk))
    async with (
        meddler.before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        ids = [setup.beside.put(mail(f"n{number}", NOW)) for number in range(5)]
        connector = setup.connector()
        assert await connector.sync() == 5
        setup.beside.client.select("INBOX")
        setup.beside.client.uid("STORE", "1:*", "+FLAGS", "(\\Flagged)")
        validity["now"] = b"222"
        for _ in range(3):
            assert await connector.sync() == 0
        assert _sums(setup) == {id: ({"STARRED"}, set()) for id in ids}
        assert not [each for each in setup.board.reports if each["deleted"]]


def _sums(setup: ImapSetup) -> dict[str, tuple[set[str], set[str]]]:
    """By message: the labels that were reported to be added and removed, in however many reports."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for each in setup.board.reports:
        added, removed = found.setdefault(each["message_id"], (set(), set()))
        added.update(each["labels_added"])
        removed.update(each["labels_removed"])
    return found

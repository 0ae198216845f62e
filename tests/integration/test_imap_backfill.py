"""Backfill of a mailbox on Dovecot and Cyrus, with the real switchboard: by dates, killed and resumed, beside live
mail, in folders that are made anew; and its estimate.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from postroom.core.backfill.job import BackfillJob, NewBackfill
from postroom.mailboxes.backfill import walk
from postroom.mailboxes.backfill.walk import JobStopped
from postroom.mailboxes.following.request_handlers import RequestHandlers
from postroom.mailboxes.imap import source
from postroom.operations.people.audit import signature
from postroom.store.engine.database import Database
from postroom.system.wall_clock import wall_clock
from support.clocks import ManualClock
from support.imap_server import ImapServer
from support.imap_setup import ENDPOINT, OWNER, ImapSetup, imap_setup
from support.scale import scale
from support.scripted_imap import Meddler
from support.sqlite import new_sqlite

FIRST, LAST = date(2025, 1, 1), date(2025, 3, 31)
SEED = 16
SIGNED = signature("test", "admin")


def mail(number: int, subject: str = "Your invoice", sender: str = "shop@example.org") -> bytes:
    head = f"From: {sender}\r\nTo: {OWNER}\r\nSubject: {subject} {number}\r\n"
    return f"{head}Message-ID: <{subject.replace(' ', '-')}-{number}@x.example>\r\n\r\nHi.\r\n".encode()


class Backfilling:
    """One job of one mailbox, and connectors that come and go."""

    def __init__(self, setup: ImapSetup, id: UUID) -> None:
        self.setup = setup
        self.id = id

    async def job(self) -> BackfillJob:
        return await self.setup.services.parts.backfills.load(self.id)

    async def until_stopped(self) -> str:
        assignment = await self.setup.board.poll_backfill("imap", ENDPOINT)
        assert assignment is not None, "nobody gave out the job"
        connector = self.setup.connector()
        walking = connector.backfill(self.setup.board, 10, time.monotonic).begin(assignment)
        try:
            await walking.work()
        except JobStopped as stopped:
            return stopped.status
        raise AssertionError("it works until it is stopped")

    def put(self, count: int, folder: str = "INBOX", month: int = 2, subject: str = "Your invoice") -> set[str]:
        """Old mail, a minute apart."""
        first = datetime(2025, month, 3, tzinfo=UTC)
        before = set(self.setup.beside.ids(folder))
        for number in range(count):
            received = first + timedelta(minutes=number)
            moment = f'"{received:%d-%b-%Y %H:%M:%S +0000}"'
            said = self.setup.beside.client.append(folder, "", moment, mail(number, f"{subject} {folder} {month}"))
            assert said[0] == "OK", said
        return set(self.setup.beside.ids(folder)) - before

    def at_batch(self, number: int, do: Callable[[], Awaitable[object]]) -> None:
        """Do something just before this batch is ingested."""
        board, batches = self.setup.board, iter(range(1, 1_000))
        real = board.ingest_batch

        async def ingest_batch(envelopes: Sequence[Mapping[str, Any]]) -> Any:
            if next(batches) == number:
                await do()
            return await real(envelopes)

        board.ingest_batch = ingest_batch


async def begun(setup: ImapSetup, last: date = LAST, first: date = FIRST) -> Backfilling:
    new = NewBackfill("imap", ENDPOINT, ("finance",), first, last, rate_limit_per_hour=1_000_000, consent=True)
    created = await setup.services.parts.backfills.create(new, SIGNED)
    return Backfilling(setup, created.job.id)


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield opened
    await opened.close()


@pytest.fixture(params=[("dovecot", "bare"), ("cyrus", "all")], ids=["dovecot", "cyrus"])
async def setup(
    request: pytest.FixtureRequest, database: Database, clock: ManualClock, tmp_path: Path
) -> AsyncGenerator[ImapSetup]:
    server, profile = request.param
    async with imap_setup(request.getfixturevalue(server), database, clock, tmp_path, profile) as made:
        yield made


async def test_a_backfill_ingests_its_window_from_all_folders_and_marks_nothing_as_read(setup: ImapSetup) -> None:
    backfilling = await begun(setup)
    wanted = backfilling.put(8) | backfilling.put(3, "Archive", month=1)
    backfilling.put(2, "INBOX", subject="Lunch")
    for folder in ("Sent", "Trash", "Spam", "Drafts"):
        backfilling.put(1, folder)
    setup.beside.client.append("INBOX", "", '"31-Dec-2024 23:59:59 +0000"', mail(1, "invoice-before"))
    setup.beside.client.append("INBOX", "", '"01-Apr-2025 00:00:00 +0000"', mail(1, "invoice-after"))
    assert await backfilling.until_stopped() == "completed"
    job = await backfilling.job()
    assert (job.status, job.rows_processed, job.rows_skipped, job.rows_failed) == ("completed", 11, 2, 0)
    arrived = await setup.waiting()
    assert set(arrived) == wanted
    assert {each["control"]["backfill_job_id"] for each in arrived.values()} == {str(backfilling.id)}
    assert not any("\\Seen" in each for folder in ("INBOX", "Archive") for each in setup.beside.flags(folder))


async def test_a_window_from_1970_on_ends_where_the_mail_begins(setup: ImapSetup) -> None:
    backfilling = await begun(setup, first=date(1970, 1, 1))
    wanted = backfilling.put(3)
    assert await backfilling.until_stopped() == "completed"
    assert set(await setup.waiting()) == wanted


async def test_one_message_in_two_folders_and_live_mail_are_ingested_once(setup: ImapSetup, clock: ManualClock) -> None:
    clock.forward(max(0.0, (wall_clock() - clock()).total_seconds()))
    backfilling = await begun(setup, clock().date())
    old = backfilling.put(4)
    setup.beside.client.select("INBOX")
    setup.beside.client.uid("COPY", "1:*", "Archive")
    live = setup.beside.put(mail(1, "invoice-now"))
    assert await setup.connector().sync() == 1
    assert await backfilling.until_stopped() == "completed"
    arrived = await setup.waiting()
    assert set(arrived) == {live, *old}
    assert not arrived[live]["control"].get("backfill_job_id")
    assert (await backfilling.job()).rows_processed == 5


async def test_a_connector_killed_again_and_again_counts_exactly(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    """It is canceled at any of its commands; what it knew is lost, and the next one starts from the folder."""
    kills, mails = scale(8, 50), scale(40, 95)
    print(f"seed {SEED}")
    rng, meddler = Random(SEED), Meddler()
    async with (
        meddler.before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        backfilling = await begun(setup)
        ids = backfilling.put(mails)
        backfilling.put(3, month=1, subject="Lunch")
        killed = 0
        for _ in range(kills):
            if (await backfilling.job()).status == "completed":
                break
            working = asyncio.create_task(backfilling.until_stopped())
            meddler.ask = _ending(working, rng.randrange(10, 60))
            await asyncio.wait({working})
            killed += working.cancelled()
            clock.forward(301)
        meddler.ask = lambda line: line
        if (await backfilling.job()).status != "completed":
            assert await backfilling.until_stopped() == "completed"
        assert killed > 1
        job = await backfilling.job()
        assert (job.rows_processed, job.rows_skipped, job.rows_failed) == (mails, 3, 0)
        assert set(await setup.waiting()) == ids
        assert not any("\\Seen" in each for each in setup.beside.flags())


def _ending(task: asyncio.Task[str], lines: int) -> Callable[[bytes], bytes]:
    """Cancels the task at this line that it sends."""
    left = iter(range(lines))

    def ask(line: bytes) -> bytes:
        if next(left, None) is None:
            task.cancel()
        return line

    return ask


@pytest.mark.parametrize("when", ["while it is listed", "while it is read"])
async def test_a_folder_made_anew_in_the_middle_loses_nothing_and_repeats_nothing(
    dovecot: ImapServer,
    database: Database,
    clock: ManualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    monkeypatch.setattr(walk, "LONGEST_PAUSE_S", 0.01)
    validity = {"now": b"111"}
    meddler = Meddler(answers=lambda chunk: re.sub(rb"UIDVALIDITY \d+", b"UIDVALIDITY " + validity["now"], chunk))

    async def make_anew() -> None:
        validity["now"] = b"222"
        meddler.cut()

    def after_the_dates(line: bytes) -> bytes:
        if b"UID FETCH" in line and b"HEADER.FIELDS" in line and validity["now"] == b"111":
            validity["now"] = b"222"
            meddler.cut()
        return line

    async with (
        meddler.before(dovecot.port) as port,
        imap_setup(dovecot, database, clock, tmp_path, port=port) as setup,
    ):
        backfilling = await begun(setup)
        ids = backfilling.put(25)
        if when == "while it is read":
            backfilling.at_batch(2, make_anew)
        else:
            meddler.ask = after_the_dates
        assert await backfilling.until_stopped() == "completed"
        assert validity["now"] == b"222"
        assert (await backfilling.job()).rows_processed == 25
        assert set(await setup.waiting()) == ids


async def test_the_estimate_counts_and_judges_what_a_backfill_would_read(setup: ImapSetup) -> None:
    backfilling = Backfilling(setup, UUID(int=0))
    backfilling.put(6)
    backfilling.put(3, "Archive", subject="Lunch")
    backfilling.put(2, "Sent")
    backfilling.put(4, month=6)
    connector = setup.connector()
    days = {"date_from": FIRST.isoformat(), "date_to": LAST.isoformat()}
    found = await RequestHandlers(connector, connector.source).backfill_sample({"categories": ["finance"], **days})
    assert found["total"] == {"counted": 11, "about": 11}
    assert found["candidates"] == found["categories"]["finance"] == {"counted": 9, "about": 9}
    assert found["sample"] == {"read": 9, "in_category": 6, "full": 6, "metadata": 0, "skipped": 0}
    assert await setup.waiting() == {}
    assert not any("\\Seen" in each for each in setup.beside.flags())
    asked = {"categories": ["finance", "travel", "health"], **days}
    together = await RequestHandlers(connector, connector.source).backfill_sample(asked)
    assert together["queries"] == 1, "one window is listed once, however many categories there are"
    assert {name: count["counted"] for name, count in together["categories"].items()} == dict.fromkeys(
        ("finance", "travel", "health"), 9
    )
    assert together["candidates"] == {"counted": 9, "about": 9}
    assert together["sample"]["read"] == 9


async def test_more_messages_than_the_connector_remembers_the_places_of_are_all_ingested(
    dovecot: ImapServer, database: Database, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MOST_LISTED", 5)
    async with imap_setup(dovecot, database, clock, tmp_path) as setup:
        backfilling = await begun(setup)
        ids = backfilling.put(20)
        assert await backfilling.until_stopped() == "completed"
        assert set(await setup.waiting()) == ids

"""`classify` starts in the order of the picker, with any number of workers and slots."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from postroom.core.jobs.types import CATALOGUE
from postroom.core.queue.picker import Head, pick_many
from postroom.core.queue.queues import EMAIL
from postroom.intake.buffer import Buffer
from postroom.intake.dispatcher import MOST_OUTSTANDING, Dispatcher
from postroom.intake.intake import Intake
from postroom.jobs.run import JobRun
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import connect_database
from postroom.store.mail import mail
from postroom.triage.handlers.payload import uuid_field
from support.clocks import ManualClock
from support.product import ENDPOINT, OWNER, envelope
from support.scale import scale

PATIENCE_S = 600
BATCH = 100


@pytest.fixture
async def second_database(
    database: Database, emptied_database_url: str | None, tmp_path: Path
) -> AsyncIterator[Database]:
    """The same database, opened once more, as another process would."""
    opened = connect_database(tmp_path, emptied_database_url)
    yield opened
    await opened.close()


class Begun:
    """The handler of `classify`: notes which message it was given, in the order in which that happened."""

    def __init__(self, database: Database, awaited: int) -> None:
        self.subjects: list[str] = []
        self.all_there = asyncio.Event()
        self._database = database
        self._awaited = awaited

    async def __call__(self, run: JobRun) -> None:
        place = len(self.subjects)
        self.subjects.append("")
        message = await self._database.run(mail.load_message(uuid_field(run.job, "message_id")))
        self.subjects[place] = message.facts.subject
        if len(self.subjects) == self._awaited and all(self.subjects):
            self.all_there.set()


@contextlib.asynccontextmanager
async def working(database: Database, handler: Any, concurrency: int) -> AsyncGenerator[None]:
    options = WorkerOptions(concurrency=concurrency, poll=timedelta(milliseconds=20))
    worker = Worker(database, CATALOGUE, {"classify": handler}, options, rng=Random(7))
    task = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await task


@contextlib.asynccontextmanager
async def dispatching(database: Database) -> AsyncGenerator[None]:
    task = asyncio.create_task(Dispatcher(database, CATALOGUE, Buffer(database), EMAIL).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def arrived(database: Database, clock: ManualClock, urgent: int, others: int) -> list[str]:
    """So many `high_priority` and then so many `default`; returns their names in the order of the picker."""
    await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, clock()))
    names = [f"high_priority {number}" for number in range(urgent)] + [f"default {number}" for number in range(others)]
    intake = Intake(database, None)
    for at in range(0, len(names), BATCH):
        await intake.ingest_batch([_mail(name) for name in names[at : at + BATCH]])
    lines = {
        tier: [Head(place, clock()) for place, name in enumerate(names) if name.startswith(tier)]
        for tier in ("high_priority", "default")
    }
    batch = pick_many(EMAIL, lines, {}, clock(), len(names))
    return [names[each.head.seq] for each in batch.picks]


def _mail(name: str) -> dict[str, Any]:
    given = envelope(name, {"headers": [["Subject", name]]})
    return {**given, "control": {"policy_tier": name.split()[0]}}


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_with_few_places_mail_is_classified_in_the_order_of_the_picker(
    database: Database, clock: ManualClock, concurrency: int
) -> None:
    picked = await arrived(database, clock, scale(60, 1_200), scale(8, 100))
    begun = Begun(database, len(picked))
    async with dispatching(database), working(database, begun, concurrency), asyncio.timeout(PATIENCE_S):
        await begun.all_there.wait()
    assert begun.subjects == picked
    assert begun.subjects.index("default 0") == 10, "after ten of the tier above"


async def test_with_several_workers_nobody_begins_further_from_their_place_than_may_be_outstanding(
    database: Database, second_database: Database, clock: ManualClock
) -> None:
    picked = await arrived(database, clock, scale(60, 1_200), scale(8, 100))
    begun = Begun(database, len(picked))
    async with (
        dispatching(database),
        working(database, begun, 2),
        working(second_database, begun, 2),
        asyncio.timeout(PATIENCE_S),
    ):
        await begun.all_there.wait()
    assert sorted(begun.subjects) == sorted(picked)
    places = {name: place for place, name in enumerate(picked)}
    assert max(abs(places[name] - place) for place, name in enumerate(begun.subjects)) <= MOST_OUTSTANDING

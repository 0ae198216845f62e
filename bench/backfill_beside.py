"""New mail alone and beside a backfill: `python -m bench.backfill_beside product TERMS ARCHIVE NEW_MAIL BEFORE_S`.

The product runs here, all of it in one process, as `postroom serve` runs it. An emulator in a process of its own holds
a generated archive of ARCHIVE messages, delivers NEW_MAIL messages of about 6 KB at random moments, about two a second,
some of them together, and tells of them by its Pub/Sub. One rule decides on them. A message's time counts from its
delivery to its decision, durable on SQLite. Then the same mail comes once more while a backfill of every category runs
at the highest rate that a job may have; that has gone on for BEFORE_S by then. Decisions about what the backfill brings
in are made meanwhile. TERMS are those of Google's quota, on both sides: for a `new` project, for an `older` one, which
may read eleven times as much, or `none`.
"""

import asyncio
import json
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TypeVar, cast
from uuid import UUID

import uvloop

from postroom.compose.serve import run_product
from postroom.core.backfill.job import BackfillJob
from postroom.core.rules.draft import RuleDraft
from postroom.operations.backfill.backfill import Backfills, backfills_of
from postroom.settings.reading import Settings
from postroom.store.engine.database import Script, Statement, Step, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import migrate
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.rules.rules import add_rules
from postroom.system.private_files import DATABASE
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.archive import fill_archive, oldest_day
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.quota import NEW_PROJECT, Limits

from .backfill import SEED, create_backfill
from .live_beside import SUBSCRIPTION, TOPIC, delivered, spent
from .live_mail import TOKEN
from .order import Terms, answer
from .road import DOMAIN, product_settings
from .tiering import USER, messages
from .told_emulator import ToldEmulator, Words, serve, told_emulator

T = TypeVar("T")

LIMITS: dict[Terms, Limits] = {
    "new": NEW_PROJECT,
    "older": Limits(per_user_minute=15_000, prices={**NEW_PROJECT.prices, "messages.get": 5}),
    "none": Limits(),
}
WARM_UP = 20
PATIENCE_S = 300.0
LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class Outcome:
    """Seconds from delivery to decision, messages that the backfill read in a minute, its state at the end, and what
    Google saw of it.
    """

    alone: list[float]
    beside: list[float]
    backfilled_a_minute: float
    status: str
    most_units: int
    refused: int


async def emulate(terms: Terms, archive: int) -> None:
    mailbox = Mailbox(USER, Random(SEED))
    fill_archive(mailbox, SEED, archive)
    given = [raw for raw, rule in messages() if rule != "known_contact"]
    emulator = Emulator(mailbox, TOKEN, limits=LIMITS[terms])
    emulator.pubsub.subscribe(SUBSCRIPTION, TOPIC)

    async def deliver(told: Words) -> Words:
        return {"delivered_at": await delivered(mailbox, given, told["new_mail"]), **spent(emulator)}

    await serve(emulator, {}, deliver)


class _TimedDatabase(SqliteDatabase):
    """The database, with the moment at which the decision about each message was durable, by the provider's id.

    That clock is one for the whole machine.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._provider_ids: dict[UUID, str] = {}
        self._decided_at: dict[str, float] = {}
        self._news = asyncio.Event()

    async def run(self, transaction: Transaction[T]) -> T:
        if transaction.name not in ("store_messages", "record_decision"):
            return await super().run(transaction)
        seen: list[Statement] = []
        watched = transaction._replace(begin=lambda: _watched(transaction.begin(), seen))
        result = await super().run(watched)
        now = time.monotonic()
        for statement in seen:
            self._note(statement, now)
        return result

    def _note(self, statement: Statement, now: float) -> None:
        if statement.name == "insert_message":
            id, _account, _thread, _inbox, provider_id, *_ = statement.parameters
            self._provider_ids[id] = provider_id
        elif statement.name == "insert_decision":
            _id, _account, message_id, *_ = statement.parameters
            self._decided_at.setdefault(self._provider_ids[message_id], now)
            self._news.set()

    async def latencies(self, delivered_at: dict[str, float]) -> list[float]:
        async with asyncio.timeout(PATIENCE_S):
            while not delivered_at.keys() <= self._decided_at.keys():
                self._news.clear()
                await self._news.wait()
        return [self._decided_at[id] - at for id, at in delivered_at.items()]


def _watched(script: Script[T], seen: list[Statement]) -> Script[T]:
    """The same script; its statements are noted, again from the start when it is run again."""
    seen.clear()
    step: Step = next(script)
    while True:
        if isinstance(step, Statement):
            seen.append(step)
        rows = yield step
        try:
            step = script.send(rows)
        except StopIteration as end:
            return end.value


async def run(terms: Terms, archive: int, new_mail: int, before_s: int) -> Outcome:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = _TimedDatabase(folder / DATABASE)
        stack.push_async_callback(database.close)
        await migrate(database)
        rule = (new_id(), RuleDraft("Shop", {"sender_domain": DOMAIN}, "archive", {}))
        await database.run(add_rules([rule], wall_clock()))
        emulator = await stack.enter_async_context(told_emulator("bench.backfill_beside", terms, str(archive)))
        settings = product_settings(folder, emulator.said["address"], LIMITS[terms])
        stop, ready = asyncio.Event(), asyncio.Event()
        running = asyncio.create_task(run_product(settings, database, stop, lambda _address: ready.set()))
        running.add_done_callback(lambda _task: ready.set())
        await ready.wait()
        measuring = asyncio.create_task(_measure(emulator, database, settings, new_mail, before_s))
        await asyncio.wait({running, measuring}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        await running
        # Nobody waits for the next hint any more; with one, the emulator need not wait for it either.
        await emulator.tell({"new_mail": 1})
        return await measuring


async def _measure(
    emulator: ToldEmulator, database: _TimedDatabase, settings: Settings, new_mail: int, before_s: int
) -> Outcome:
    told = await emulator.tell({"new_mail": WARM_UP})
    await database.latencies(told["delivered_at"])
    # The quota that the start took is back by then.
    await asyncio.sleep(before_s)
    told = await emulator.tell({"new_mail": new_mail})
    alone = await database.latencies(told["delivered_at"])
    backfills = backfills_of(database, settings)
    await _start(backfills)
    await asyncio.sleep(before_s)
    read, began_at = _read(await _only(backfills)), time.monotonic()
    told = await emulator.tell({"new_mail": new_mail})
    beside = await database.latencies(told["delivered_at"])
    job, minutes = await _only(backfills), (time.monotonic() - began_at) / 60
    a_minute = (_read(job) - read) / minutes
    return Outcome(alone, beside, a_minute, job.status, told["most_units"], told["refused"])


async def _start(backfills: Backfills) -> None:
    """Create the backfill, and wait until it brings in mail."""
    now = wall_clock()
    await create_backfill(backfills, oldest_day(now), now.date() - timedelta(days=1))
    async with asyncio.timeout(PATIENCE_S):
        while not (await _only(backfills)).rows_processed:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(LOOK_EVERY_S)


async def _only(backfills: Backfills) -> BackfillJob:
    (job,) = await backfills.list_jobs()
    return job


def _read(job: BackfillJob) -> int:
    return job.rows_processed + job.rows_skipped


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        terms = cast("Terms", sys.argv[2])
        numbers = [int(word) for word in sys.argv[3:]]
        if sys.argv[1] == "emulator":
            runner.run(emulate(terms, *numbers))
        else:
            answer(json.dumps(asdict(runner.run(run(terms, *numbers)))))

"""The setup for chaos runs of the switchboard: a producer, processes that die, and what all of them were told."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from random import Random
from uuid import UUID

from postroom.intake.buffer import Buffer
from postroom.intake.intake import Intake
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.intake.acceptance import Accepted
from postroom.store.intake.inbox import LeaseRef
from postroom.system.wall_clock import wall_clock
from support.clocks import ManualClock
from support.crash.evidence import Place
from support.crash.gaps import Gap, GapsSeen
from support.crash.inbox_evidence import (
    answers,
    check_deliveries,
    check_nothing_vanished,
    check_streaks,
    check_told,
    note_picks,
)
from support.crash.recovery import check_comes_back, drain_in_order, held_by_the_dead
from support.crash.traffic import LEASE, POLICIES, QUEUES, number_of, open_account, rounds, whole_round
from support.fork_server import ForkServer, fork_server
from support.processes import Child, ProcessGroup

INTAKE = "support.crash.intake_process"
CONSUMER = "support.crash.consumer_process"
PACE_S = 0.05
AFTERWARDS = 20


class SwitchboardSetup:
    """One database, and everyone who works with it."""

    def __init__(self, place: Place, database: Database, children: ForkServer, rng: Random) -> None:
        self.place = place
        self._database = database
        self._fork_server = children
        self._rng = rng
        self._children: list[Child] = []
        self._told: dict[str, set[UUID]] = {}

    @property
    def told(self) -> dict[str, set[UUID]]:
        """What producers were told, the dead and the living: the ids of each message."""
        told = answers(self._children)
        for name, ids in self._told.items():
            told[name] = told.get(name, set()) | ids
        return told

    async def start(self, module: str, *words: str) -> Child:
        number = len(self._children)
        own = ("--seed", str(self._rng.randrange(2**32))) if module == CONSUMER else ("--prefix", f"p{number}")
        child = await self._fork_server.start(module, *self.place.arguments(), *own, *words)
        self._children.append(child)
        return child

    async def kill_in(self, gap: Gap, form: str, hit: int = 1) -> None:
        """One process that works until it comes to the gap, and dies there."""
        words = ("--halt", str(gap), "--hit", str(hit))
        if gap.verb == "accept_many":
            child = await self.start(INTAKE, "--form", form, *words)
        else:
            child = await self.start(CONSUMER, *words)
        await child.hear("halt")
        await child.kill()

    async def ingest(self, prefix: str, number: int, now: datetime | None = None) -> None:
        """One round, by the producer that lives."""
        intake = Intake(self._database, None, wall_clock if now is None else lambda: now, queues=QUEUES)
        sent = whole_round(prefix, number)
        for each, answer in zip(sent, await intake.ingest_batch([each.data for each in sent]), strict=True):
            assert isinstance(answer, Accepted) == each.honest, (each.name, answer)
            if isinstance(answer, Accepted):
                self._told.setdefault(each.name, set()).add(answer.request_id)

    @contextlib.asynccontextmanager
    async def fed(self) -> AsyncGenerator[None]:
        """While this lasts, there is always something new."""
        stopping = asyncio.Event()

        async def feed() -> None:
            number = 0
            while not stopping.is_set():
                await self.ingest("feeder", number)
                number += 1
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), PACE_S)

        feeding = asyncio.create_task(feed())
        try:
            yield
        finally:
            stopping.set()
            await feeding

    async def recover(self) -> str:
        """All are dead: what they left is sound, comes back, goes out in order, and is known when it comes again."""
        await check_told(self.place, self.told)
        await check_deliveries(self.place, self._children)
        leases = await check_streaks(self.place, POLICIES)
        await check_nothing_vanished(self.place)
        held = await held_by_the_dead(self.place)
        now = await check_comes_back(self.place, self._database, held)
        for number in range(AFTERWARDS):
            await self.ingest("after", number, now)
        picks = await drain_in_order(self.place, self._database, now, self._rng)
        await self._hand_in_again(now)
        states = await check_nothing_vanished(self.place)
        await check_deliveries(self.place, self._children)
        await self.place.check_integrity()
        self.place.check_pages()
        return f"{leases} leases, {len(held)} messages held by the dead, {picks} picks in order, {dict(states)}"

    async def _hand_in_again(self, now: datetime) -> None:
        """As producers do that were killed: all from the start, and what they were about to say next."""
        told = self.told
        last: dict[str, int] = {}
        for prefix, number in map(number_of, told):
            last[prefix] = max(number, last.get(prefix, 0))
        for prefix, number in last.items():
            for each in range(number + 2):
                await self.ingest(prefix, each, now)
        await check_told(self.place, self.told)


@contextlib.asynccontextmanager
async def switchboard_setup(place: Place, processes: ProcessGroup, rng: Random) -> AsyncGenerator[SwitchboardSetup]:
    database = await open_database(place.folder, place.url)
    try:
        await open_account(database)
        await database.run(note_picks(database.dialect))
        async with fork_server(place.folder, processes, INTAKE, CONSUMER) as children:
            yield SwitchboardSetup(place, database, children, rng)
    finally:
        await database.close()


async def tour(folder: Path) -> GapsSeen:
    """Every verb of acceptance and of consumers once, through all their statements; returns the gaps on the way."""
    opened = await open_database(folder)
    await open_account(opened)
    database, clock = GapsSeen(opened), ManualClock()
    intake, buffer = Intake(database, None, clock, queues=QUEUES), Buffer(database, QUEUES, clock)
    for number, sent in zip(range(5), rounds("tour"), strict=False):
        await intake.ingest_batch([each.data for each in sent])
        clock.forward(0.01)
        for queue in QUEUES.names:
            held = [LeaseRef(each.message_id, each.lease_token) for each in await buffer.next(queue, 25)]
            await buffer.nack(held[1:], "not now") if number else await buffer.ack(held)
    for _ in range(6):
        clock.forward(LEASE.total_seconds() + 0.01)
        await buffer.sweep()
        for queue in QUEUES.names:
            await buffer.next(queue, 25)
    await intake.ingest_batch([each.data for each in whole_round("stale", 0)])
    clock.forward(1)
    await buffer.sweep()
    await intake.ingest_batch([each.data for each in whole_round("staler", 0)])
    clock.forward(1)
    await buffer.next("gateway")
    await database.close()
    return database

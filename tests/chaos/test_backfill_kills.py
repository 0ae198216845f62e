"""A connector killed again and again during a backfill, while live mail arrives: the job completes, each message
arrives once, and the counters equal the truth.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from uuid import UUID

from postroom.core.backfill.job import NewBackfill
from postroom.operations.people.audit import signature
from postroom.store.engine.opening import open_database
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.crash.evidence import Place
from support.fork_server import ForkServer, fork_server
from support.patience import PATIENCE_S
from support.processes import Child, ProcessGroup
from support.scale import scale
from support.switchboard import OWNER, Served, open_account, served, services_on

CONNECTOR = "support.crash.backfill_process"
ENDPOINT = f"gmail:user:{OWNER}"
TOKEN = "token-of-the-sandbox"
LEASE_S = 300.0
FIRST, DAYS = date(2024, 1, 1), 366


class MovedClock:
    """The time of the switchboard: real, and moved on past the lease of each connector that was killed."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return wall_clock() + self.ahead


@dataclass
class KilledBackfill:
    """A mailbox, a switchboard, and the connector of the moment."""

    folder: Path
    emulator: Emulator
    gmail: str
    board: Served
    token: str
    fork_server: ForkServer
    clock: MovedClock
    rng: Random
    history: set[str] = field(default_factory=set[str])
    live: set[str] = field(default_factory=set[str])
    unwanted: int = 0

    async def start(self) -> Child:
        child = await self.fork_server.start(
            CONNECTOR,
            *("--folder", str(self.folder), "--gmail", self.gmail, "--switchboard", f"{self.board.address}/mcp"),
            *("--token", self.token, "--gmail-token", TOKEN, "--email", OWNER),
        )
        await child.hear("ready")
        return child

    def fill(self, mails: int) -> None:
        for number in range(mails):
            day = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=self.rng.random() * DAYS)
            if number % 4 == 3:
                self._deliver(f"Your invoice {number}", day, "SENT")
                self.unwanted += 1
            else:
                self.history.add(self._deliver(f"Your invoice {number}", day))

    def deliver_live(self) -> None:
        self.live.add(self._deliver("Your invoice of today", None))

    def _deliver(self, subject: str, at: datetime | None, label: str = "INBOX") -> str:
        raw = f"From: shop@store.example\r\nTo: {OWNER}\r\nSubject: {subject}\r\n\r\nHello.\r\n".encode()
        return self.emulator.mailbox.deliver(raw, (label,), at).id

    async def create(self) -> UUID:
        last = FIRST + timedelta(days=DAYS - 1)
        new = NewBackfill("gmail", ENDPOINT, ("finance",), FIRST, last, rate_limit_per_hour=36_000, consent=True)
        return (await self.board.services.parts.backfills.create(new, signature("test", "admin"))).job.id

    async def until_completed(self, id: UUID, child: Child) -> None:
        async def is_completed() -> bool:
            return (await self.board.services.parts.backfills.load(id)).status == "completed"

        await child.until(is_completed, patience_s=10 * PATIENCE_S)

    async def arrived(self) -> dict[str, bool]:
        """What is in the queue, by Gmail's ids, and whether it is history."""
        found: list[tuple[str, bool]] = []
        while leased := await self.board.services.buffer.next("email", 100):
            found += [(each.envelope["event"]["external_event_id"], each.tier == "history") for each in leased]
        assert len(dict(found)) == len(found), "something came twice"
        return dict(found)


@asynccontextmanager
async def killed_backfill(place: Place, processes: ProcessGroup, rng: Random) -> AsyncGenerator[KilledBackfill]:
    clock = MovedClock()
    emulator = Emulator(Mailbox(OWNER, rng), TOKEN, seed=rng.randrange(2**32))
    database = await open_database(place.folder, place.url)
    services = services_on(database, clock)
    await open_account(services)
    state = place.folder / "state"
    try:
        async with (
            running_emulator(emulator) as gmail,
            served(services) as board,
            fork_server(place.folder, processes, CONNECTOR) as children,
        ):
            token = await board.token("connector", ENDPOINT)
            yield KilledBackfill(state, emulator, gmail, board, token, children, clock, rng)
    finally:
        await database.close()


async def test_a_connector_killed_during_a_backfill_completes_it_and_counts_exactly(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    kills, mails = scale(5, 50), scale(300, 3_000)
    async with killed_backfill(place, children, rng) as setup:
        setup.fill(mails)
        id = await setup.create()
        connector = await setup.start()
        for _ in range(kills):
            await connector.hear("read")
            await asyncio.sleep(rng.uniform(0, 0.3))
            await connector.kill()
            setup.deliver_live()
            setup.clock.ahead += timedelta(seconds=LEASE_S + 1)
            if (await setup.board.services.parts.backfills.load(id)).status == "completed":
                break
            connector = await setup.start()
        await setup.until_completed(id, connector)
        job = await setup.board.services.parts.backfills.load(id)
        await connector.kill()
        arrived = await setup.arrived()
    assert {mail for mail, is_history in arrived.items() if is_history} == setup.history
    assert {mail for mail, is_history in arrived.items() if not is_history} <= setup.live
    assert (job.rows_processed, job.rows_skipped, job.rows_failed) == (len(setup.history), setup.unwanted, 0)
    assert job.categories == {"finance": len(setup.history)}

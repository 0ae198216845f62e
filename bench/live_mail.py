"""The two processes of the live-mail claim: `python -m bench.live_mail emulator COUNT`, `… connector COUNT ADDRESS`.

The emulator holds COUNT messages of about 6 KB that have come since a moment in its history, and knows no quota; it
prints its address and that moment. The connector goes on from there: it reads the history, the messages in batches of
25, gives them their tiers and hands them in to the switchboard in its own process, each durable on SQLite before the
next batch is read. It prints how long that took, by the clock and by the processor, and how much memory it took more
once what it remembers was full.
"""

import asyncio
import json
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

import httpx2
import uvloop

from postroom.core.queue.queues import Queues
from postroom.core.roles import Principal, Role
from postroom.core.tally import Tally
from postroom.intake.buffer import Buffer
from postroom.intake.intake import Intake
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.interfaces.http.token_check import TokenCheck
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.settings.reading import Settings
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.sources.runtime import ConnectorHealth
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.intake.history import count_states
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator

from .order import answer
from .tiering import CONTACT, USER, messages

TOKEN = "bench"
ENDPOINT = f"gmail:user:{USER}"
# By then whatever the connector remembers of the past has reached its full size.
SETTLED = 0.5


@dataclass(frozen=True)
class Measured:
    """Seconds by the clock and by the processor, messages accepted, and MiB that memory grew in the second half."""

    seconds: float
    cpu_s: float
    accepted: int
    grown_mib: float

    def to_json(self) -> str:
        return json.dumps(asdict(self))


async def emulate(count: int) -> None:
    mailbox = Mailbox(USER, Random(2026), remembered=count + 1)
    since = mailbox.history_id
    given = [raw for raw, _ in messages()]
    for number in range(count):
        mailbox.deliver(given[number % len(given)])
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with running_emulator(Emulator(mailbox, TOKEN)) as address:
        print(json.dumps({"address": address, "since": since}), flush=True)
        await stop.wait()


class _Gauge(ConnectorHealth):
    """Notes how much memory there is when half of the messages are in, and at the end."""

    def __init__(self, count: int) -> None:
        super().__init__(wall_clock)
        self._settled_at = int(count * SETTLED)
        self._settled_mib: float | None = None

    def reach(self, cursor: str) -> None:
        super().reach(cursor)
        if self._settled_mib is None and self.counters["ingested"] >= self._settled_at:
            self._settled_mib = memory_mib()

    @property
    def grown_mib(self) -> float:
        return memory_mib() - (self._settled_mib or 0.0)


async def connect(count: int, emulator: Mapping[str, Any]) -> Measured:
    async def token() -> str:
        return TOKEN

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = await open_database(folder)
        services = await services_on(database)
        checkpoint = Checkpoint(folder / "checkpoint.json")
        checkpoint.write(emulator["since"])
        gauge = _Gauge(count)
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            connector = GmailConnector(
                GmailClient(http, emulator["address"], token),
                switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT))),
                checkpoint,
                email=USER,
                endpoint_identity=ENDPOINT,
                clock=wall_clock,
                health=gauge,
                knowledge=Knowledge([USER], contacts=lambda: frozenset({CONTACT})),
                folder=folder,
            )
            clock, cpu = time.perf_counter(), time.process_time()
            await connector.sync()
            seconds, cpu_s = time.perf_counter() - clock, time.process_time() - cpu
        states = await database.run(count_states("email"))
        await database.close()
        return Measured(seconds, cpu_s, sum(states.values()), gauge.grown_mib)


async def services_on(database: Database, users: Sequence[str] = (USER,)) -> Services:
    """The switchboard's services, with the accounts that the mail is for."""
    for each in users:
        await database.run(keep_account(new_id(), "gmail", f"gmail:user:{each}", each, wall_clock()))
    queues, tally = Queues(), Tally()
    return Services(
        settings=Settings.model_validate({}),
        intake=Intake(database, None, queues=queues, tally=tally),
        buffer=Buffer(database, queues, tally=tally),
        database=database,
        queues=queues,
        token_check=TokenCheck(database, wall_clock),
        tally=tally,
        clock=wall_clock,
    )


def memory_mib(process: int | Literal["self"] = "self") -> float:
    """What a process has in memory now, not what it had at most."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if sys.argv[1] == "emulator":
            runner.run(emulate(int(sys.argv[2])))
        else:
            measured = runner.run(connect(int(sys.argv[2]), json.loads(sys.argv[3])))
            answer(measured.to_json())

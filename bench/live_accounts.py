"""Many accounts in one process: `python -m bench.live_accounts connectors ACCOUNTS PER_SECOND SECONDS`.

An emulator in a process of its own delivers PER_SECOND messages of about 6 KB a second to each of ACCOUNTS mailboxes.
Here a connector for each, with the quota, the pause between two looks and the switchboard that the product has, takes
them in. What is printed is the processor time of this process alone, with its database.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import uvloop

from postroom.compose.tasks import settle_memory
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.quota import Quota
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.sources.runtime import ConnectorHealth
from postroom.store.engine.opening import open_database
from postroom.store.intake.history import count_states
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox

from .live_mail import Measured, services_on
from .order import answer
from .tiering import CONTACT, messages
from .told_emulator import ToldEmulator, Words, serve, told_emulator

# As `gmail.poll_s` is unless somebody sets it.
POLL_S = 5.0
PATIENCE_S = 60.0


def user(number: int) -> str:
    return f"user{number}@lindqvist.example"


def token(number: int) -> str:
    return f"bench-{number}"


async def emulate(accounts: int) -> None:
    mailboxes = [Mailbox(user(number), Random(number)) for number in range(accounts)]
    emulator = Emulator(mailboxes[0], token(0))
    for number, mailbox in enumerate(mailboxes[1:], 1):
        emulator.add(mailbox, token(number))
    given = [raw for raw, _ in messages()]

    async def deliver(told: Words) -> Words:
        begun_at = time.monotonic()
        for tick in range(told["seconds"] * told["per_second"]):
            await asyncio.sleep(max(0.0, begun_at + tick / told["per_second"] - time.monotonic()))
            for number, mailbox in enumerate(mailboxes):
                mailbox.deliver(given[(tick + number) % len(given)])
        return {"seconds": time.monotonic() - begun_at}

    await serve(emulator, {"since": [mailbox.history_id for mailbox in mailboxes]}, deliver)


class _Progress:
    """How many messages all the connectors together have handed in."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.connectors: list[ConnectorHealth] = []
        self.all_in = asyncio.Event()

    def look(self) -> None:
        if sum(each.counters["ingested"] for each in self.connectors) >= self._count:
            self.all_in.set()


class _CountedHealth(ConnectorHealth):
    def __init__(self, progress: _Progress) -> None:
        super().__init__(wall_clock)
        self._progress = progress
        progress.connectors.append(self)

    def reach(self, cursor: str) -> None:
        super().reach(cursor)
        self._progress.look()


async def connect(accounts: int, per_second: int, seconds: int) -> Measured:
    count, stop = accounts * per_second * seconds, asyncio.Event()
    progress = _Progress(count)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = await open_database(folder)
        stack.push_async_callback(database.close)
        emulator = await stack.enter_async_context(told_emulator("bench.live_accounts", str(accounts)))
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=60))
        services = await services_on(database, [user(number) for number in range(accounts)])
        connectors = [_connector(number, emulator, http, services, progress, folder) for number in range(accounts)]
        settle_memory()
        clock, cpu = time.perf_counter(), time.process_time()
        running = [asyncio.create_task(each) for each in _staggered(connectors, stop)]
        await emulator.tell({"per_second": per_second, "seconds": seconds})
        async with asyncio.timeout(PATIENCE_S):
            await progress.all_in.wait()
        taken, cpu_s = time.perf_counter() - clock, time.process_time() - cpu
        stop.set()
        await asyncio.gather(*running)
        states = await database.run(count_states("email"))
        return Measured(taken, cpu_s, sum(states.values()), 0.0)


def _staggered(connectors: Sequence[GmailConnector], stop: asyncio.Event) -> list[Coroutine[Any, Any, None]]:
    """Accounts are connected at any time, and do not all look in the same moment."""

    async def run(connector: GmailConnector, after: float) -> None:
        await asyncio.sleep(after)
        await connector.run(timedelta(seconds=POLL_S), stop)

    return [run(each, POLL_S * number / len(connectors)) for number, each in enumerate(connectors)]


def _connector(
    number: int,
    emulator: ToldEmulator,
    http: httpx2.AsyncClient,
    services: Services,
    progress: _Progress,
    folder: Path,
) -> GmailConnector:
    async def own_token() -> str:
        return token(number)

    email = user(number)
    endpoint, own = f"gmail:user:{email}", folder / str(number)
    own.mkdir()
    checkpoint = Checkpoint(own / "checkpoint.json")
    checkpoint.write(emulator.said["since"][number])
    return GmailConnector(
        GmailClient(http, emulator.said["address"], own_token, quota=Quota()),
        switchboard_within(build_server(services, Principal(Role.CONNECTOR, endpoint))),
        checkpoint,
        email=email,
        endpoint_identity=endpoint,
        clock=wall_clock,
        health=_CountedHealth(progress),
        knowledge=Knowledge([email], contacts=lambda: frozenset({CONTACT})),
        folder=own,
    )


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        numbers = [int(word) for word in sys.argv[2:]]
        if sys.argv[1] == "emulator":
            runner.run(emulate(*numbers))
        else:
            measured = runner.run(connect(*numbers))
            answer(measured.to_json())

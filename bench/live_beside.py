"""New mail alone and beside a bulk read: `python -m bench.live_beside connector NEW_MAIL BULK_BEFORE_S`.

An emulator in a process of its own, with Google's quota, delivers NEW_MAIL messages at random moments, about two a
second, some of them together; its Pub/Sub tells the connector here. Each message's time counts from its delivery to its
acceptance, durable on SQLite. Then the same mail comes once more while old mail is read with the same client and quota,
in batches of 25, as fast as bulk may; that has gone on for BULK_BEFORE_S by then. All of it takes place in real time.
"""

import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from random import Random

import httpx2
import uvloop

from postroom.compose.tasks import settle_memory
from postroom.core.errors import PostroomError
from postroom.core.roles import Principal, Role
from postroom.intake.intake import Intake
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.gmail.client import PARTS, GmailClient
from postroom.mailboxes.gmail.following.hints import PubSubHints
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.quota import Quota
from postroom.mailboxes.gmail.resources import Message
from postroom.mailboxes.gmail.tokens import PlainTokens
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.store.engine.opening import open_database
from postroom.store.intake.acceptance import Accepted
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.quota import NEW_PROJECT

from .live_mail import ENDPOINT, TOKEN, services_on
from .order import answer
from .tiering import CONTACT, USER, messages
from .told_emulator import ToldEmulator, Words, serve, told_emulator

TOPIC, SUBSCRIPTION = "projects/home/topics/gmail", "projects/home/subscriptions/postroom"
TOGETHER = (1, 1, 1, 1, 3, 8)
MEAN_GAP_S = 1.25
READERS = 8
WARM_UP = 20
SEED = 2026
# Hints tell of everything; this only has to be longer than a measurement.
POLL = timedelta(hours=1)
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Outcome:
    """Seconds from delivery to acceptance, old messages read in a minute, and what Google saw of it."""

    alone: list[float]
    beside: list[float]
    bulk_a_minute: float
    most_units: int
    refused: int


async def emulate() -> None:
    mailbox = Mailbox(USER, Random(SEED))
    given = [raw for raw, _ in messages()]
    old = [mailbox.deliver(raw).id for raw in given]
    emulator = Emulator(mailbox, TOKEN, limits=NEW_PROJECT)
    emulator.pubsub.subscribe(SUBSCRIPTION, TOPIC)

    async def deliver(told: Words) -> Words:
        return {"delivered_at": await delivered(mailbox, given, told["new_mail"]), **spent(emulator)}

    await serve(emulator, {"since": mailbox.history_id, "old": old}, deliver)


async def delivered(mailbox: Mailbox, given: Sequence[bytes], count: int) -> dict[str, float]:
    """When each was delivered: the same at the same moments each time, for a given number."""
    rng, delivered_at, due = Random(SEED), dict[str, float](), time.monotonic()
    while len(delivered_at) < count:
        due += rng.expovariate(1 / MEAN_GAP_S)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        for _ in range(min(rng.choice(TOGETHER), count - len(delivered_at))):
            delivered_at[mailbox.deliver(given[len(delivered_at) % len(given)]).id] = time.monotonic()
    return delivered_at


def spent(emulator: Emulator) -> Words:
    """What Google saw of the quota."""
    quota = emulator.quota
    return {"most_units": quota.most_in_a_minute(USER), "refused": quota.counters.refused.total()}


class _TimedIntake(Intake):
    """The intake, with the moment at which each message was accepted. That clock is one for the whole machine."""

    accepted_at: dict[str, float]
    news: asyncio.Event

    async def ingest_batch(
        self, items: Sequence[object], bound_to: str | None = None
    ) -> list[Accepted | PostroomError]:
        outcomes = await super().ingest_batch(items, bound_to)
        for outcome, item in zip(outcomes, items, strict=True):
            if isinstance(outcome, Accepted) and isinstance(item, dict):
                self.accepted_at[item["event"]["external_event_id"]] = time.monotonic()
        self.news.set()
        return outcomes

    async def latencies(self, delivered_at: dict[str, float]) -> list[float]:
        """Waits until all of them are in."""
        async with asyncio.timeout(PATIENCE_S):
            while not delivered_at.keys() <= self.accepted_at.keys():
                self.news.clear()
                await self.news.wait()
        return [self.accepted_at[id] - at for id, at in delivered_at.items()]


class _Bulk:
    """Reads old mail as hard as it may."""

    def __init__(self, client: GmailClient, old: Sequence[str]) -> None:
        self._client = client.for_use("bulk")
        self._old = old
        self.read = 0

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncGenerator[None]:
        tasks = [asyncio.create_task(self._read(Random(number))) for number in range(READERS)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _read(self, rng: Random) -> None:
        while True:
            found = await self._client.get_messages(rng.sample(self._old, PARTS))
            self.read += sum(isinstance(each, Message) for each in found)


async def connect(new_mail: int, bulk_before_s: int) -> Outcome:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = await open_database(folder)
        stack.push_async_callback(database.close)
        emulator = await stack.enter_async_context(told_emulator("bench.live_beside"))
        http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=60))
        client = GmailClient(http, emulator.said["address"], _token, quota=Quota())
        services = await services_on(database)
        intake = _TimedIntake(database, None, queues=services.queues, tally=services.tally)
        intake.accepted_at, intake.news = {}, asyncio.Event()
        board = switchboard_within(build_server(replace(services, intake=intake), Principal(Role.CONNECTOR, ENDPOINT)))
        checkpoint = Checkpoint(folder / "checkpoint.json")
        checkpoint.write(emulator.said["since"])
        await client.watch(TOPIC)
        connector = GmailConnector(
            client,
            board,
            checkpoint,
            email=USER,
            endpoint_identity=ENDPOINT,
            clock=wall_clock,
            knowledge=Knowledge([USER], contacts=lambda: frozenset({CONTACT})),
            folder=folder,
            hints=PubSubHints(http, SUBSCRIPTION, USER, PlainTokens(_token), emulator.said["address"]),
        )
        stop = asyncio.Event()
        running = asyncio.create_task(connector.run(POLL, stop))
        outcome = await _measure(emulator, intake, _Bulk(client, emulator.said["old"]), new_mail, bulk_before_s)
        stop.set()
        await running
        # Nobody waits for the next hint any more; with one, the emulator need not wait for it either.
        await emulator.tell({"new_mail": 1})
        return outcome


async def _measure(
    emulator: ToldEmulator, intake: _TimedIntake, bulk: _Bulk, new_mail: int, bulk_before_s: int
) -> Outcome:
    warm = await emulator.tell({"new_mail": WARM_UP})
    await intake.latencies(warm["delivered_at"])
    settle_memory()
    told = await emulator.tell({"new_mail": new_mail})
    alone = await intake.latencies(told["delivered_at"])
    begun_at = time.monotonic()
    async with bulk.reading():
        await asyncio.sleep(bulk_before_s)
        told = await emulator.tell({"new_mail": new_mail})
        beside = await intake.latencies(told["delivered_at"])
    minutes = (time.monotonic() - begun_at) / 60
    return Outcome(alone, beside, bulk.read / minutes, told["most_units"], told["refused"])


async def _token() -> str:
    return TOKEN


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if sys.argv[1] == "emulator":
            runner.run(emulate())
        else:
            outcome = runner.run(connect(int(sys.argv[2]), int(sys.argv[3])))
            answer(json.dumps(asdict(outcome)))

"""New mail is in as soon while years of old mail are read beside it, within one quota of Google's.

Time runs faster for the quota and the emulator, so that a minute's quota is felt. The processors do not run faster, so
what they need for a batch of old mail weighs more here than in a mailbox.
"""

import asyncio
import contextlib
import gc
import statistics
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random

import httpx2
import pytest

from postroom.core.errors import PostroomError
from postroom.core.roles import Principal, Role
from postroom.intake.intake import Intake
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.mailboxes.gmail.client import PARTS, GmailClient
from postroom.mailboxes.gmail.following.hints import PubSubHints
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.quota import Quota
from postroom.mailboxes.gmail.resources import Message
from postroom.mailboxes.gmail.terms import NEW_PROJECT
from postroom.mailboxes.gmail.tokens import PlainTokens
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.store.engine.opening import open_database
from postroom.store.intake.acceptance import Accepted
from postroom.system.wall_clock import wall_clock
from postroom_sandbox import quota as google
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.fast_time import FastTime
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, raw_mail
from support.switchboard import open_account, services_on

SEED = 11
# Where the processors cannot keep up with the fastest, it is tried again slower: what they need then weighs less.
SPEEDS = (12.0, 6.0, 3.0)
TOPIC, SUBSCRIPTION = "projects/home/topics/gmail", "projects/home/subscriptions/postroom"
NEW_MAIL = 120
WARM_UP = (1, 1, 8)
# Mostly one at a time, now and then many together: about four a second for half a minute, which costs twice the units
# that are kept for live.
TOGETHER = (1, 1, 1, 1, 3, 8)
MEAN_GAP_S = 0.6
# Before new mail comes, bulk has read for so long that its units come back as it spends them. This may pass faster.
BULK_BEFORE_S = 65.0
BULK_SPEED = 65.0
OLD_MAIL = 500
READERS = 8
# Of our own time: a machine that does other things beside takes that much from one side or the other.
RESOLUTION_S = 0.2


class ShiftingTime(FastTime):
    def shift(self, speed: float) -> None:
        """From now on time runs at another speed."""
        seconds, self.speed = self.seconds(), speed
        self.begun_at = time.monotonic() - seconds / speed


class TimedIntake(Intake):
    """The intake, with the moment at which each message was accepted."""

    fast: FastTime
    accepted_at: dict[str, float]
    news: asyncio.Event

    async def ingest_batch(
        self, items: Sequence[object], bound_to: str | None = None
    ) -> list[Accepted | PostroomError]:
        outcomes = await super().ingest_batch(items, bound_to)
        for outcome, item in zip(outcomes, items, strict=True):
            assert isinstance(outcome, Accepted)
            assert isinstance(item, dict)
            self.accepted_at[item["event"]["external_event_id"]] = self.fast.seconds()
        self.news.set()
        return outcomes

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.accepted_at) < count:
                self.news.clear()
                await self.news.wait()


@dataclass
class BulkSetup:
    """A mailbox with old mail under Google's terms, and its connector, which is told of new mail."""

    fast: ShiftingTime
    emulator: Emulator
    intake: TimedIntake
    client: GmailClient
    old: list[str]
    delivered_at: dict[str, float] = field(default_factory=dict[str, float])
    bulk_read: int = 0

    async def warm_up(self) -> None:
        """What happens for the first time takes longest, and is nobody's latency."""
        for count in WARM_UP:
            self.deliver(count)
            await self.intake.until(len(self.delivered_at))
        self.delivered_at.clear()
        self.intake.accepted_at.clear()
        gc.collect()

    def deliver(self, count: int) -> None:
        for _ in range(count):
            raw = raw_mail(f"new {len(self.delivered_at)}")
            self.delivered_at[self.emulator.mailbox.deliver(raw).id] = self.fast.seconds()

    async def new_mail(self) -> None:
        """The same at the same moments each time."""
        rng, due = Random(SEED), self.fast.seconds()
        while len(self.delivered_at) < NEW_MAIL:
            due += rng.expovariate(1 / MEAN_GAP_S)
            await self.fast.sleep(due - self.fast.seconds())
            self.deliver(min(rng.choice(TOGETHER), NEW_MAIL - len(self.delivered_at)))
        await self.intake.until(NEW_MAIL)

    async def read_old_mail(self) -> None:
        """As hard as it may, until it is stopped."""
        bulk, rng = self.client.for_use("bulk"), Random(SEED)
        while True:
            found = await bulk.get_messages(rng.sample(self.old, PARTS))
            assert all(isinstance(each, Message) for each in found)
            self.bulk_read += len(found)

    def latencies(self) -> list[float]:
        return [self.intake.accepted_at[id] - at for id, at in self.delivered_at.items()]

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.latencies(), n=100, method="inclusive")[98]

    def __str__(self) -> str:
        found = self.latencies()
        return f"p50 {statistics.median(found):.2f} s, p99 {self.p99:.2f} s, longest {max(found):.2f} s"


@contextlib.asynccontextmanager
async def bulk_setup(folder: Path, speed: float) -> AsyncGenerator[BulkSetup]:
    fast = ShiftingTime(speed)
    mailbox = Mailbox(OWNER, Random(SEED), clock=fast.now)
    old = [mailbox.deliver(raw_mail(f"old {number}")).id for number in range(OLD_MAIL)]
    emulator = Emulator(mailbox, TOKEN, limits=google.NEW_PROJECT, sleep=fast.sleep)
    subscription = emulator.pubsub.subscribe(SUBSCRIPTION, TOPIC)
    database = await open_database(folder)
    Checkpoint(folder / "checkpoint.json").write(mailbox.history_id)
    services = services_on(database, wall_clock)
    await open_account(services, OWNER)
    intake = TimedIntake(database, None, queues=services.queues, tally=services.tally)
    intake.fast, intake.accepted_at, intake.news = fast, {}, asyncio.Event()
    board = switchboard_within(build_server(replace(services, intake=intake), Principal(Role.CONNECTOR, ENDPOINT)))
    quota = Quota(NEW_PROJECT, rng=Random(SEED), clock=fast.seconds, call_later=fast.call_later)
    stop = asyncio.Event()
    async with running_emulator(emulator) as address, httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        client = GmailClient(http, address, token, quota=quota)
        await client.watch(TOPIC)
        connector = GmailConnector(
            client,
            board,
            Checkpoint(folder / "checkpoint.json"),
            email=OWNER,
            endpoint_identity=ENDPOINT,
            clock=fast.now,
            folder=folder,
            hints=PubSubHints(http, SUBSCRIPTION, OWNER, PlainTokens(token), address),
        )
        running = asyncio.create_task(connector.run(timedelta(hours=1), stop))
        await subscription.awaited.wait()
        setup = BulkSetup(fast, emulator, intake, client, old)
        try:
            yield setup
        finally:
            stop.set()
            await running
            # Nobody waits for the next hint any more; with one, the emulator need not wait for it either.
            emulator.pubsub.publish(TOPIC, {})
    await database.close()


async def token() -> str:
    return TOKEN


async def alone(folder: Path, speed: float) -> BulkSetup:
    async with bulk_setup(folder, speed) as setup:
        await setup.warm_up()
        await setup.new_mail()
        return setup


async def beside_bulk(folder: Path, speed: float) -> BulkSetup:
    async with bulk_setup(folder, speed) as setup:
        setup.fast.shift(BULK_SPEED)
        reading = [asyncio.create_task(setup.read_old_mail()) for _ in range(READERS)]
        await setup.fast.sleep(BULK_BEFORE_S)
        setup.fast.shift(speed)
        await setup.warm_up()
        await setup.new_mail()
        for each in reading:
            each.cancel()
        ended = await asyncio.gather(*reading, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
        return setup


async def test_the_slowest_new_mail_takes_at_most_twice_as_long_while_old_mail_is_read_beside_it(tmp_path: Path):
    for speed in SPEEDS:
        if await _kept_pace(tmp_path / f"{speed:g}", speed):
            return
    pytest.fail(f"at none of the speeds {SPEEDS}")


async def _kept_pace(folder: Path, speed: float) -> bool:
    quiet, busy = await alone(folder / "alone", speed), await beside_bulk(folder / "beside", speed)
    spent = busy.emulator.quota
    print(f"alone: {quiet}\nbeside: {busy}, {busy.bulk_read} old messages, {spent.most_in_a_minute(OWNER)} units")
    assert spent.most_in_a_minute(OWNER) <= NEW_PROJECT.per_minute
    assert not spent.counters.refused
    # Most of what it may spend in the minute before new mail came.
    had_its_share = busy.bulk_read * NEW_PROJECT.prices["messages.get"] >= 0.6 * NEW_PROJECT.allowance("bulk")
    return had_its_share and busy.p99 <= 2 * quiet.p99 + RESOLUTION_S * speed

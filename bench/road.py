"""The whole road, from a mailbox to a completed action: `python -m bench.road product AT_ONCE PER_SECOND SECONDS`.

An emulator in a process of its own, without a quota, delivers mail of about 6 KB and notes when each message leaves the
inbox; its Pub/Sub tells of changes, as Google's does. The product runs here, all of it in one process, as `postroom
serve` runs it: pages, connector, switchboard, dispatcher, worker, SQLite. One rule archives what comes. First AT_ONCE
messages come together, then PER_SECOND a second at random moments for so many SECONDS.
"""

import asyncio
import json
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import uvloop

from postroom.compose.serve import run_product
from postroom.core.mail.accounts import endpoint_of
from postroom.core.rules.draft import RuleDraft
from postroom.settings.reading import Settings
from postroom.store.actions import decisions
from postroom.store.actions.actions import list_actions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import keep_account
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.history import Change
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.quota import Limits

from .live_beside import SUBSCRIPTION, TOPIC
from .live_mail import TOKEN
from .order import answer
from .tiering import USER, messages
from .told_emulator import ToldEmulator, Words, serve, told_emulator

DOMAIN = "shop.example"
WARM_UP = 50
SEED = 2026
# Where the emulator has no quota, the product is not to keep to one either.
WITHOUT_QUOTA = Limits()
WITHOUT_END = 1_000_000_000
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Outcome:
    """Seconds in which all that came at once was done, by the clock and by the processor; and of what came one by one,
    the seconds from arrival to action, and the share of one core it took."""

    seconds: float
    cpu_s: float
    latencies: list[float]
    busy: float
    completed: int


class _Leaving:
    """When each message came, and when it left the inbox."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._came_at: dict[str, float] = {}
        self._left_at: dict[str, float] = {}
        self._news = asyncio.Event()
        mailbox.observers.append(self._observe)

    def deliver(self, raw: bytes) -> str:
        # Taken first: what the product is told of it, it is told within.
        now = time.monotonic()
        id = self._mailbox.deliver(raw).id
        self._came_at[id] = now
        return id

    def _observe(self, change: Change) -> None:
        if change.kind == "labelRemoved" and "INBOX" in change.changed:
            self._left_at[change.message_id] = time.monotonic()
            self._news.set()

    async def all_gone(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self._left_at) < len(self._came_at):
                self._news.clear()
                await self._news.wait()

    def latencies(self, ids: list[str]) -> list[float]:
        return [self._left_at[id] - self._came_at[id] for id in ids]


async def emulate() -> None:
    mailbox = Mailbox(USER, Random(SEED))
    leaving = _Leaving(mailbox)
    given = [raw for raw, rule in messages() if rule != "known_contact"]
    emulator = Emulator(mailbox, TOKEN)
    emulator.pubsub.subscribe(SUBSCRIPTION, TOPIC)

    async def deliver(told: Words) -> Words:
        if told["last"]:
            leaving.deliver(given[0])
            return {}
        rng, begun_at, ids = Random(SEED), time.monotonic(), list[str]()
        due = begun_at
        for number in range(told["count"]):
            if told["per_second"]:
                due += rng.expovariate(told["per_second"])
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            ids.append(leaving.deliver(given[number % len(given)]))
        await leaving.all_gone()
        return {"begun_at": begun_at, "latencies": leaving.latencies(ids)}

    await serve(emulator, {}, deliver)


class _Completed:
    """Counts actions as they are completed, durable."""

    def __init__(self, database: Database) -> None:
        self.count = 0
        self._news = asyncio.Event()
        database.subscribe(decisions.CHANNEL, self._hear)

    def _hear(self, message: str) -> None:
        if message == "completed":
            self.count += 1
            self._news.set()

    async def reach(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.count < count:
                self._news.clear()
                await self._news.wait()


async def travel(at_once: int, per_second: int, seconds: int) -> Outcome:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        database = await open_database(folder)
        stack.push_async_callback(database.close)
        rule = (new_id(), RuleDraft("Shop", {"sender_domain": DOMAIN}, "archive", {}))
        await database.run(add_rules([rule], wall_clock()))
        await database.run(keep_account(new_id(), "gmail", endpoint_of("gmail", USER), USER, wall_clock()))
        emulator = await stack.enter_async_context(told_emulator("bench.road"))
        stop, ready = asyncio.Event(), asyncio.Event()
        settings = product_settings(folder, emulator.said["address"])
        running = asyncio.create_task(run_product(settings, database, stop, lambda _address: ready.set()))
        running.add_done_callback(lambda _task: ready.set())
        await ready.wait()
        measuring = asyncio.create_task(_measure(emulator, database, at_once, per_second * seconds, per_second))
        await asyncio.wait({running, measuring}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        await running
        # Nobody waits for the next hint any more; with one, the emulator need not wait for it either.
        await emulator.tell({"last": True})
        return await measuring


def product_settings(folder: Path, address: str, limits: Limits = WITHOUT_QUOTA) -> Settings:
    """The settings for an emulator there that has these limits."""
    gmail = {
        "base_url": address,
        "token": TOKEN,
        "units_per_minute": limits.per_user_minute or WITHOUT_END,
        "prices": {"messages.get": limits.prices["messages.get"]},
        "pubsub_topic": TOPIC,
        "pubsub_subscription": SUBSCRIPTION,
        "pubsub_url": address,
    }
    given = {"data_dir": folder, "gmail": gmail, "account": {"email": USER}, "web": {"port": 0}}
    return Settings.model_validate(given)


async def _measure(
    emulator: ToldEmulator, database: Database, at_once: int, one_by_one: int, per_second: int
) -> Outcome:
    completed = _Completed(database)
    await emulator.tell(_order(WARM_UP))
    await completed.reach(WARM_UP)
    cpu = time.process_time()
    told = await emulator.tell(_order(at_once))
    await completed.reach(WARM_UP + at_once)
    taken, cpu_s = time.monotonic() - told["begun_at"], time.process_time() - cpu
    clock, cpu = time.monotonic(), time.process_time()
    told = await emulator.tell(_order(one_by_one, per_second))
    everything = WARM_UP + at_once + one_by_one
    await completed.reach(everything)
    busy = (time.process_time() - cpu) / (time.monotonic() - clock)
    ended = await database.run(list_actions(everything + 1, state="completed"))
    return Outcome(taken, cpu_s, told["latencies"], busy, len(ended) - WARM_UP)


def _order(count: int, per_second: int = 0) -> Words:
    """So many, all at once or so many a second."""
    return {"last": False, "count": count, "per_second": per_second}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if sys.argv[1] == "emulator":
            runner.run(emulate())
        else:
            outcome = runner.run(travel(*(int(word) for word in sys.argv[2:])))
            answer(json.dumps(asdict(outcome)))

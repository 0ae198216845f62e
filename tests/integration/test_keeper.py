"""The keeper of the queues: nothing is stranded, depth is measured, old messages are pruned, and errors do not end
it."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from postroom.core.errors import DatabaseFull, DatabaseUnavailable, StoreError
from postroom.core.heartbeat import Heartbeat, parse_heartbeat
from postroom.core.metrics import QUEUE_DEPTH
from postroom.core.queue.queues import EMAIL, GATEWAY, QueuePolicy, Queues, Route
from postroom.core.tally import Gauges
from postroom.intake.buffer import Buffer
from postroom.intake.intake import Intake
from postroom.operations.backfill import keeper as keeping
from postroom.operations.backfill.keeper import Keeper
from postroom.operations.jobs.queues import peek, queue_stats
from postroom.store.engine.database import Database, Subscription
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.installation import rollups
from postroom.store.intake import connectors, history
from postroom.store.intake.inbox import LeaseRef
from postroom.store.mail.mail import keep_account
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.store.inbox_setup import select
from support.switchboard import OWNER, envelope, mail

KEEP, KEEP_ROLLUPS = timedelta(days=30), timedelta(days=400)
OF_OLD = Queues((EMAIL, replace(GATEWAY, guards={**GATEWAY.guards, "P4": 10, "P5": 10}, otherwise="P5")))


@dataclass
class KeeperSetup:
    """A database, and everything around it under one clock."""

    database: Database
    clock: ManualClock
    gauges: Gauges

    def intake(self, queues: Queues | None = None) -> Intake:
        return Intake(self.database, None, self.clock, queues=queues)

    def buffer(self, queues: Queues | None = None) -> Buffer:
        return Buffer(self.database, queues, self.clock)

    def keeper(self, buffer: Any = None, database: Any = None) -> Keeper:
        return Keeper(
            database or self.database,
            Queues(),
            buffer or self.buffer(),
            self.gauges,
            keep=KEEP,
            keep_rollups=KEEP_ROLLUPS,
            clock=self.clock,
        )

    async def done(self, *envelopes: dict[str, Any]) -> list[UUID]:
        """Accepted, taken and ended."""
        accepted = [await self.intake().ingest(each) for each in envelopes]
        deliveries = await self.buffer().next("gateway", len(envelopes))
        assert await self.buffer().ack([LeaseRef(each.message_id, each.lease_token) for each in deliveries]) == [
            None for _ in envelopes
        ]
        return [each.request_id for each in accepted]

    async def depths(self) -> dict[tuple[str, str, str], int]:
        found = await self.database.run(history.depths())
        return {(each.queue, each.tier, each.state): each.count for each in found}

    async def rows(self, table: str) -> int:
        ((count,),) = await select(self.database, f"SELECT count(*) FROM {table}")
        return count


@pytest.fixture
async def setup(tmp_path: Path, clock: ManualClock) -> AsyncIterator[KeeperSetup]:
    database = await open_database(tmp_path, None)
    await database.run(keep_account(new_id(), "gmail", f"gmail:user:{OWNER}", OWNER, clock()))
    yield KeeperSetup(database, clock, Gauges())
    await database.close()


class CountingDatabase:
    """A real database that notes what each verb answered."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.answers: defaultdict[str, list[Any]] = defaultdict(list)

    async def run(self, transaction: Any) -> Any:
        answer = await self._database.run(transaction)
        self.answers[transaction.name].append(answer)
        return answer


def report(instance: str) -> Heartbeat:
    return parse_heartbeat(
        {
            "schema_version": "connector.heartbeat.v1",
            "connector": {"connector_type": "webhook", "endpoint_identity": "ci", "instance_id": instance},
            "status": {"state": "healthy", "uptime_s": 5},
            "sent_at": "2026-11-15T08:00:00Z",
        }
    )


async def test_what_waits_in_a_tier_that_is_no_more_is_adopted_by_the_one_for_anything_unknown_in_its_order(
    setup: KeeperSetup,
):
    strays = [(await setup.intake(OF_OLD).ingest(envelope(number))).request_id for number in range(3)]
    usual = (await setup.intake().ingest(envelope("usual"))).request_id
    assert await setup.depths() == {("gateway", "P5", "waiting"): 3, ("gateway", "P2", "waiting"): 1}
    with capture_logs() as told:
        await setup.keeper().adopt_strays()
        await setup.keeper().adopt_strays()
    assert await setup.depths() == {("gateway", "P2", "waiting"): 4}
    [line] = [line for line in told if line["event"] == "queue.strays_adopted"]
    assert (line["queue"], line["messages"], line["log_level"]) == ("gateway", 3, "warning")
    peeked = await peek(setup.database, Queues(), "gateway")
    assert [each.message_id for each in peeked] == [*strays, usual]


async def test_strays_are_adopted_in_bounded_steps_until_none_is_left(
    setup: KeeperSetup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keeping, "ADOPTED_AT_ONCE", 2)
    for number in range(5):
        await setup.intake(OF_OLD).ingest(envelope(number))
    counting: Any = CountingDatabase(setup.database)
    with capture_logs() as told:
        await setup.keeper(database=counting).adopt_strays()
    assert await setup.depths() == {("gateway", "P2", "waiting"): 5}
    assert [line["messages"] for line in told if line["event"] == "queue.strays_adopted"] == [5]
    assert counting.answers["adopt_strays"] == [0, 2, 2, 1, 0], "the queue email has none"


async def test_a_queue_without_a_tier_for_anything_unknown_adopts_into_its_lowest(setup: KeeperSetup):
    with_attic = Queues((replace(EMAIL, guards={**EMAIL.guards, "attic": 10}, otherwise="attic"), GATEWAY))
    await setup.intake(with_attic).ingest(mail(1))
    assert await setup.depths() == {("email", "attic", "waiting"): 1}
    await setup.keeper().adopt_strays()
    assert await setup.depths() == {("email", "history", "waiting"): 1}


async def test_the_longer_measuring_takes_the_less_often_it_is_done(
    setup: KeeperSetup, monkeypatch: pytest.MonkeyPatch
):
    """A count that takes a second is made once in fifty, whoever asks; one that takes no time, each time."""
    seconds = [0.0]

    class Slow(CountingDatabase):
        async def run(self, transaction: Any) -> Any:
            seconds[0] += cost
            return await super().run(transaction)

    monkeypatch.setattr(keeping, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    slow: Any = Slow(setup.database)
    keeper = setup.keeper(database=slow)
    cost = 0.001
    for _ in range(10):
        seconds[0] += 5
        await keeper._measure_with_backoff()
    assert len(slow.answers["depths"]) == 10
    cost = 1.0
    for _ in range(100):
        seconds[0] += 5
        await keeper._measure_with_backoff()
    assert len(slow.answers["depths"]) == 10 + 10


async def test_connectors_that_have_been_silent_for_long_are_forgotten(setup: KeeperSetup):
    await setup.database.run(connectors.record_heartbeat(report("gone"), setup.clock()))
    setup.clock.forward(KEEP.total_seconds() / 2)
    await setup.database.run(connectors.record_heartbeat(report("there"), setup.clock()))
    setup.clock.forward(KEEP.total_seconds() / 2)
    await setup.keeper().prune()
    assert await setup.rows("connectors") == 2, "exactly as long as may be"
    setup.clock.forward(1)
    await setup.keeper().prune()
    assert [each.instance_id for each in await setup.database.run(connectors.list_connectors())] == ["there"]


async def test_a_stray_in_the_hands_of_a_consumer_is_adopted_too_and_stays_theirs(setup: KeeperSetup):
    await setup.intake(OF_OLD).ingest(envelope("held"))
    [held] = await setup.buffer(OF_OLD).next("gateway")
    await setup.keeper().prune()
    assert await setup.depths() == {("gateway", "P2", "leased"): 1}
    assert await setup.buffer().ack([LeaseRef(held.message_id, held.lease_token)]) == [None]


async def test_what_lies_in_a_queue_that_is_no_more_is_told_of_and_left_alone(setup: KeeperSetup):
    alarms = QueuePolicy("alarms", {"loud": 10}, otherwise="loud")
    await setup.intake(Queues((EMAIL, GATEWAY, alarms), [Route("alarms", "webhook")])).ingest(envelope(1))
    with capture_logs() as told:
        await setup.keeper().adopt_strays()
    [line] = [line for line in told if line["event"] == "queue.not_in_settings"]
    assert (line["queue"], line["log_level"]) == ("alarms", "error")
    assert await setup.depths() == {("alarms", "loud", "waiting"): 1}
    found = await queue_stats(setup.database, Queues())
    assert [each.queue for each in found.queues] == ["email", "gateway", "alarms"]


async def test_the_depth_of_every_tier_is_shown_and_the_empty_ones_as_zero(setup: KeeperSetup):
    keeper = setup.keeper()
    await keeper.measure()
    places = setup.gauges.values_of(QUEUE_DEPTH)
    assert set(places) == {
        (policy.queue, tier, state)
        for policy in (EMAIL, GATEWAY)
        for tier in policy.tiers
        for state in ("waiting", "leased")
    }
    assert set(places.values()) == {0.0}
    for number in range(3):
        await setup.intake().ingest(envelope(number))
    await setup.intake().ingest(mail(1, control={"policy_tier": "interactive"}))
    await setup.buffer().next("gateway", 2)
    assert set(setup.gauges.values_of(QUEUE_DEPTH).values()) == {0.0}
    await keeper.measure()
    shown = {place: value for place, value in setup.gauges.values_of(QUEUE_DEPTH).items() if value}
    assert shown == {
        ("gateway", "P2", "waiting"): 1,
        ("gateway", "P2", "leased"): 2,
        ("email", "interactive", "waiting"): 1,
    }
    await setup.done(envelope("last"))
    await keeper.measure()
    assert setup.gauges.values_of(QUEUE_DEPTH)["gateway", "P2", "waiting"] == 1


async def test_what_ended_long_ago_goes_a_little_at_a_time_and_is_still_recognised(
    setup: KeeperSetup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(keeping, "PRUNED_AT_ONCE", 2)
    old = [envelope(number, control={"idempotency_key": f"key-{number}"}) for number in range(5)]
    ids = await setup.done(*old)
    setup.clock.forward(KEEP.total_seconds() / 2)
    await setup.done(envelope("younger"))
    await setup.intake().ingest(envelope("waits"))
    setup.clock.forward(KEEP.total_seconds() / 2)
    await setup.keeper().prune()
    assert await setup.rows("envelopes") == 7, "exactly as old as may be kept"
    setup.clock.forward(1)
    await setup.keeper().prune()
    assert await setup.rows("envelopes") == await setup.rows("inbox_queue") + await setup.rows("inbox_ends") == 2
    for number, id in enumerate(ids):
        again = await setup.intake().ingest(old[number])
        assert (again.request_id, again.duplicate) == (id, True)
        renamed = old[number] | {"control": {}}
        assert (await setup.intake().ingest(renamed)).request_id == id
    assert await setup.rows("envelopes") == 2


async def test_what_still_waits_is_kept_however_old(setup: KeeperSetup):
    await setup.intake().ingest(envelope("patient"))
    setup.clock.forward(10 * KEEP.total_seconds())
    await setup.keeper().prune()
    assert await setup.depths() == {("gateway", "P2", "waiting"): 1}


async def test_old_hours_are_forgotten(setup: KeeperSetup):
    await setup.intake().ingest(envelope(1))
    began = setup.clock()
    setup.clock.forward(KEEP_ROLLUPS.total_seconds())
    await setup.intake().ingest(envelope(2))

    async def hours() -> int:
        return len(await setup.database.run(rollups.hourly("accepted", began - timedelta(days=1), setup.clock())))

    setup.clock.forward(1800)
    assert await hours() == 2
    await setup.keeper().prune()
    assert await hours() == 1


async def test_texts_whose_time_is_over_are_forgotten(setup: KeeperSetup):
    await setup.intake().ingest(envelope(1))
    await setup.keeper().forget_texts()
    assert await setup.rows("inbox_texts") == 1
    setup.clock.forward(31)
    await setup.keeper().forget_texts()
    assert await setup.rows("inbox_texts") == 0


class TroubledDatabase:
    """Fails a few times, then is as good as the real one."""

    def __init__(self, database: Database, errors: list[StoreError]) -> None:
        self._database = database
        self._errors = errors

    async def run(self, transaction: Any) -> Any:
        if self._errors:
            raise self._errors.pop()
        return await self._database.run(transaction)

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)


async def test_trouble_is_reported_and_the_keeper_goes_on(setup: KeeperSetup, monkeypatch: pytest.MonkeyPatch):
    """The pauses pass at once; what matters is what is done after each, and how long each would have been."""
    pauses: set[float] = set()
    rounds = 0
    settled = asyncio.Event()

    async def pass_at_once(seconds: float) -> None:
        nonlocal rounds
        pauses.add(seconds)
        rounds += 1
        if rounds > 50 and len(pauses) == 5:
            settled.set()
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    monkeypatch.setattr(
        keeping, "asyncio", SimpleNamespace(TaskGroup=asyncio.TaskGroup, Event=asyncio.Event, sleep=pass_at_once)
    )
    await setup.intake().ingest(envelope(1))
    errors: list[StoreError] = [DatabaseUnavailable("away"), DatabaseFull("full"), DatabaseUnavailable("away")]
    database: Any = TroubledDatabase(setup.database, errors)
    with capture_logs() as told:
        keeper = setup.keeper(Buffer(database, Queues(), setup.clock), database)
        running = asyncio.create_task(keeper.run())
        async with asyncio.timeout(PATIENCE_S):
            await settled.wait()
        assert not running.done()
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
    assert [line["error"] for line in told if line["event"] == "keeper.interrupted"] == [
        "DatabaseUnavailable",
        "DatabaseFull",
        "DatabaseUnavailable",
    ]
    assert setup.gauges.values_of(QUEUE_DEPTH)["gateway", "P2", "waiting"] == 1
    assert pauses == {1, 30, 60, 300, 3600}

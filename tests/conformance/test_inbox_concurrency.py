"""Many consumers at once: no deadlocks, a consumer that leaves holds nothing, and idle ones only read."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from postroom.core.errors import LeaseLost
from postroom.core.queue.queues import EMAIL, GATEWAY, Queues
from postroom.intake.buffer import Buffer
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.intake import inbox
from postroom.store.intake.inbox import LeaseRef
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.scale import scale
from support.store.inbox_setup import InboxSetup, Row, event, refs
from support.store.job_setup import JobSetup
from support.store.running_worker import until

CONSUMERS = 8


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


async def accepted(setup: InboxSetup, count: int, kind: str = "deploy.done", first: int = 0) -> list[UUID]:
    """All at one moment; texts of their own, so that none is the same as another."""
    ids: list[UUID] = []
    for start in range(first, first + count, 100):
        batch = [
            event(n, event={"external_event_id": f"event-{n}", "kind": kind})
            for n in range(start, min(start + 100, first + count))
        ]
        for answer in await setup.batch(*batch):
            assert isinstance(answer, tuple), answer
            ids.append(answer.request_id)
    return ids


async def leased_singly(setup: InboxSetup, count: int, first: int = 0) -> list[LeaseRef]:
    """Each under a lease of its own."""
    await accepted(setup, count, first=first)
    found = [ref for _ in range(count) for ref in refs(await setup.buffer.next("gateway"))]
    assert len({ref.lease_token for ref in found}) == count
    return found


class Watched:
    """A real database that counts what is done to it, and holds a verb up where a test says so."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.done: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        self.ran = asyncio.Condition()
        self.held = ""
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def run(self, transaction: Transaction[Any]) -> Any:
        answer = await self._database.run(transaction)
        if transaction.name == self.held:
            self.reached.set()
            await self.let_go.wait()
        self.done[transaction.name] += 1
        if transaction.kind != "read":
            self.written[transaction.name] += 1
        async with self.ran:
            self.ran.notify_all()
        return answer

    async def until(self, verb: str, times: int) -> None:
        async with asyncio.timeout(PATIENCE_S), self.ran:
            await self.ran.wait_for(lambda: self.done[verb] >= times)


def watching(setup: InboxSetup, poll_s: float = 60) -> tuple[Watched, Buffer]:
    """Whoever waits is woken by signals, unless the test polls."""
    watched = Watched(setup.database)
    database: Any = watched
    return watched, Buffer(database, setup.queues, setup.clock, poll_s=poll_s)


def untouched(rows: list[Row]) -> bool:
    return all((row.state, row.attempts) == ("waiting", 0) for row in rows)


# Acknowledging.


async def test_consumers_who_acknowledge_each_others_messages_in_every_order_never_wait_in_a_circle(
    postgres_setup: JobSetup,
) -> None:
    setup = InboxSetup(postgres_setup.database, postgres_setup.clock)
    await setup.open_account()
    for seed in range(scale(3, 50)):
        print("seed", seed)
        held = await leased_singly(setup, 60, first=60 * seed)
        rng = Random(seed)
        lists = [rng.sample(held, len(held)) for _ in range(CONSUMERS)]
        async with asyncio.timeout(PATIENCE_S):
            outcomes = await asyncio.gather(*(setup.buffer.ack(each) for each in lists))
        wins = Counter(ref for each, told in zip(lists, outcomes, strict=True) for ref in _ended(each, told))
        assert wins == dict.fromkeys(held, 1)
        assert set(await setup.states()) == {"done"}


@pytest.mark.parametrize("statistics", ["none", "fresh"])
async def test_messages_are_locked_in_one_order_however_the_statement_is_planned(
    postgres_setup: JobSetup, emptied_postgres_url: str, statistics: str
) -> None:
    """With fresh statistics the planner follows the caller's list: two lists in opposite orders would wait in a circle.

    Nobody resolves a circle here: it lasts until a statement times out, which is an error.
    """
    setup = InboxSetup(postgres_setup.database, postgres_setup.clock)
    await setup.open_account()
    held = await leased_singly(setup, 61)
    circling = PostgresDatabase(f"{emptied_postgres_url}?deadlock_timeout=1h", patience_s=1)
    buffer = Buffer(circling, setup.queues, setup.clock)
    other = await asyncpg.connect(emptied_postgres_url, server_settings={"search_path": "postroom"})
    try:
        if statistics == "fresh":
            await other.execute("ANALYZE inbox_queue, envelopes")
        async with other.transaction():
            await other.execute("SELECT 1 FROM inbox_queue WHERE id = $1 FOR UPDATE", held[30].message_id)
            consumers = [asyncio.create_task(buffer.ack(each)) for each in (held, held[::-1])]
            await until(lambda: _both_wait(other))
        first, second = await asyncio.gather(*consumers)
    finally:
        await other.close()
        await circling.close()
    assert all((one is None) != (another is None) for one, another in zip(first, reversed(second), strict=True))


async def _both_wait(other: asyncpg.Connection) -> bool:
    return await other.fetchval("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted") == 2


def _ended(asked: list[LeaseRef], told: list[LeaseLost | None]) -> Iterator[LeaseRef]:
    return (ref for ref, lost in zip(asked, told, strict=True) if lost is None)


async def test_many_messages_under_leases_of_their_own_are_acknowledged_in_one_transaction(setup: InboxSetup) -> None:
    held = await leased_singly(setup, 20)
    watched, buffer = watching(setup)
    assert await buffer.ack(held) == [None] * 20
    assert watched.done == {"ack": 1}
    assert await setup.states() == ["done"] * 20


async def test_of_many_only_the_one_under_a_wrong_lease_is_not_acknowledged(setup: InboxSetup) -> None:
    held = await leased_singly(setup, 5)
    swapped = [
        held[0],
        held[1]._replace(lease_token=held[2].lease_token),
        held[3],
        held[4]._replace(lease_token=new_id()),
    ]
    outcomes = await setup.buffer.ack(swapped)
    assert [isinstance(each, LeaseLost) for each in outcomes] == [False, True, False, True]
    assert await setup.states() == ["done", "leased", "leased", "done", "leased"]


# What has waited too long.


async def test_a_lease_ends_a_bounded_number_and_hands_out_other_tiers_meanwhile_and_never_a_stale_one(
    setup: InboxSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "STALE_AT_ONCE", 10)
    await accepted(setup, 25, "test.passed")
    setup.clock.forward(61)
    usual = await accepted(setup, 3, first=25)
    young = await accepted(setup, 1, "test.passed", first=28)
    handed_out: list[list[UUID]] = []
    for ended in (10, 20, 25):
        lease = await setup.database.run(inbox.lease(GATEWAY, 5, new_id(), setup.clock(), new_id()))
        assert len(lease.passed) <= 10
        assert (await setup.states()).count("auto_acked") == ended
        handed_out.append([each.id for each in lease.messages])
    assert handed_out == [usual, [], young]


async def test_a_sweep_goes_on_in_bounded_steps_until_nothing_stale_is_left(
    setup: InboxSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "STALE_AT_ONCE", 10)
    await accepted(setup, 35, "test.passed")
    setup.clock.forward(61)
    await accepted(setup, 2, "test.passed", first=35)
    assert len(await setup.database.run(inbox.sweep(GATEWAY, setup.clock()))) == 10
    watched, buffer = watching(setup)
    await buffer.sweep()
    assert await setup.states() == ["auto_acked"] * 35 + ["waiting"] * 2
    assert watched.done["sweep"] == 4, "the last one found nothing"


@pytest.mark.parametrize("way", ["nack", "expiry"])
async def test_what_was_in_someones_hands_is_spared_and_handed_out_again_until_that_is_too_often(
    database: Database, clock: ManualClock, way: str
) -> None:
    short = replace(GATEWAY, most_deliveries=3, coalesce_within={})
    setup = InboxSetup(database, clock, Queues([EMAIL, short]))
    await setup.open_account()
    (spared,) = await accepted(setup, 1, "test.passed")
    for attempt in (1, 2, 3):
        if attempt == 2:
            await accepted(setup, 2, "test.passed", first=1)
            clock.forward(61)
        found = await setup.next(1)
        assert [(each.message_id, each.attempts) for each in found] == [(spared, attempt)]
        if way == "nack":
            await setup.nack(found)
        else:
            clock.forward(short.lease.total_seconds() + 1)
    assert await setup.next(5) == []
    assert await setup.states() == ["failed", "auto_acked", "auto_acked"]
    await setup.close()


# Whoever leaves.


async def test_whoever_left_before_the_answer_holds_nothing_and_no_delivery_is_counted(setup: InboxSetup) -> None:
    ids = await accepted(setup, 3)
    watched, buffer = watching(setup)
    watched.held = "lease"
    left = asyncio.Event()
    leaving = asyncio.create_task(buffer.next("gateway", 3, left=left))
    async with asyncio.timeout(PATIENCE_S):
        await watched.reached.wait()
        left.set()
        watched.let_go.set()
        assert await leaving == []
    assert untouched(await setup.look())
    assert [each.message_id for each in await setup.next(3)] == ids


async def test_whoever_left_at_once_is_not_waited_for(setup: InboxSetup) -> None:
    left = asyncio.Event()
    left.set()
    async with asyncio.timeout(PATIENCE_S):
        assert await setup.buffer.next("gateway", wait=timedelta(seconds=60), left=left) == []


async def test_whoever_leaves_while_nothing_waits_lets_the_next_one_have_it(setup: InboxSetup) -> None:
    watched, buffer = watching(setup)
    left = asyncio.Event()
    leaving = asyncio.create_task(buffer.next("gateway", wait=timedelta(seconds=60), left=left))
    await watched.until("lease", 1)
    left.set()
    async with asyncio.timeout(PATIENCE_S):
        assert await leaving == []
    (id,) = await accepted(setup, 1)
    assert untouched(await setup.look())
    assert [each.message_id for each in await setup.next()] == [id]


@pytest.mark.parametrize("stayed", ["lease", "return_expired", "any_waiting"])
async def test_one_who_is_canceled_in_the_middle_of_a_look_holds_nothing(setup: InboxSetup, stayed: str) -> None:
    watched, buffer = watching(setup, poll_s=0.01)
    if stayed == "any_waiting":
        assert await buffer.next("gateway") == []
    ids = await accepted(setup, 2)
    watched.held = stayed
    looking = asyncio.create_task(buffer.next("gateway", 2, timedelta(seconds=60)))
    async with asyncio.timeout(PATIENCE_S):
        await watched.reached.wait()
        looking.cancel()
        await asyncio.wait({looking})
        assert looking.cancelled()
        watched.let_go.set()
        await buffer.close()
    assert untouched(await setup.look())
    assert [each.message_id for each in await setup.next(2)] == ids


async def test_consumers_who_leave_at_any_moment_lose_and_wear_out_nothing(setup: InboxSetup) -> None:
    """However often that happens: what nobody saw was no delivery."""
    ids = await accepted(setup, 5)
    _, buffer = watching(setup, poll_s=0.01)
    for steps in range(scale(40, 400)):
        looking = asyncio.create_task(buffer.next("gateway", 2, timedelta(seconds=60)))
        for _ in range(steps % 20):
            await asyncio.sleep(0)
        looking.cancel()
        await asyncio.wait({looking})
        if not looking.cancelled():
            await buffer._database.run(inbox.give_back(refs(looking.result()), setup.clock()))
    await buffer.close()
    assert untouched(await setup.look())
    assert await setup.next_ids(5) == ids


async def test_what_is_given_back_wakes_another_who_waits(setup: InboxSetup) -> None:
    (id,) = await accepted(setup, 1)
    (held,) = (await setup.database.run(inbox.lease(GATEWAY, 1, new_id(), setup.clock(), new_id()))).messages
    watched, buffer = watching(setup)
    waiting = asyncio.create_task(buffer.next("gateway", wait=timedelta(seconds=60)))
    await watched.until("lease", 1)
    await setup.database.run(inbox.give_back([LeaseRef(held.id, held.token)], setup.clock()))
    async with asyncio.timeout(PATIENCE_S):
        assert [(each.message_id, each.attempts) for each in await waiting] == [(id, 1)]


async def test_a_summary_that_nobody_saw_is_handed_out_again_as_it_was(setup: InboxSetup) -> None:
    members = await accepted(setup, 3, "test.passed")
    (summary,) = (await setup.database.run(inbox.lease(GATEWAY, 9, new_id(), setup.clock(), new_id()))).messages
    await setup.database.run(inbox.give_back([LeaseRef(summary.id, summary.token)], setup.clock()))
    await accepted(setup, 1, "test.passed", first=3)
    again = await setup.next(9)
    assert (again[0].message_id, list(again[0].members), again[0].member_count) == (summary.id, members, 3)


# Whoever waits.


async def test_idle_consumers_only_read(setup: InboxSetup) -> None:
    """Sweeping, which writes when it finds something to end, is done by one of them, once a second."""
    watched, buffer = watching(setup, poll_s=0.01)
    assert await buffer.next("gateway") == []
    assert watched.written["lease"] == 1
    waiting = [asyncio.create_task(buffer.next("gateway", wait=timedelta(seconds=60))) for _ in range(10)]
    await watched.until("any_waiting", 50)
    assert watched.written["lease"] == 1
    assert set(watched.written) <= {"lease", "return_expired", "sweep"}
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    await buffer.close()


async def test_one_message_wakes_them_and_exactly_one_gets_it(setup: InboxSetup) -> None:
    watched, buffer = watching(setup)
    assert await buffer.next("gateway") == []
    waiting = {asyncio.create_task(buffer.next("gateway", wait=timedelta(seconds=60))) for _ in range(6)}
    await watched.until("any_waiting", 6)
    for number in range(6):
        (id,) = await accepted(setup, 1, first=number)
        async with asyncio.timeout(PATIENCE_S):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (one,) = done
        assert [each.message_id for each in one.result()] == [id]
    assert watched.written["lease"] <= 1 + 6 * 2, "who finds that nothing waits does not lease"
    assert [row.attempts for row in await setup.look()] == [1] * 6


class Deaf(Watched):
    """Never hears a signal."""

    def subscribe(self, _channel: str, _callback: object) -> "Deaf":
        return self

    def close(self) -> None:
        pass


async def test_a_queue_that_was_found_empty_is_worked_also_when_no_signal_comes(setup: InboxSetup) -> None:
    deaf: Any = Deaf(setup.database)
    buffer = Buffer(deaf, setup.queues, setup.clock, poll_s=0.01)
    waiting = asyncio.create_task(buffer.next("gateway", wait=timedelta(seconds=60)))
    await deaf.until("any_waiting", 1)
    (id,) = await accepted(setup, 1)
    async with asyncio.timeout(PATIENCE_S):
        assert [each.message_id for each in await waiting] == [id]

"""Counts by hour: they agree with what was accepted, handed out and ended, across writers and restarts."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta

import pytest

from conformance import fault_cases_mail
from conformance.desk import Desk
from conformance.inbox_desk import InboxDesk, event, kind, mail, metadata, reopened, select
from conftest import ManualClock
from postroom.core.errors import Conflict
from postroom.store.acceptance import Accepted
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.rollups import SHARDS, Count, HourCount, adding, hourly, prune_rollups, waited
from postroom.switchboard.intake import Intake


@pytest.fixture
async def desk(database: Database, clock: ManualClock) -> AsyncIterator[InboxDesk]:
    desk = InboxDesk(database, clock)
    await desk.open_account()
    yield desk
    await desk.close()


async def counted(desk: InboxDesk, measure: str, hours: int = 48) -> list[HourCount]:
    now = desk.clock()
    return await desk.database.run(hourly(measure, now - timedelta(hours=hours), now + timedelta(hours=1)))


async def sums(desk: InboxDesk, measure: str) -> dict[tuple[str, str], int]:
    found = Counter[tuple[str, str]]()
    for each in await counted(desk, measure):
        found[each.queue, each.name] += each.count
    return dict(found)


@transaction
def add(counts: Iterable[Count], now: datetime, writer: int) -> Script[None]:
    yield from adding(list(counts), now, writer)


async def test_what_is_accepted_is_counted_by_tier_and_endpoint_in_its_hour(desk: InboxDesk) -> None:
    await desk.batch(mail(1), mail(2), mail(3, "high_priority"), event(1), event(2, source={"endpoint_identity": "cd"}))
    desk.clock.forward(3600)
    await desk.ingest(mail(4))
    hour = desk.clock().replace(minute=0, second=0, microsecond=0)
    before = hour - timedelta(hours=1)
    endpoint = mail()["source"]["endpoint_identity"]
    assert [
        (each.hour, each.queue, each.name, each.endpoint_identity, each.count)
        for each in await counted(desk, "accepted")
    ] == [
        (before, "email", "default", endpoint, 2),
        (before, "email", "high_priority", endpoint, 1),
        (before, "gateway", "P2", "cd", 1),
        (before, "gateway", "P2", "ci", 1),
        (hour, "email", "default", endpoint, 1),
    ]


async def test_backfilled_mail_is_counted_under_the_tier_it_was_given(desk: InboxDesk) -> None:
    """A pie of tiers says how urgent the mail was, not where it waited."""
    await desk.ingest(mail(1, "interactive", control={"backfill_job_id": "b"}))
    assert await sums(desk, "accepted") == {("email", "interactive"): 1}


async def test_duplicates_are_counted_by_how_they_were_known_and_conflicts_not_at_all(desk: InboxDesk) -> None:
    key = {"idempotency_key": "k"}
    same = {"raw": {}, "normalized_text": "same"}
    await desk.ingest(event(1, control=key), event(1, control=key), event(1), metadata(mail(1)), mail(1), mail(1))
    await desk.ingest(event(2, payload=same), event(3, payload=same), event(4, payload=same))
    with pytest.raises(Conflict):
        await desk.ingest(event(5, control=key))
    assert await sums(desk, "accepted") == {("gateway", "P2"): 2, ("email", "default"): 1}
    assert await sums(desk, "duplicate") == {
        ("gateway", "key"): 1,
        ("gateway", "event"): 1,
        ("gateway", "text"): 2,
        ("email", "upgrade"): 1,
        ("email", "event"): 1,
    }


async def test_waits_are_counted_with_their_milliseconds_under_a_power_of_two(desk: InboxDesk) -> None:
    await desk.ingest(event(1))
    desk.clock.forward(1.5)
    await desk.ingest(event(2))
    await desk.next(2)
    found = await counted(desk, "wait")
    assert [(each.name, each.bucket, each.count, each.total_ms) for each in found] == [
        ("P2", 0, 1, 0),
        ("P2", 11, 1, 1500),
    ]


@pytest.mark.parametrize(
    ("seconds", "bucket", "ms"),
    [(0, 0, 0), (0.001, 1, 1), (0.0019, 1, 1), (0.002, 2, 2), (1.023, 10, 1023), (-5, 0, 0)],
)
def test_a_wait_lies_under_its_power_of_two(seconds: float, bucket: int, ms: int) -> None:
    counted = waited("q", "t", timedelta(seconds=seconds))
    assert (counted.bucket, counted.total_ms) == (bucket, ms)
    assert ms < 2**bucket


async def test_what_is_done_is_counted_once_however_often_it_is_acknowledged(desk: InboxDesk) -> None:
    await desk.ingest(event(1), event(2), event(3))
    found = await desk.next(3)
    await desk.ack(found[:2])
    await desk.ack(found[1:])
    assert await sums(desk, "ended") == {("gateway", "done"): 3}


async def test_what_ends_unprocessed_is_counted_by_its_end(desk: InboxDesk) -> None:
    p3 = [event(n, event={"external_event_id": f"event-{n}", **kind("test.x")}) for n in range(5)]
    await desk.ingest(*p3[:2])
    desk.clock.forward(61)
    await desk.buffer.sweep()
    await desk.ingest(*p3[2:])
    for _ in range(5):
        await desk.nack(await desk.next(10))
    assert await sums(desk, "ended") == {
        ("gateway", "auto_acked"): 2,
        ("gateway", "coalesced"): 3,
        ("gateway", "failed"): 1,
    }


async def test_counts_agree_with_what_happened_across_restarts_and_writers(desk: InboxDesk) -> None:
    leases = 0
    fresh = duplicates = 0
    for day in range(3):
        for hour in range(2):
            others = [reopened(desk.database) for _ in range(3)]
            intakes = [Intake(each, None, desk.clock) for each in others]
            batch = [mail(f"{day}-{hour}-{n % 20}", ("default", "interactive")[n % 2]) for n in range(30)]
            answers = await asyncio.gather(*(intake.ingest_batch(batch) for intake in intakes))
            for answer in (each for batch in answers for each in batch):
                assert isinstance(answer, Accepted)
                duplicates += answer.duplicate
                fresh += not answer.duplicate
            for each in others:
                await each.close()
            leases += len(await desk.next(15, "email"))
            await desk.restart()
            desk.clock.forward(1800)
        desk.clock.forward(6 * 3600)
    assert fresh == 120
    assert sum((await sums(desk, "accepted")).values()) == fresh
    assert sum((await sums(desk, "duplicate")).values()) == duplicates
    waits = await counted(desk, "wait")
    assert sum(each.count for each in waits) == leases
    assert len({each.hour for each in await counted(desk, "accepted")}) == 3


async def test_a_decision_is_counted_with_the_transaction_that_makes_it(desk: InboxDesk) -> None:
    decided = await fault_cases_mail.record_decision(Desk(desk.database, desk.clock))
    assert await sums(desk, "decision") == {}
    await desk.database.run(decided)
    assert await sums(desk, "decision") == {("email", "archive"): 1}
    assert await sums(desk, "rule") == {("email", "deterministic"): 1}


async def test_shards_keep_writers_apart_and_readers_see_their_sum(desk: InboxDesk) -> None:
    now = desk.clock()
    counts = [Count("decision", "email", "archive"), Count("rule", "email", "news"), Count("rule", "email", "news")]
    await asyncio.gather(*(desk.database.run(add(counts, now, writer)) for writer in range(5 * SHARDS)))
    ((shards,),) = await select(desk.database, "SELECT count(DISTINCT shard) FROM rollups")
    assert shards == SHARDS
    assert await sums(desk, "decision") == {("email", "archive"): 5 * SHARDS}
    assert await sums(desk, "rule") == {("email", "news"): 10 * SHARDS}


async def test_nothing_is_counted_for_what_was_rolled_back(desk: InboxDesk) -> None:
    @transaction
    def broken() -> Script[None]:
        yield from adding([Count("decision", "email", "archive")], desk.clock(), 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await desk.database.run(broken())
    assert await counted(desk, "decision") == []


async def test_hours_outside_the_window_are_left_out_and_old_ones_can_be_pruned(desk: InboxDesk) -> None:
    for _ in range(4):
        await desk.database.run(add([Count("decision", "email", "archive")], desk.clock(), 1))
        desk.clock.forward(3600)
    start = desk.clock() - timedelta(hours=4)
    found = await desk.database.run(hourly("decision", start + timedelta(hours=1), start + timedelta(hours=3)))
    assert [each.hour for each in found] == [start + timedelta(hours=1), start + timedelta(hours=2)]
    assert await desk.database.run(prune_rollups(start + timedelta(hours=2))) == 2
    assert [each.hour for each in await counted(desk, "decision")] == [
        start + timedelta(hours=2),
        start + timedelta(hours=3),
    ]

"""Counts by hour agree with what was accepted, delivered and ended, across writers and restarts."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta

import pytest

from postroom.core.errors import Conflict
from postroom.intake.intake import Intake
from postroom.store.engine.database import Database, Script, transaction
from postroom.store.installation.rollups import SHARDS, Count, HourCount, adding, hourly, prune_rollups, waited
from postroom.store.intake.acceptance import Accepted
from support.backfills import NAMED
from support.clocks import ManualClock
from support.store import fault_cases_mail
from support.store.inbox_setup import InboxSetup, event, kind, mail, metadata, reopened, select
from support.store.job_setup import JobSetup


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


async def counted(setup: InboxSetup, measure: str, hours: int = 48) -> list[HourCount]:
    now = setup.clock()
    return await setup.database.run(hourly(measure, now - timedelta(hours=hours), now + timedelta(hours=1)))


async def sums(setup: InboxSetup, measure: str) -> dict[tuple[str, str], int]:
    found = Counter[tuple[str, str]]()
    for each in await counted(setup, measure):
        found[each.queue, each.name] += each.count
    return dict(found)


@transaction
def add(counts: Iterable[Count], now: datetime, writer: int) -> Script[None]:
    yield from adding(list(counts), now, writer)


async def test_what_is_accepted_is_counted_by_tier_and_endpoint_in_its_hour(setup: InboxSetup) -> None:
    await setup.batch(
        mail(1), mail(2), mail(3, "high_priority"), event(1), event(2, source={"endpoint_identity": "cd"})
    )
    setup.clock.forward(3600)
    await setup.ingest(mail(4))
    hour = setup.clock().replace(minute=0, second=0, microsecond=0)
    before = hour - timedelta(hours=1)
    endpoint = mail()["source"]["endpoint_identity"]
    assert [
        (each.hour, each.queue, each.name, each.endpoint_identity, each.count)
        for each in await counted(setup, "accepted")
    ] == [
        (before, "email", "default", endpoint, 2),
        (before, "email", "high_priority", endpoint, 1),
        (before, "gateway", "P2", "cd", 1),
        (before, "gateway", "P2", "ci", 1),
        (hour, "email", "default", endpoint, 1),
    ]


async def test_backfilled_mail_is_counted_under_the_tier_it_was_given(setup: InboxSetup) -> None:
    """A pie of tiers says how urgent the mail was, not where it waited."""
    await setup.open_backfill()
    await setup.ingest(mail(1, "interactive", control=NAMED))
    assert await sums(setup, "accepted") == {("email", "interactive"): 1}


async def test_duplicates_are_counted_by_how_they_were_known_and_conflicts_not_at_all(setup: InboxSetup) -> None:
    key = {"idempotency_key": "k"}
    same = {"raw": {}, "normalized_text": "same"}
    await setup.ingest(event(1, control=key), event(1, control=key), event(1), metadata(mail(1)), mail(1), mail(1))
    await setup.ingest(event(2, payload=same), event(3, payload=same), event(4, payload=same))
    with pytest.raises(Conflict):
        await setup.ingest(event(5, control=key))
    assert await sums(setup, "accepted") == {("gateway", "P2"): 2, ("email", "default"): 1}
    assert await sums(setup, "duplicate") == {
        ("gateway", "key"): 1,
        ("gateway", "event"): 1,
        ("gateway", "text"): 2,
        ("email", "upgrade"): 1,
        ("email", "event"): 1,
    }


async def test_waits_are_counted_with_their_milliseconds_under_a_power_of_two(setup: InboxSetup) -> None:
    await setup.ingest(event(1))
    setup.clock.forward(1.5)
    await setup.ingest(event(2))
    await setup.next(2)
    found = await counted(setup, "wait")
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


async def test_what_is_done_is_counted_once_however_often_it_is_acknowledged(setup: InboxSetup) -> None:
    await setup.ingest(event(1), event(2), event(3))
    found = await setup.next(3)
    await setup.ack(found[:2])
    await setup.ack(found[1:])
    assert await sums(setup, "ended") == {("gateway", "done"): 3}


async def test_what_ends_unprocessed_is_counted_by_its_end(setup: InboxSetup) -> None:
    p3 = [event(n, event={"external_event_id": f"event-{n}", **kind("test.x")}) for n in range(5)]
    await setup.ingest(*p3[:2])
    setup.clock.forward(61)
    await setup.buffer.sweep()
    await setup.ingest(*p3[2:])
    for _ in range(5):
        await setup.nack(await setup.next(10))
    assert await sums(setup, "ended") == {
        ("gateway", "auto_acked"): 2,
        ("gateway", "coalesced"): 3,
        ("gateway", "failed"): 1,
    }


async def test_counts_agree_with_what_happened_across_restarts_and_writers(setup: InboxSetup) -> None:
    leases = 0
    fresh = duplicates = 0
    for day in range(3):
        for hour in range(2):
            others = [reopened(setup.database) for _ in range(3)]
            intakes = [Intake(each, None, setup.clock) for each in others]
            batch = [mail(f"{day}-{hour}-{n % 20}", ("default", "interactive")[n % 2]) for n in range(30)]
            answers = await asyncio.gather(*(intake.ingest_batch(batch) for intake in intakes))
            for answer in (each for batch in answers for each in batch):
                assert isinstance(answer, Accepted)
                duplicates += answer.duplicate
                fresh += not answer.duplicate
            for each in others:
                await each.close()
            leases += len(await setup.next(15, "email"))
            await setup.restart()
            setup.clock.forward(1800)
        setup.clock.forward(6 * 3600)
    assert fresh == 120
    assert sum((await sums(setup, "accepted")).values()) == fresh
    assert sum((await sums(setup, "duplicate")).values()) == duplicates
    waits = await counted(setup, "wait")
    assert sum(each.count for each in waits) == leases
    assert len({each.hour for each in await counted(setup, "accepted")}) == 3


async def test_a_decision_is_counted_with_the_transaction_that_makes_it(setup: InboxSetup) -> None:
    decided = await fault_cases_mail.record_decision(JobSetup(setup.database, setup.clock))
    assert await sums(setup, "decision") == {}
    await setup.database.run(decided)
    assert await sums(setup, "decision") == {("email", "archive"): 1}
    assert await sums(setup, "rule") == {("email", "deterministic"): 1}


async def test_shards_keep_writers_apart_and_readers_see_their_sum(setup: InboxSetup) -> None:
    now = setup.clock()
    counts = [Count("decision", "email", "archive"), Count("rule", "email", "news"), Count("rule", "email", "news")]
    await asyncio.gather(*(setup.database.run(add(counts, now, writer)) for writer in range(5 * SHARDS)))
    ((shards,),) = await select(setup.database, "SELECT count(DISTINCT shard) FROM rollups")
    assert shards == SHARDS
    assert await sums(setup, "decision") == {("email", "archive"): 5 * SHARDS}
    assert await sums(setup, "rule") == {("email", "news"): 10 * SHARDS}


async def test_nothing_is_counted_for_what_was_rolled_back(setup: InboxSetup) -> None:
    @transaction
    def broken() -> Script[None]:
        yield from adding([Count("decision", "email", "archive")], setup.clock(), 1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await setup.database.run(broken())
    assert await counted(setup, "decision") == []


async def test_hours_outside_the_window_are_left_out_and_old_ones_can_be_pruned(setup: InboxSetup) -> None:
    for _ in range(4):
        await setup.database.run(add([Count("decision", "email", "archive")], setup.clock(), 1))
        setup.clock.forward(3600)
    start = setup.clock() - timedelta(hours=4)
    found = await setup.database.run(hourly("decision", start + timedelta(hours=1), start + timedelta(hours=3)))
    assert [each.hour for each in found] == [start + timedelta(hours=1), start + timedelta(hours=2)]
    assert await setup.database.run(prune_rollups(start + timedelta(hours=2))) == 2
    assert [each.hour for each in await counted(setup, "decision")] == [
        start + timedelta(hours=2),
        start + timedelta(hours=3),
    ]

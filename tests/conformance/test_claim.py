"""Claiming: order, due time, a live lease, one owner."""

import asyncio
from datetime import timedelta, timezone

from postroom.store.engine.codecs import as_optional_time, as_uuid
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs as store
from support.store.dump import dump
from support.store.inbox_setup import select
from support.store.job_setup import LEASE, JobSetup


async def test_jobs_come_in_the_order_of_priority_and_then_of_acceptance(setup: JobSetup) -> None:
    asked = [0, 5, -1000, 5, 1000, 0, -3, 1000]
    ids = [(await setup.enqueue(priority=priority)).id for priority in asked]
    in_order = [ids[n] for n in sorted(range(len(asked)), key=lambda n: (-asked[n], n))]
    assert [job.id for job in await setup.claim()] == in_order


async def test_the_order_holds_inside_a_batch_and_across_small_claims(setup: JobSetup) -> None:
    jobs = [setup.new(priority=n % 3) for n in range(12)]
    await setup.accept(*jobs[:6])
    await setup.accept(*jobs[6:])
    in_order = [job.id for job in sorted(jobs, key=lambda job: -job.priority)]
    claimed = [job.id for _ in range(6) for job in await setup.claim(2)]
    assert claimed == in_order


async def test_a_claim_takes_no_more_than_asked_for(setup: JobSetup) -> None:
    await setup.accept(*(setup.new(priority=n % 2) for n in range(5)))
    assert len(await setup.claim(3)) == 3
    assert await setup.counts() == {"running": 3, "queued": 2}


async def test_a_claim_from_an_empty_queue_gives_nothing(setup: JobSetup) -> None:
    assert await setup.claim() == []


async def test_a_claimed_job_counts_the_attempt_and_names_its_lease(setup: JobSetup) -> None:
    accepted = await setup.enqueue(priority=3)
    token = await setup.open_lease()
    setup.clock.forward(1)
    job = await setup.claim_one(token)
    assert (job.id, job.attempts, job.max_attempts, job.priority) == (accepted.id, 1, 3, 3)
    assert job.token == token
    shown = await setup.show(job.id)
    assert (shown.state, shown.attempts, shown.updated_at) == ("running", 1, setup.clock())
    assert shown.heartbeat_at is not None


SEED_COLUMNS = """id, type, payload_json, priority, state, attempts, max_attempts, not_before, idempotency_key,
    last_error, heartbeat_at, created_at, updated_at"""


async def test_jobs_can_be_read_with_sql_with_the_last_heartbeat_of_their_worker(setup: JobSetup) -> None:
    token = await setup.open_lease()
    first = await setup.enqueue()
    await setup.claim_one(token)
    setup.clock.forward(20)
    await setup.database.run(store.heartbeat(token, setup.clock(), setup.clock() + LEASE, []))
    second = await setup.enqueue()
    rows = await select(setup.database, f"SELECT {SEED_COLUMNS} FROM jobs ORDER BY created_at")
    read = [(as_uuid(row[0]), row[4], as_optional_time(row[10])) for row in rows]
    assert read == [(first.id, "running", setup.clock()), (second.id, "queued", None)]


async def test_a_claimed_job_is_not_claimed_again(setup: JobSetup) -> None:
    await setup.claimed()
    assert await setup.claim(token=await setup.open_lease()) == []


async def test_many_claims_at_once_share_the_jobs_without_overlap(setup: JobSetup, second_database: Database) -> None:
    await setup.accept(*(setup.new(priority=n % 4) for n in range(200)))
    second = JobSetup(second_database, setup.clock)
    sides = [(side, await side.open_lease()) for side in (setup, second) for _ in range(4)]
    batches = await asyncio.gather(*(side.claim(25, token) for side, token in sides))
    seqs = [job.seq for batch in batches for job in batch]
    assert len(seqs) == len(set(seqs))
    rest = [job.seq for job in await setup.claim()]
    assert len(set(seqs + rest)) == 200


async def test_a_claim_without_a_lease_gives_nothing_and_changes_nothing(setup: JobSetup) -> None:
    await setup.enqueue()
    before = await dump(setup.database)
    assert await setup.claim(token=new_id()) == []
    assert await dump(setup.database) == before


async def test_a_claim_after_the_lease_was_closed_or_rescued_gives_nothing(setup: JobSetup) -> None:
    await setup.enqueue()
    closed, rescued = await setup.open_lease(), await setup.open_lease()
    await setup.database.run(store.close_lease(closed, setup.clock()))
    assert await setup.claim(token=closed) == []
    await setup.rescue_all()
    assert await setup.claim(token=rescued) == []


async def test_a_job_sleeps_until_its_time_and_is_never_early(setup: JobSetup) -> None:
    later = setup.clock() + timedelta(seconds=10)
    accepted = await setup.enqueue(not_before=later)
    setup.clock.forward(9.999999)
    assert await setup.wake_due() == 0
    assert await setup.claim() == []
    setup.clock.forward(0.000001)
    assert await setup.wake_due() == 1
    assert (await setup.claim_one()).id == accepted.id


async def test_a_job_whose_time_has_come_when_it_is_accepted_is_due_at_once(setup: JobSetup) -> None:
    await setup.enqueue(not_before=setup.clock())
    await setup.enqueue(not_before=setup.clock() - timedelta(days=1))
    assert len(await setup.claim()) == 2


async def test_a_time_in_another_zone_is_the_same_moment(setup: JobSetup) -> None:
    later = (setup.clock() + timedelta(seconds=10)).astimezone(timezone(timedelta(hours=-9)))
    accepted = await setup.enqueue(not_before=later)
    assert (await setup.show(accepted.id)).not_before == later
    assert await setup.wake_due() == 0
    setup.clock.forward(10)
    assert await setup.wake_due() == 1


async def test_the_longest_due_wake_first_up_to_the_limit(setup: JobSetup) -> None:
    ids = [(await setup.enqueue(not_before=setup.clock() + timedelta(seconds=s))).id for s in (30, 10, 20)]
    setup.clock.forward(30)
    assert await setup.wake_due(1) == 1
    assert (await setup.claim_one()).id == ids[1]
    assert await setup.wake_due(10) == 2
    assert [job.id for job in await setup.claim()] == [ids[0], ids[2]], "awake, they come in accepted order"


async def test_the_next_due_time_is_that_of_the_first_sleeper(setup: JobSetup) -> None:
    assert await setup.database.run(store.next_due()) is None
    await setup.enqueue()
    assert await setup.database.run(store.next_due()) is None
    for seconds in (20, 10, 30):
        await setup.enqueue(not_before=setup.clock() + timedelta(seconds=seconds))
    assert await setup.database.run(store.next_due()) == setup.clock() + timedelta(seconds=10)


async def test_two_that_wake_at_once_wake_each_job_once(setup: JobSetup, second_database: Database) -> None:
    soon = setup.clock() + timedelta(seconds=1)
    await setup.accept(*(setup.new(not_before=soon) for _ in range(50)))
    setup.clock.forward(1)
    second = JobSetup(second_database, setup.clock)
    woken = await asyncio.gather(*(side.wake_due(30) for side in (setup, second, setup)))
    rest = await setup.wake_due()
    assert sum(woken) + rest == 50
    assert len(await setup.claim()) == 50


async def test_a_job_knows_its_last_attempt(setup: JobSetup) -> None:
    await setup.enqueue()
    last: list[bool] = []
    for _ in range(3):
        job = await setup.claim_one()
        last.append(job.is_last_attempt)
        await setup.retry_later(job, seconds=1)
        setup.clock.forward(1)
        await setup.wake_due()
    assert last == [False, False, True]

"""Claiming: in which order, not before its time, only under a live lease, to one owner."""

import asyncio
from datetime import timedelta, timezone

from conformance.desk import Desk
from conformance.dump import dump
from postroom.store import jobs as store
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id


async def test_jobs_come_in_the_order_of_priority_and_then_of_acceptance(desk: Desk) -> None:
    asked = [0, 5, -1000, 5, 1000, 0, -3, 1000]
    ids = [(await desk.enqueue(priority=priority)).id for priority in asked]
    in_order = [ids[n] for n in sorted(range(len(asked)), key=lambda n: (-asked[n], n))]
    assert [job.id for job in await desk.claim()] == in_order


async def test_the_order_holds_inside_a_batch_and_across_small_claims(desk: Desk) -> None:
    jobs = [desk.new(priority=n % 3) for n in range(12)]
    await desk.accept(*jobs[:6])
    await desk.accept(*jobs[6:])
    in_order = [job.id for job in sorted(jobs, key=lambda job: -job.priority)]
    claimed = [job.id for _ in range(6) for job in await desk.claim(2)]
    assert claimed == in_order


async def test_a_claim_takes_no_more_than_asked_for(desk: Desk) -> None:
    await desk.accept(*(desk.new(priority=n % 2) for n in range(5)))
    assert len(await desk.claim(3)) == 3
    assert await desk.counts() == {"running": 3, "queued": 2}


async def test_a_claim_from_an_empty_queue_gives_nothing(desk: Desk) -> None:
    assert await desk.claim() == []


async def test_a_claimed_job_counts_the_attempt_and_names_its_lease(desk: Desk) -> None:
    accepted = await desk.enqueue(priority=3)
    token = await desk.open_lease()
    desk.clock.forward(1)
    job = await desk.claim_one(token)
    assert (job.id, job.attempts, job.max_attempts, job.priority) == (accepted.id, 1, 3, 3)
    assert job.token == token
    shown = await desk.show(job.id)
    assert (shown.state, shown.attempts, shown.updated_at) == ("running", 1, desk.clock())
    assert shown.heartbeat_at is not None


async def test_a_claimed_job_is_not_claimed_again(desk: Desk) -> None:
    await desk.claimed()
    assert await desk.claim(token=await desk.open_lease()) == []


async def test_many_claims_at_once_share_the_jobs_without_overlap(desk: Desk, second_database: Database) -> None:
    await desk.accept(*(desk.new(priority=n % 4) for n in range(200)))
    second = Desk(second_database, desk.clock)
    sides = [(side, await side.open_lease()) for side in (desk, second) for _ in range(4)]
    batches = await asyncio.gather(*(side.claim(25, token) for side, token in sides))
    seqs = [job.seq for batch in batches for job in batch]
    assert len(seqs) == len(set(seqs))
    rest = [job.seq for job in await desk.claim()]
    assert len(set(seqs + rest)) == 200


async def test_a_claim_without_a_lease_gives_nothing_and_changes_nothing(desk: Desk) -> None:
    await desk.enqueue()
    before = await dump(desk.database)
    assert await desk.claim(token=new_id()) == []
    assert await dump(desk.database) == before


async def test_a_claim_after_the_lease_was_closed_or_rescued_gives_nothing(desk: Desk) -> None:
    await desk.enqueue()
    closed, rescued = await desk.open_lease(), await desk.open_lease()
    await desk.database.run(store.close_lease(closed, desk.clock()))
    assert await desk.claim(token=closed) == []
    await desk.rescue_all()
    assert await desk.claim(token=rescued) == []


async def test_a_job_sleeps_until_its_time_and_is_never_early(desk: Desk) -> None:
    later = desk.clock() + timedelta(seconds=10)
    accepted = await desk.enqueue(not_before=later)
    desk.clock.forward(9.999999)
    assert await desk.wake_due() == 0
    assert await desk.claim() == []
    desk.clock.forward(0.000001)
    assert await desk.wake_due() == 1
    assert (await desk.claim_one()).id == accepted.id


async def test_a_job_whose_time_has_come_when_it_is_accepted_is_due_at_once(desk: Desk) -> None:
    await desk.enqueue(not_before=desk.clock())
    await desk.enqueue(not_before=desk.clock() - timedelta(days=1))
    assert len(await desk.claim()) == 2


async def test_a_time_in_another_zone_is_the_same_moment(desk: Desk) -> None:
    later = (desk.clock() + timedelta(seconds=10)).astimezone(timezone(timedelta(hours=-9)))
    accepted = await desk.enqueue(not_before=later)
    assert (await desk.show(accepted.id)).not_before == later
    assert await desk.wake_due() == 0
    desk.clock.forward(10)
    assert await desk.wake_due() == 1


async def test_the_longest_due_wake_first_up_to_the_limit(desk: Desk) -> None:
    ids = [(await desk.enqueue(not_before=desk.clock() + timedelta(seconds=s))).id for s in (30, 10, 20)]
    desk.clock.forward(30)
    assert await desk.wake_due(1) == 1
    assert (await desk.claim_one()).id == ids[1]
    assert await desk.wake_due(10) == 2
    assert [job.id for job in await desk.claim()] == [ids[0], ids[2]], "awake, they come in accepted order"


async def test_the_next_due_time_is_that_of_the_first_sleeper(desk: Desk) -> None:
    assert await desk.database.run(store.next_due()) is None
    await desk.enqueue()
    assert await desk.database.run(store.next_due()) is None
    for seconds in (20, 10, 30):
        await desk.enqueue(not_before=desk.clock() + timedelta(seconds=seconds))
    assert await desk.database.run(store.next_due()) == desk.clock() + timedelta(seconds=10)


async def test_two_that_wake_at_once_wake_each_job_once(desk: Desk, second_database: Database) -> None:
    soon = desk.clock() + timedelta(seconds=1)
    await desk.accept(*(desk.new(not_before=soon) for _ in range(50)))
    desk.clock.forward(1)
    second = Desk(second_database, desk.clock)
    woken = await asyncio.gather(*(side.wake_due(30) for side in (desk, second, desk)))
    rest = await desk.wake_due()
    assert sum(woken) + rest == 50
    assert len(await desk.claim()) == 50


async def test_a_job_knows_its_last_attempt(desk: Desk) -> None:
    await desk.enqueue()
    last: list[bool] = []
    for _ in range(3):
        job = await desk.claim_one()
        last.append(job.is_last_attempt)
        await desk.retry_later(job, seconds=1)
        desk.clock.forward(1)
        await desk.wake_due()
    assert last == [False, False, True]

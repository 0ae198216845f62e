"""Leases: renewed by heartbeats, lost by silence, and what becomes of the jobs of the dead."""

import asyncio

import pytest

from conformance.desk import LEASE, Desk, listen
from conformance.dump import dump
from postroom.core.errors import ConstraintBroken
from postroom.jobs.rescue import Rescuer
from postroom.store import jobs as store
from postroom.store.engine.codecs import from_json
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from support.patience import PATIENCE_S


async def test_a_heartbeat_keeps_the_lease_alive(desk: Desk) -> None:
    token = await desk.open_lease()
    job = await desk.claimed_by(token)
    for _ in range(3):
        now = desk.clock.forward(LEASE.total_seconds() - 1)
        assert await desk.database.run(store.heartbeat(token, now, now + LEASE, [job.seq])) == (True, frozenset())
        assert (await desk.show(job.id)).heartbeat_at == now
        assert await desk.database.run(store.rescue(now)) == (0, 0, 0)
    assert await desk.finish(job)


async def test_a_heartbeat_tells_which_running_jobs_are_to_be_canceled(desk: Desk) -> None:
    token = await desk.open_lease()
    jobs = [await desk.claimed_by(token) for _ in range(3)]
    for job in jobs[1:]:
        assert await desk.cancel(job.id) == "requested"
    pulse = await desk.database.run(
        store.heartbeat(token, desk.clock(), desk.clock() + LEASE, [job.seq for job in jobs[:2]])
    )
    assert pulse == (True, frozenset({jobs[1].seq}))


async def test_a_heartbeat_does_not_tell_of_jobs_that_are_anothers(desk: Desk) -> None:
    ours, theirs = await desk.open_lease(), await desk.open_lease()
    job = await desk.claimed_by(theirs)
    await desk.cancel(job.id)
    pulse = await desk.database.run(store.heartbeat(ours, desk.clock(), desk.clock() + LEASE, [job.seq]))
    assert pulse == (True, frozenset())


@pytest.mark.parametrize("loss", ["never opened", "closed", "rescued"])
async def test_a_heartbeat_says_when_the_lease_is_lost_and_revives_nothing(desk: Desk, loss: str) -> None:
    token = new_id() if loss == "never opened" else await desk.open_lease()
    if loss == "closed":
        await desk.database.run(store.close_lease(token, desk.clock()))
    if loss == "rescued":
        await desk.rescue_all()
    before = await dump(desk.database)
    assert not (await desk.database.run(store.heartbeat(token, desk.clock(), desk.clock() + LEASE, [1]))).alive
    assert await dump(desk.database) == before


async def test_a_lease_is_opened_once(desk: Desk) -> None:
    token = await desk.open_lease()
    with pytest.raises(ConstraintBroken):
        await desk.database.run(store.open_lease(token, "another", desk.clock(), desk.clock() + LEASE))


async def test_a_lease_lives_up_to_its_last_moment(desk: Desk) -> None:
    await desk.claimed()
    desk.clock.forward(LEASE.total_seconds())
    assert await desk.database.run(store.rescue(desk.clock())) == (0, 0, 0)
    desk.clock.forward(0.000001)
    assert await desk.database.run(store.rescue(desk.clock())) == (1, 1, 0)


async def test_the_job_of_a_dead_worker_is_queued_again_and_its_steps_say_so(desk: Desk) -> None:
    job = await desk.claimed(priority=4)
    assert await desk.rescue_all() == (1, 1, 0)
    shown = await desk.show(job.id)
    assert (shown.state, shown.attempts, shown.last_error) == ("queued", 1, "the worker died in attempt 1")
    assert shown.heartbeat_at is None
    (step,) = shown.steps
    assert (step.name, step.attempt, step.started_at) == ("rescued", 1, desk.clock())
    assert from_json(step.result_json or "") == {"worker": "worker", "outcome": "queued"}
    again = await desk.claim_one()
    assert (again.id, again.attempts) == (job.id, 2)


async def test_a_rescued_job_keeps_its_place_in_the_order(desk: Desk) -> None:
    first = await desk.claimed()
    await desk.rescue_all()
    await desk.enqueue()
    assert (await desk.claim_one()).id == first.id


async def test_the_job_of_a_dead_worker_fails_when_its_attempts_are_used_up(desk: Desk) -> None:
    job = await desk.claimed(max_attempts=2)
    await desk.rescue_all()
    await desk.claim_one()
    assert await desk.rescue_all() == (1, 0, 1)
    shown = await desk.show(job.id)
    assert (shown.state, shown.attempts, shown.last_error) == ("failed", 2, "the worker died in attempt 2")
    assert shown.finished_at == desk.clock()
    assert [from_json(step.result_json or "")["outcome"] for step in shown.steps] == ["queued", "failed"]


async def test_the_job_of_a_dead_worker_that_was_to_be_canceled_is_canceled(desk: Desk) -> None:
    job = await desk.claimed()
    await desk.cancel(job.id)
    assert await desk.rescue_all() == (1, 0, 1)
    shown = await desk.show(job.id)
    assert shown.state == "canceled"
    assert from_json(shown.steps[-1].result_json or "")["outcome"] == "canceled"


async def test_a_rescue_takes_over_all_that_the_dead_held_and_nothing_of_the_living(desk: Desk) -> None:
    dead, other_dead = await desk.open_lease("dead"), await desk.open_lease("dead too")
    held = [await desk.claimed_by(token) for token in (dead, other_dead, dead)]
    desk.clock.forward(1)
    living = await desk.open_lease("living")
    kept = await desk.claimed_by(living)
    desk.clock.forward(LEASE.total_seconds() - 0.5)
    assert await Rescuer(desk.database, desk.clock).tick() == (2, 3, 0)
    assert [await desk.state(job.id) for job in (*held, kept)] == ["queued"] * 3 + ["running"]
    assert await desk.database.run(store.rescue(desk.clock())) == (0, 0, 0)


async def test_two_rescuers_at_once_rescue_each_job_once(desk: Desk, second_database: Database) -> None:
    for _ in range(10):
        await desk.claimed_by(await desk.open_lease())
    now = desk.clock.forward(LEASE.total_seconds() + 1)
    assert now == desk.clock()
    rescues = await asyncio.gather(*(Rescuer(side, desk.clock).tick() for side in (desk.database, second_database)))
    assert sum(rescue.requeued for rescue in rescues) == 10
    for job in await desk.database.run(store.list_jobs()):
        assert len((await desk.show(job.id)).steps) == 1


async def test_a_worker_that_leaves_gives_back_what_it_still_holds(desk: Desk) -> None:
    token = await desk.open_lease()
    job = await desk.claimed_by(token)
    last = await desk.claimed_by(token, max_attempts=1)
    await desk.database.run(store.close_lease(token, desk.clock()))
    assert [await desk.state(each.id) for each in (job, last)] == ["queued", "failed"]
    assert not await desk.fail(job)
    await desk.database.run(store.close_lease(token, desk.clock()))


async def test_a_rescue_wakes_workers(desk: Desk) -> None:
    await desk.claimed(priority=6)
    heard = await listen(desk.database, store.CHANNEL)
    await desk.rescue_all()
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "6"


async def test_a_claim_and_a_rescue_at_once_leave_no_job_with_a_dead_owner(
    desk: Desk, second_database: Database
) -> None:
    """Whichever comes first: a job is either claimed under a lease that lives, or still queued."""
    second = Desk(second_database, desk.clock)
    for _ in range(10):
        token = await desk.open_lease()
        accepted = await desk.enqueue()
        now = desk.clock.forward(LEASE.total_seconds() + 1)
        claimed, _ = await asyncio.gather(desk.claim(1, token), second.database.run(store.rescue(now)))
        await second.database.run(store.rescue(now))
        assert await desk.state(accepted.id) == "queued", claimed
        await desk.cancel(accepted.id)


async def test_a_worker_gives_back_what_it_holds_without_knowing(desk: Desk) -> None:
    """The answer to a claim was lost: the jobs run under its lease, and nobody runs them."""
    token = await desk.open_lease()
    known, unknown = await desk.claimed_by(token), await desk.claimed_by(token)
    assert await desk.database.run(store.disown(token, [known.seq], desk.clock())) == 1
    assert await desk.state(known.id) == "running"
    given_back = await desk.show(unknown.id)
    assert (given_back.state, given_back.attempts) == ("queued", 0)
    assert [job.id for job in await desk.claim()] == [unknown.id]

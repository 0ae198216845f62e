"""Leases: renewed by heartbeats, lost by silence, and what happens to the jobs of dead workers."""

import asyncio

import pytest

from postroom.core.errors import ConstraintBroken
from postroom.jobs.rescue import Rescuer
from postroom.store.engine.codecs import from_json
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs as store
from support.patience import PATIENCE_S
from support.store.dump import dump
from support.store.job_setup import LEASE, JobSetup, listen


async def test_a_heartbeat_keeps_the_lease_alive(setup: JobSetup) -> None:
    token = await setup.open_lease()
    job = await setup.claimed_by(token)
    for _ in range(3):
        now = setup.clock.forward(LEASE.total_seconds() - 1)
        assert await setup.database.run(store.heartbeat(token, now, now + LEASE, [job.seq])) == (True, frozenset())
        assert (await setup.show(job.id)).heartbeat_at == now
        assert await setup.database.run(store.rescue(now)) == (0, 0, 0)
    assert await setup.finish(job)


async def test_a_heartbeat_tells_which_running_jobs_are_to_be_canceled(setup: JobSetup) -> None:
    token = await setup.open_lease()
    jobs = [await setup.claimed_by(token) for _ in range(3)]
    for job in jobs[1:]:
        assert await setup.cancel(job.id) == "requested"
    pulse = await setup.database.run(
        store.heartbeat(token, setup.clock(), setup.clock() + LEASE, [job.seq for job in jobs[:2]])
    )
    assert pulse == (True, frozenset({jobs[1].seq}))


async def test_a_heartbeat_does_not_tell_of_jobs_that_are_anothers(setup: JobSetup) -> None:
    ours, theirs = await setup.open_lease(), await setup.open_lease()
    job = await setup.claimed_by(theirs)
    await setup.cancel(job.id)
    pulse = await setup.database.run(store.heartbeat(ours, setup.clock(), setup.clock() + LEASE, [job.seq]))
    assert pulse == (True, frozenset())


@pytest.mark.parametrize("loss", ["never opened", "closed", "rescued"])
async def test_a_heartbeat_says_when_the_lease_is_lost_and_revives_nothing(setup: JobSetup, loss: str) -> None:
    token = new_id() if loss == "never opened" else await setup.open_lease()
    if loss == "closed":
        await setup.database.run(store.close_lease(token, setup.clock()))
    if loss == "rescued":
        await setup.rescue_all()
    before = await dump(setup.database)
    assert not (await setup.database.run(store.heartbeat(token, setup.clock(), setup.clock() + LEASE, [1]))).alive
    assert await dump(setup.database) == before


async def test_a_lease_is_opened_once(setup: JobSetup) -> None:
    token = await setup.open_lease()
    with pytest.raises(ConstraintBroken):
        await setup.database.run(store.open_lease(token, "another", setup.clock(), setup.clock() + LEASE))


async def test_a_lease_lives_up_to_its_last_moment(setup: JobSetup) -> None:
    await setup.claimed()
    setup.clock.forward(LEASE.total_seconds())
    assert await setup.database.run(store.rescue(setup.clock())) == (0, 0, 0)
    setup.clock.forward(0.000001)
    assert await setup.database.run(store.rescue(setup.clock())) == (1, 1, 0)


async def test_the_job_of_a_dead_worker_is_queued_again_and_its_steps_say_so(setup: JobSetup) -> None:
    job = await setup.claimed(priority=4)
    assert await setup.rescue_all() == (1, 1, 0)
    shown = await setup.show(job.id)
    assert (shown.state, shown.attempts, shown.last_error) == ("queued", 1, "the worker died in attempt 1")
    assert shown.heartbeat_at is None
    (step,) = shown.steps
    assert (step.name, step.attempt, step.started_at) == ("rescued", 1, setup.clock())
    assert from_json(step.result_json or "") == {"worker": "worker", "outcome": "queued"}
    again = await setup.claim_one()
    assert (again.id, again.attempts) == (job.id, 2)


async def test_a_rescued_job_keeps_its_place_in_the_order(setup: JobSetup) -> None:
    first = await setup.claimed()
    await setup.rescue_all()
    await setup.enqueue()
    assert (await setup.claim_one()).id == first.id


async def test_the_job_of_a_dead_worker_fails_when_its_attempts_are_used_up(setup: JobSetup) -> None:
    job = await setup.claimed(max_attempts=2)
    await setup.rescue_all()
    await setup.claim_one()
    assert await setup.rescue_all() == (1, 0, 1)
    shown = await setup.show(job.id)
    assert (shown.state, shown.attempts, shown.last_error) == ("failed", 2, "the worker died in attempt 2")
    assert shown.finished_at == setup.clock()
    assert [from_json(step.result_json or "")["outcome"] for step in shown.steps] == ["queued", "failed"]


async def test_the_job_of_a_dead_worker_that_was_to_be_canceled_is_canceled(setup: JobSetup) -> None:
    job = await setup.claimed()
    await setup.cancel(job.id)
    assert await setup.rescue_all() == (1, 0, 1)
    shown = await setup.show(job.id)
    assert shown.state == "canceled"
    assert from_json(shown.steps[-1].result_json or "")["outcome"] == "canceled"


async def test_a_rescue_takes_over_all_that_the_dead_held_and_nothing_of_the_living(setup: JobSetup) -> None:
    dead, other_dead = await setup.open_lease("dead"), await setup.open_lease("dead too")
    held = [await setup.claimed_by(token) for token in (dead, other_dead, dead)]
    setup.clock.forward(1)
    living = await setup.open_lease("living")
    kept = await setup.claimed_by(living)
    setup.clock.forward(LEASE.total_seconds() - 0.5)
    assert await Rescuer(setup.database, setup.clock).tick() == (2, 3, 0)
    assert [await setup.state(job.id) for job in (*held, kept)] == ["queued"] * 3 + ["running"]
    assert await setup.database.run(store.rescue(setup.clock())) == (0, 0, 0)


async def test_two_rescuers_at_once_rescue_each_job_once(setup: JobSetup, second_database: Database) -> None:
    for _ in range(10):
        await setup.claimed_by(await setup.open_lease())
    now = setup.clock.forward(LEASE.total_seconds() + 1)
    assert now == setup.clock()
    rescues = await asyncio.gather(*(Rescuer(side, setup.clock).tick() for side in (setup.database, second_database)))
    assert sum(rescue.requeued for rescue in rescues) == 10
    for job in await setup.database.run(store.list_jobs()):
        assert len((await setup.show(job.id)).steps) == 1


async def test_a_worker_that_leaves_gives_back_what_it_still_holds(setup: JobSetup) -> None:
    token = await setup.open_lease()
    job = await setup.claimed_by(token)
    last = await setup.claimed_by(token, max_attempts=1)
    await setup.database.run(store.close_lease(token, setup.clock()))
    assert [await setup.state(each.id) for each in (job, last)] == ["queued", "failed"]
    assert not await setup.fail(job)
    await setup.database.run(store.close_lease(token, setup.clock()))


async def test_a_rescue_wakes_workers(setup: JobSetup) -> None:
    await setup.claimed(priority=6)
    heard = await listen(setup.database, store.CHANNEL)
    await setup.rescue_all()
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "6"


async def test_a_claim_and_a_rescue_at_once_leave_no_job_with_a_dead_owner(
    setup: JobSetup, second_database: Database
) -> None:
    """Whichever comes first: a job is either claimed under a lease that lives, or still queued."""
    second = JobSetup(second_database, setup.clock)
    for _ in range(10):
        token = await setup.open_lease()
        accepted = await setup.enqueue()
        now = setup.clock.forward(LEASE.total_seconds() + 1)
        claimed, _ = await asyncio.gather(setup.claim(1, token), second.database.run(store.rescue(now)))
        await second.database.run(store.rescue(now))
        assert await setup.state(accepted.id) == "queued", claimed
        await setup.cancel(accepted.id)


async def test_a_worker_gives_back_what_it_holds_without_knowing(setup: JobSetup) -> None:
    """The answer to a claim was lost: the jobs run under its lease, and nobody runs them."""
    token = await setup.open_lease()
    known, unknown = await setup.claimed_by(token), await setup.claimed_by(token)
    assert await setup.database.run(store.disown(token, [known.seq], setup.clock())) == 1
    assert await setup.state(known.id) == "running"
    given_back = await setup.show(unknown.id)
    assert (given_back.state, given_back.attempts) == ("queued", 0)
    assert [job.id for job in await setup.claim()] == [unknown.id]

"""One key, one job: for good, or while the first job is live."""

import asyncio
from datetime import timedelta

import pytest

from postroom.core.errors import IllegalMove
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs as store
from support.job_queue import JobQueue
from support.scale import scale
from support.store.dump import dump
from support.store.job_setup import TYPES, JobSetup


async def test_the_same_key_again_gives_the_first_jobs_id_and_changes_nothing(setup: JobSetup) -> None:
    first = await setup.enqueue(key="k", payload={"n": 1})
    before = await dump(setup.database)
    again = await setup.enqueue(key="k", payload={"n": 2}, priority=9)
    assert again == (first.id, True)
    assert await dump(setup.database) == before


async def test_jobs_without_a_key_are_never_duplicates(setup: JobSetup) -> None:
    answers = [await setup.enqueue() for _ in range(3)]
    assert len({answer.id for answer in answers}) == 3
    assert not any(answer.duplicate for answer in answers)


async def test_keys_are_distinguished_by_case_and_by_every_character(setup: JobSetup) -> None:
    for key in ("a", "A", "a ", "ä", "a\u0308"):
        assert not (await setup.enqueue(key=key)).duplicate


async def test_a_key_for_good_is_taken_across_types(setup: JobSetup) -> None:
    first = await setup.enqueue("plain", key="k")
    assert await setup.enqueue("other", key="k") == (first.id, True)


@pytest.mark.parametrize("end", ["finish", "fail", "cancel", "cancel_claimed", "rescue"])
async def test_a_key_for_good_outlives_the_end_of_its_job(setup: JobSetup, end: str) -> None:
    first = (await setup.enqueue(key="k", max_attempts=1)).id
    await _end(setup, first, end)
    assert await setup.enqueue(key="k") == (first, True)


async def test_a_key_for_good_outlives_the_pruning_of_its_job(setup: JobSetup) -> None:
    job = await setup.claimed(key="k")
    await setup.finish(job)
    setup.clock.forward(60)
    assert await setup.database.run(store.prune("completed", setup.clock(), 10)) == 1
    assert await setup.database.run(store.show_job(job.id)) is None
    assert await setup.enqueue(key="k") == (job.id, True)


@pytest.mark.parametrize("end", ["finish", "fail", "cancel", "cancel_claimed", "rescue"])
async def test_a_key_while_live_is_released_by_the_end_of_its_job(setup: JobSetup, end: str) -> None:
    first = (await setup.enqueue("sync", key="k", max_attempts=1)).id
    assert (await setup.enqueue("sync", key="k")).duplicate
    await _end(setup, first, end)
    second = await setup.enqueue("sync", key="k")
    assert not second.duplicate
    assert await setup.enqueue("sync", key="k") == (second.id, True)


@pytest.mark.parametrize("pause", ["claim", "retry_later", "park", "release", "rescue"])
async def test_a_key_while_live_is_held_through_every_move_that_is_no_end(setup: JobSetup, pause: str) -> None:
    job = await setup.claimed("sync", key="k")
    match pause:
        case "retry_later":
            await setup.retry_later(job)
        case "park":
            await setup.park(job)
        case "release":
            await setup.release(job)
        case "rescue":
            await setup.rescue_all()
        case _:
            pass
    assert await setup.enqueue("sync", key="k") == (job.id, True)


async def test_the_end_of_a_job_does_not_release_the_key_of_its_successor(setup: JobSetup) -> None:
    first = await setup.claimed("sync", key="k")
    await setup.fail(first)
    second = await setup.enqueue("sync", key="k")
    with pytest.raises(IllegalMove, match="another live job holds its key"):
        await setup.retry(first.id)
    assert await setup.finish(first) == set()
    assert await setup.enqueue("sync", key="k") == (second.id, True)


async def test_a_retry_takes_a_key_while_live_back(setup: JobSetup) -> None:
    job = await setup.claimed("sync", key="k")
    await setup.fail(job)
    await setup.retry(job.id)
    assert await setup.enqueue("sync", key="k") == (job.id, True)
    await setup.finish(await setup.claim_one())
    assert not (await setup.enqueue("sync", key="k")).duplicate


async def test_finishing_many_jobs_releases_only_the_keys_of_those_that_were_ours(setup: JobSetup) -> None:
    await setup.accept(*(setup.new("sync", key=f"k{n}") for n in range(4)))
    jobs = await setup.claim()
    stale = [job._replace(attempts=2) for job in jobs[:2]]
    assert await setup.finish(*stale, *jobs[2:]) == {job.seq for job in jobs[2:]}
    answers = [await setup.enqueue("sync", key=f"k{n}") for n in range(4)]
    assert [answer.duplicate for answer in answers] == [True, True, False, False]


async def test_duplicates_inside_one_batch_give_the_first_of_them(setup: JobSetup) -> None:
    jobs = [setup.new(key="a"), setup.new(key="b"), setup.new(key="a"), setup.new(), setup.new(key="a")]
    answers = await setup.accept(*jobs)
    first = jobs[0].id
    assert [answer.id for answer in answers] == [first, jobs[1].id, first, jobs[3].id, first]
    assert [answer.duplicate for answer in answers] == [False, False, True, False, True]
    assert await setup.counts() == {"queued": 3}


async def test_a_batch_may_mix_new_keys_with_taken_ones(setup: JobSetup) -> None:
    taken = (await setup.enqueue(key="b")).id
    jobs = [setup.new(key=key) for key in ("c", "b", "a")]
    assert [answer.id for answer in await setup.accept(*jobs)] == [jobs[0].id, taken, jobs[2].id]


async def test_many_tasks_that_enqueue_the_same_keys_at_once_agree_on_one_job_each(setup: JobSetup) -> None:
    queue = JobQueue(setup.database, TYPES, setup.clock)
    answers = await asyncio.gather(*(queue.enqueue("plain", {}, key=f"k{n % 20}") for n in range(200)))
    assert len({answer.id for answer in answers}) == 20
    assert sum(not answer.duplicate for answer in answers) == 20
    assert await setup.counts() == {"queued": 20}


async def test_two_processes_that_enqueue_the_same_keys_at_once_agree_on_one_job_each(
    setup: JobSetup, second_database: Database
) -> None:
    """In batches whose keys come in opposite orders, so that they would wait for each other if keys were not sorted."""
    second = JobSetup(second_database, setup.clock)
    rounds = scale(10, 200)
    for n in range(rounds):
        keys = [f"{n}:{each}" for each in range(10)]
        batches = await asyncio.gather(
            *(
                side.accept(*(side.new(key=key) for key in (keys if turn % 2 else reversed(keys))))
                for turn in range(2)
                for side in (setup, second)
            )
        )
        answers = [answer for batch in batches for answer in batch]
        assert len({answer.id for answer in answers}) == 10
        assert sum(not answer.duplicate for answer in answers) == 10
    assert await setup.counts() == {"queued": 10 * rounds}


async def test_a_key_while_live_that_is_released_meanwhile_never_leaves_an_asker_without_a_job(
    setup: JobSetup, second_database: Database
) -> None:
    """One side ends the job again and again while the other asks for it: each answer names a job that exists."""
    second = JobSetup(second_database, setup.clock)

    async def ask() -> None:
        for _ in range(scale(30, 500)):
            await setup.state((await setup.enqueue("sync", key="k")).id)

    async def end() -> None:
        for _ in range(scale(30, 500)):
            for job in await second.claim():
                assert await second.finish(job) == {job.seq}

    await asyncio.gather(ask(), end())
    live = [job for job in await setup.database.run(store.list_jobs()) if job.state in ("queued", "running")]
    assert len(live) <= 1


async def test_a_scheduled_job_holds_its_key_while_it_sleeps(setup: JobSetup) -> None:
    sleeping = await setup.enqueue("sync", key="k", not_before=setup.clock() + timedelta(hours=1))
    assert await setup.enqueue("sync", key="k") == (sleeping.id, True)


async def _end(setup: JobSetup, id: object, end: str) -> None:
    if end == "cancel":
        await setup.cancel((await setup.database.run(store.list_jobs()))[0].id)
        return
    job = await setup.claim_one()
    assert job.id == id
    match end:
        case "finish":
            assert await setup.finish(job)
        case "fail":
            assert await setup.fail(job)
        case "cancel_claimed":
            assert await setup.cancel_claimed(job)
        case "rescue":
            assert (await setup.rescue_all()).ended == 1
        case _:
            raise AssertionError(end)

"""One key, one job: for good, or while the first one lives."""

import asyncio
from datetime import timedelta

import pytest

from conformance.desk import TYPES, Desk
from conformance.dump import dump
from conftest import scale
from postroom.core.errors import IllegalMove
from postroom.jobs.queue import JobQueue
from postroom.store import jobs as store
from postroom.store.engine.database import Database


async def test_the_same_key_again_gives_the_first_jobs_id_and_changes_nothing(desk: Desk) -> None:
    first = await desk.enqueue(key="k", payload={"n": 1})
    before = await dump(desk.database)
    again = await desk.enqueue(key="k", payload={"n": 2}, priority=9)
    assert again == (first.id, True)
    assert await dump(desk.database) == before


async def test_jobs_without_a_key_are_never_duplicates(desk: Desk) -> None:
    answers = [await desk.enqueue() for _ in range(3)]
    assert len({answer.id for answer in answers}) == 3
    assert not any(answer.duplicate for answer in answers)


async def test_keys_are_told_apart_by_case_and_by_every_character(desk: Desk) -> None:
    for key in ("a", "A", "a ", "ä", "a\u0308"):
        assert not (await desk.enqueue(key=key)).duplicate


async def test_a_key_for_good_is_taken_across_types(desk: Desk) -> None:
    first = await desk.enqueue("plain", key="k")
    assert await desk.enqueue("other", key="k") == (first.id, True)


@pytest.mark.parametrize("end", ["finish", "fail", "cancel", "cancel_claimed", "rescue"])
async def test_a_key_for_good_outlives_the_end_of_its_job(desk: Desk, end: str) -> None:
    first = (await desk.enqueue(key="k", max_attempts=1)).id
    await _end(desk, first, end)
    assert await desk.enqueue(key="k") == (first, True)


async def test_a_key_for_good_outlives_the_pruning_of_its_job(desk: Desk) -> None:
    job = await desk.claimed(key="k")
    await desk.finish(job)
    desk.clock.forward(60)
    assert await desk.database.run(store.prune("completed", desk.clock(), 10)) == 1
    assert await desk.database.run(store.show_job(job.id)) is None
    assert await desk.enqueue(key="k") == (job.id, True)


@pytest.mark.parametrize("end", ["finish", "fail", "cancel", "cancel_claimed", "rescue"])
async def test_a_key_while_live_is_released_by_the_end_of_its_job(desk: Desk, end: str) -> None:
    first = (await desk.enqueue("sync", key="k", max_attempts=1)).id
    assert (await desk.enqueue("sync", key="k")).duplicate
    await _end(desk, first, end)
    second = await desk.enqueue("sync", key="k")
    assert not second.duplicate
    assert await desk.enqueue("sync", key="k") == (second.id, True)


@pytest.mark.parametrize("pause", ["claim", "retry_later", "park", "release", "rescue"])
async def test_a_key_while_live_is_held_through_every_move_that_is_no_end(desk: Desk, pause: str) -> None:
    job = await desk.claimed("sync", key="k")
    match pause:
        case "retry_later":
            await desk.retry_later(job)
        case "park":
            await desk.park(job)
        case "release":
            await desk.release(job)
        case "rescue":
            await desk.rescue_all()
        case _:
            pass
    assert await desk.enqueue("sync", key="k") == (job.id, True)


async def test_the_end_of_a_job_does_not_release_the_key_of_its_successor(desk: Desk) -> None:
    first = await desk.claimed("sync", key="k")
    await desk.fail(first)
    second = await desk.enqueue("sync", key="k")
    with pytest.raises(IllegalMove, match="another live job holds its key"):
        await desk.retry(first.id)
    assert await desk.finish(first) == set()
    assert await desk.enqueue("sync", key="k") == (second.id, True)


async def test_a_retry_takes_a_key_while_live_back(desk: Desk) -> None:
    job = await desk.claimed("sync", key="k")
    await desk.fail(job)
    await desk.retry(job.id)
    assert await desk.enqueue("sync", key="k") == (job.id, True)
    await desk.finish(await desk.claim_one())
    assert not (await desk.enqueue("sync", key="k")).duplicate


async def test_finishing_many_jobs_releases_only_the_keys_of_those_that_were_ours(desk: Desk) -> None:
    await desk.accept(*(desk.new("sync", key=f"k{n}") for n in range(4)))
    jobs = await desk.claim()
    stale = [job._replace(attempts=2) for job in jobs[:2]]
    assert await desk.finish(*stale, *jobs[2:]) == {job.seq for job in jobs[2:]}
    answers = [await desk.enqueue("sync", key=f"k{n}") for n in range(4)]
    assert [answer.duplicate for answer in answers] == [True, True, False, False]


async def test_duplicates_inside_one_batch_give_the_first_of_them(desk: Desk) -> None:
    jobs = [desk.new(key="a"), desk.new(key="b"), desk.new(key="a"), desk.new(), desk.new(key="a")]
    answers = await desk.accept(*jobs)
    first = jobs[0].id
    assert [answer.id for answer in answers] == [first, jobs[1].id, first, jobs[3].id, first]
    assert [answer.duplicate for answer in answers] == [False, False, True, False, True]
    assert await desk.counts() == {"queued": 3}


async def test_a_batch_may_mix_new_keys_with_taken_ones(desk: Desk) -> None:
    taken = (await desk.enqueue(key="b")).id
    jobs = [desk.new(key=key) for key in ("c", "b", "a")]
    assert [answer.id for answer in await desk.accept(*jobs)] == [jobs[0].id, taken, jobs[2].id]


async def test_many_tasks_that_enqueue_the_same_keys_at_once_agree_on_one_job_each(desk: Desk) -> None:
    queue = JobQueue(desk.database, TYPES, desk.clock)
    answers = await asyncio.gather(*(queue.enqueue("plain", {}, key=f"k{n % 20}") for n in range(200)))
    assert len({answer.id for answer in answers}) == 20
    assert sum(not answer.duplicate for answer in answers) == 20
    assert await desk.counts() == {"queued": 20}


async def test_two_processes_that_enqueue_the_same_keys_at_once_agree_on_one_job_each(
    desk: Desk, second_database: Database
) -> None:
    """In batches whose keys come in opposite orders, so that they would wait for each other if keys were not sorted."""
    second = Desk(second_database, desk.clock)
    rounds = scale(10, 200)
    for n in range(rounds):
        keys = [f"{n}:{each}" for each in range(10)]
        batches = await asyncio.gather(
            *(
                side.accept(*(side.new(key=key) for key in (keys if turn % 2 else reversed(keys))))
                for turn in range(2)
                for side in (desk, second)
            )
        )
        answers = [answer for batch in batches for answer in batch]
        assert len({answer.id for answer in answers}) == 10
        assert sum(not answer.duplicate for answer in answers) == 10
    assert await desk.counts() == {"queued": 10 * rounds}


async def test_a_key_while_live_that_is_released_meanwhile_never_leaves_an_asker_without_a_job(
    desk: Desk, second_database: Database
) -> None:
    """One side ends the job again and again while the other asks for it: each answer names a job that exists."""
    second = Desk(second_database, desk.clock)

    async def ask() -> None:
        for _ in range(scale(30, 500)):
            await desk.state((await desk.enqueue("sync", key="k")).id)

    async def end() -> None:
        for _ in range(scale(30, 500)):
            for job in await second.claim():
                assert await second.finish(job) == {job.seq}

    await asyncio.gather(ask(), end())
    live = [job for job in await desk.database.run(store.list_jobs()) if job.state in ("queued", "running")]
    assert len(live) <= 1


async def test_a_scheduled_job_holds_its_key_while_it_sleeps(desk: Desk) -> None:
    sleeping = await desk.enqueue("sync", key="k", not_before=desk.clock() + timedelta(hours=1))
    assert await desk.enqueue("sync", key="k") == (sleeping.id, True)


async def _end(desk: Desk, id: object, end: str) -> None:
    if end == "cancel":
        await desk.cancel((await desk.database.run(store.list_jobs()))[0].id)
        return
    job = await desk.claim_one()
    assert job.id == id
    match end:
        case "finish":
            assert await desk.finish(job)
        case "fail":
            assert await desk.fail(job)
        case "cancel_claimed":
            assert await desk.cancel_claimed(job)
        case "rescue":
            assert (await desk.rescue_all()).ended == 1
        case _:
            raise AssertionError(end)

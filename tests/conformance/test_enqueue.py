"""Enqueuing jobs: what is stored, what is returned, who is woken."""

import asyncio
from datetime import timedelta

import pytest

from postroom.core.errors import ConstraintBroken
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs as store
from support.job_queue import JobQueue
from support.patience import PATIENCE_S
from support.store.dump import dump
from support.store.job_setup import TYPES, JobSetup, listen


async def test_a_job_that_was_accepted_can_be_shown_as_it_was_asked_for(setup: JobSetup) -> None:
    later = setup.clock() + timedelta(minutes=5)
    payload = {"text": "naïve 📮 \u0000", "list": [1, 2.5, None, True], "deep": {"er": {}}}
    accepted = await setup.enqueue("sync", payload, key="k", priority=-7, not_before=later, max_attempts=4)
    shown = await setup.show(accepted.id)
    assert (shown.id, shown.type, shown.state) == (accepted.id, "sync", "queued")
    assert shown.payload_json == setup.new("sync", payload).payload_json
    assert (shown.priority, shown.attempts, shown.max_attempts) == (-7, 0, 4)
    assert (shown.idempotency_key, shown.not_before) == ("k", later)
    assert shown.created_at == shown.updated_at == setup.clock()
    assert (shown.finished_at, shown.heartbeat_at, shown.last_error, shown.parked_by) == (None,) * 4
    assert not shown.cancel_requested
    assert not shown.steps


async def test_a_handler_gets_the_payload_that_was_asked_for(setup: JobSetup) -> None:
    payload = {"text": "naïve 📮 \u0000", "list": [1, 2.5, None, True], "deep": {"er": {}}}
    job = await setup.claimed(payload=payload)
    assert job.payload == payload


async def test_the_trace_of_the_caller_goes_with_the_job(setup: JobSetup) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert (await setup.claimed(traceparent=trace)).traceparent == trace


async def test_a_job_that_is_not_there_shows_as_nothing(setup: JobSetup) -> None:
    assert await setup.database.run(store.show_job(new_id())) is None


async def test_a_batch_is_answered_in_the_order_in_which_it_was_asked(setup: JobSetup) -> None:
    jobs = [setup.new(key=None if n % 2 else f"k{9 - n}") for n in range(10)]
    assert [answer.id for answer in await setup.accept(*jobs)] == [job.id for job in jobs]


async def test_an_empty_batch_is_accepted_and_changes_nothing(setup: JobSetup) -> None:
    before = await dump(setup.database)
    assert await setup.accept() == []
    assert await dump(setup.database) == before


async def test_a_batch_with_a_row_that_the_schema_forbids_is_refused_as_a_whole(setup: JobSetup) -> None:
    good = setup.new(key="good")
    await setup.accept(good)
    before = await dump(setup.database)
    with pytest.raises(ConstraintBroken):
        await setup.accept(setup.new(key="fresh"), setup.new(), good._replace(key=None))
    assert await dump(setup.database) == before


async def test_jobs_are_counted_by_state(setup: JobSetup) -> None:
    assert await setup.counts() == {}
    running = await setup.claimed()
    await setup.finish(await setup.claimed())
    await setup.enqueue()
    assert await setup.counts() == {"running": 1, "completed": 1, "queued": 1}
    await setup.fail(running)
    assert await setup.counts() == {"failed": 1, "completed": 1, "queued": 1}


async def test_a_list_shows_the_newest_first_up_to_its_limit(setup: JobSetup) -> None:
    ids = [(await setup.enqueue()).id for _ in range(5)]
    listed = await setup.database.run(store.list_jobs(limit=3))
    assert [job.id for job in listed] == ids[:1:-1]


async def test_a_list_can_be_narrowed_to_a_state_and_a_type(setup: JobSetup) -> None:
    await setup.finish(await setup.claimed("other"))
    done = await setup.claimed()
    await setup.finish(done)
    await setup.enqueue()
    listed = await setup.database.run(store.list_jobs("completed", "plain"))
    assert [job.id for job in listed] == [done.id]
    assert len(await setup.database.run(store.list_jobs("completed"))) == 2
    assert len(await setup.database.run(store.list_jobs(type="plain"))) == 2


async def test_a_due_job_wakes_workers_with_the_highest_priority_of_its_batch(setup: JobSetup) -> None:
    heard = await listen(setup.database, store.CHANNEL)
    await setup.accept(setup.new(priority=-3), setup.new(priority=12), setup.new(priority=5))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "12"
    await setup.enqueue(priority=-3)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "-3"


async def test_a_sleeping_job_wakes_the_scheduler_and_no_worker(setup: JobSetup) -> None:
    heard = await listen(setup.database, store.CHANNEL, "scheduler")
    await setup.enqueue(not_before=setup.clock() + timedelta(seconds=1), priority=99)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "sleeping"
    await setup.enqueue(priority=3)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "3"


async def test_a_closed_subscription_hears_nothing(setup: JobSetup) -> None:
    closed: list[str] = []
    subscription = setup.database.subscribe(store.CHANNEL, closed.append)
    heard = await listen(setup.database, store.CHANNEL)
    subscription.close()
    subscription.close()
    closed.clear()
    await setup.enqueue(priority=4)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "4"
    assert closed == []


async def test_concurrent_enqueues_of_one_queue_are_all_kept(setup: JobSetup) -> None:
    queue = JobQueue(setup.database, TYPES, setup.clock)
    answers = await asyncio.gather(*(queue.enqueue("plain", {"n": n}) for n in range(300)))
    assert len({answer.id for answer in answers}) == 300
    assert await setup.counts() == {"queued": 300}

"""Accepting jobs: what is kept, what is answered, who is woken."""

import asyncio
from datetime import timedelta

import pytest

from conformance.desk import TYPES, Desk, listen
from conformance.dump import dump
from postroom.core.errors import ConstraintBroken
from postroom.jobs.queue import JobQueue
from postroom.store import jobs as store
from postroom.store.engine.ids import new_id
from support.patience import PATIENCE_S


async def test_a_job_that_was_accepted_can_be_shown_as_it_was_asked_for(desk: Desk) -> None:
    later = desk.clock() + timedelta(minutes=5)
    payload = {"text": "naïve 📮 \u0000", "list": [1, 2.5, None, True], "deep": {"er": {}}}
    accepted = await desk.enqueue("sync", payload, key="k", priority=-7, not_before=later, max_attempts=4)
    shown = await desk.show(accepted.id)
    assert (shown.id, shown.type, shown.state) == (accepted.id, "sync", "queued")
    assert shown.payload_json == desk.new("sync", payload).payload_json
    assert (shown.priority, shown.attempts, shown.max_attempts) == (-7, 0, 4)
    assert (shown.idempotency_key, shown.not_before) == ("k", later)
    assert shown.created_at == shown.updated_at == desk.clock()
    assert (shown.finished_at, shown.heartbeat_at, shown.last_error, shown.parked_by) == (None,) * 4
    assert not shown.cancel_requested
    assert not shown.steps


async def test_a_handler_gets_the_payload_that_was_asked_for(desk: Desk) -> None:
    payload = {"text": "naïve 📮 \u0000", "list": [1, 2.5, None, True], "deep": {"er": {}}}
    job = await desk.claimed(payload=payload)
    assert job.payload == payload


async def test_the_trace_of_the_caller_goes_with_the_job(desk: Desk) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert (await desk.claimed(traceparent=trace)).traceparent == trace


async def test_a_job_that_is_not_there_shows_as_nothing(desk: Desk) -> None:
    assert await desk.database.run(store.show_job(new_id())) is None


async def test_a_batch_is_answered_in_the_order_in_which_it_was_asked(desk: Desk) -> None:
    jobs = [desk.new(key=None if n % 2 else f"k{9 - n}") for n in range(10)]
    assert [answer.id for answer in await desk.accept(*jobs)] == [job.id for job in jobs]


async def test_an_empty_batch_is_accepted_and_changes_nothing(desk: Desk) -> None:
    before = await dump(desk.database)
    assert await desk.accept() == []
    assert await dump(desk.database) == before


async def test_a_batch_with_a_row_that_the_schema_forbids_is_refused_as_a_whole(desk: Desk) -> None:
    good = desk.new(key="good")
    await desk.accept(good)
    before = await dump(desk.database)
    with pytest.raises(ConstraintBroken):
        await desk.accept(desk.new(key="fresh"), desk.new(), good._replace(key=None))
    assert await dump(desk.database) == before


async def test_jobs_are_counted_by_state(desk: Desk) -> None:
    assert await desk.counts() == {}
    running = await desk.claimed()
    await desk.finish(await desk.claimed())
    await desk.enqueue()
    assert await desk.counts() == {"running": 1, "completed": 1, "queued": 1}
    await desk.fail(running)
    assert await desk.counts() == {"failed": 1, "completed": 1, "queued": 1}


async def test_a_list_shows_the_newest_first_up_to_its_limit(desk: Desk) -> None:
    ids = [(await desk.enqueue()).id for _ in range(5)]
    listed = await desk.database.run(store.list_jobs(limit=3))
    assert [job.id for job in listed] == ids[:1:-1]


async def test_a_list_can_be_narrowed_to_a_state_and_a_type(desk: Desk) -> None:
    await desk.finish(await desk.claimed("other"))
    done = await desk.claimed()
    await desk.finish(done)
    await desk.enqueue()
    listed = await desk.database.run(store.list_jobs("completed", "plain"))
    assert [job.id for job in listed] == [done.id]
    assert len(await desk.database.run(store.list_jobs("completed"))) == 2
    assert len(await desk.database.run(store.list_jobs(type="plain"))) == 2


async def test_a_due_job_wakes_workers_with_the_highest_priority_of_its_batch(desk: Desk) -> None:
    heard = await listen(desk.database, store.CHANNEL)
    await desk.accept(desk.new(priority=-3), desk.new(priority=12), desk.new(priority=5))
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "12"
    await desk.enqueue(priority=-3)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "-3"


async def test_a_sleeping_job_wakes_the_scheduler_and_no_worker(desk: Desk) -> None:
    heard = await listen(desk.database, store.CHANNEL, "scheduler")
    await desk.enqueue(not_before=desk.clock() + timedelta(seconds=1), priority=99)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "sleeping"
    await desk.enqueue(priority=3)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "3"


async def test_a_closed_subscription_hears_nothing(desk: Desk) -> None:
    closed: list[str] = []
    subscription = desk.database.subscribe(store.CHANNEL, closed.append)
    heard = await listen(desk.database, store.CHANNEL)
    subscription.close()
    subscription.close()
    closed.clear()
    await desk.enqueue(priority=4)
    assert await asyncio.wait_for(heard.get(), PATIENCE_S) == "4"
    assert closed == []


async def test_concurrent_enqueues_of_one_queue_are_all_kept(desk: Desk) -> None:
    queue = JobQueue(desk.database, TYPES, desk.clock)
    answers = await asyncio.gather(*(queue.enqueue("plain", {"n": n}) for n in range(300)))
    assert len({answer.id for answer in answers}) == 300
    assert await desk.counts() == {"queued": 300}

"""Ended jobs are counted once, by hour, type and end, with the time that they took."""

from collections import Counter
from datetime import timedelta

from postroom.jobs.counting import SETTLED_AFTER, JobCounter
from postroom.store.installation.rollups import hour_of, hourly
from postroom.store.jobs.job_figures import begin_counting, counted_until, ended_between, keep_counts
from support.store.job_setup import JobSetup


async def count_all(setup: JobSetup) -> None:
    counter = JobCounter(setup.database, setup.clock)
    while await counter.tick():
        pass


async def counts(setup: JobSetup) -> dict[tuple[str, str, int], int]:
    now = setup.clock()
    found = await setup.database.run(hourly("job", now - timedelta(days=8), now + timedelta(hours=1)))
    sums: Counter[tuple[str, str, int]] = Counter()
    for each in found:
        sums[each.queue, each.name, each.bucket] += each.count
    return dict(sums)


async def test_each_end_is_counted_with_its_type_and_the_time_since_it_was_due(setup: JobSetup) -> None:
    quick = await setup.claimed()
    setup.clock.forward(0.1)
    await setup.finish(quick)
    late = await setup.enqueue("other", not_before=setup.clock() + timedelta(hours=2))
    setup.clock.forward(7201)
    await setup.wake_due()
    job = await setup.claim_one()
    assert job.id == late.id
    await setup.fail(job)
    setup.clock.forward(60)
    await count_all(setup)
    # 100 ms lie below 128, and the second that the other job waited after it was due below 1,024.
    assert await counts(setup) == {("completed", "plain", 7): 1, ("failed", "other", 10): 1}


async def test_a_job_that_was_tried_again_took_all_the_time_since_it_was_enqueued(setup: JobSetup) -> None:
    job = await setup.claimed()
    await setup.retry_later(job, 10)
    setup.clock.forward(10)
    await setup.wake_due()
    await setup.finish(await setup.claim_one())
    setup.clock.forward(60)
    await count_all(setup)
    assert await counts(setup) == {("completed", "plain", 14): 1}


async def test_counting_again_counts_nothing_twice(setup: JobSetup) -> None:
    for _ in range(3):
        await setup.finish(await setup.claimed())
        setup.clock.forward(3600)
        await count_all(setup)
        await count_all(setup)
    assert await counts(setup) == {("completed", "plain", 0): 3}
    assert await setup.database.run(counted_until()) == setup.clock() - SETTLED_AFTER


async def test_of_two_that_count_the_same_time_one_counts(setup: JobSetup) -> None:
    await setup.finish(await setup.claimed())
    since, until = hour_of(setup.clock()) - timedelta(hours=1), setup.clock()
    await setup.database.run(begin_counting(since))
    await setup.database.run(begin_counting(until))
    found = await setup.database.run(ended_between(since, until))
    assert await setup.database.run(keep_counts(since, until, found))
    assert not await setup.database.run(keep_counts(since, until, found))
    assert await counts(setup) == {("completed", "plain", 0): 1}


async def test_what_has_just_ended_waits_for_the_next_count(setup: JobSetup) -> None:
    await setup.finish(await setup.claimed())
    await count_all(setup)
    assert await counts(setup) == {}
    setup.clock.forward(2 * SETTLED_AFTER.total_seconds())
    await count_all(setup)
    assert await counts(setup) == {("completed", "plain", 0): 1}


async def test_where_nothing_ends_little_is_written(setup: JobSetup) -> None:
    await count_all(setup)
    counted = await setup.database.run(counted_until())
    setup.clock.forward(30)
    await count_all(setup)
    assert await setup.database.run(counted_until()) == counted
    setup.clock.forward(31)
    await count_all(setup)
    assert await setup.database.run(counted_until()) == setup.clock() - SETTLED_AFTER

"""Counts that were summed up give the same figures as the counts by hour, and are read instead of them."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from postroom.core.outbound.rollout import Rollout
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.installation.figure_folds import SETTLED, STEPS, FoldName, floored, fold_next
from postroom.store.installation.rollups import Count, HourCount, adding, by_span, hour_of, hourly, waited
from postroom.store.jobs.job_figures import begin_counting
from postroom.store.outbound import outbound
from postroom.store.outbound.outbound_figures import load_figures
from postroom.store.outbound.outbound_results import load_results
from postroom.store.outbound.outbound_views import evenness_hours
from postroom.store.outbound.sender_counts import next_hour
from support.clocks import ManualClock
from support.store.job_setup import JobSetup
from support.store.outbound_traffic import Traffic

HOUR = timedelta(hours=1)
MIDNIGHT = datetime(2026, 11, 15, tzinfo=UTC)
ALL = Rollout("all")


@pytest.fixture
def setup(database: Database) -> JobSetup:
    return JobSetup(database, ManualClock(MIDNIGHT))


@transaction
def add(counts: list[Count], now: datetime, writer: int) -> Script[None]:
    yield from adding(counts, now, writer)


@transaction
def change(text: str) -> Script[None]:
    yield Text(text)


async def fold(setup: JobSetup, *names: FoldName) -> int:
    folded = 0
    for name in names or STEPS:
        while await setup.database.run(fold_next(name, setup.clock())):
            folded += 1
    return folded


async def count_for_days(setup: JobSetup, days: int) -> Random:
    seed = Random().randrange(10**6)
    print(f"seed {seed}")
    rng = Random(seed)
    for hour in range(days * 24):
        # Sums begin with the first count.
        many = rng.randrange(4) if hour else 1
        mail = [Count("accepted", "email", rng.choice("ab"), rng.choice("xy")) for _ in range(many)]
        waits = [waited("email", rng.choice("ab"), timedelta(milliseconds=rng.randrange(99))) for _ in mail]
        await setup.database.run(add([*mail, *waits], setup.clock.forward(3600 if hour else 0), rng.randrange(8)))
    return rng


async def spans(setup: JobSetup, measure: str, since: datetime, step: timedelta) -> list[HourCount]:
    return await setup.database.run(by_span(measure, since, next_hour(setup.clock()), step))


@pytest.mark.parametrize("step", [HOUR, 6 * HOUR, 24 * HOUR, 100 * HOUR], ids=str)
async def test_a_window_gives_the_same_counts_however_much_of_it_is_summed_up(setup: JobSetup, step: timedelta) -> None:
    rng = await count_for_days(setup, 3)
    since = MIDNIGHT + rng.randrange(3) * 6 * HOUR
    before = [await spans(setup, measure, since, step) for measure in ("accepted", "wait")]
    assert await fold(setup) == 11
    assert [await spans(setup, measure, since, step) for measure in ("accepted", "wait")] == before
    every = await setup.database.run(hourly("accepted", since, next_hour(setup.clock())))
    assert sum(each.count for each in before[0]) == sum(each.count for each in every)


async def test_what_is_summed_up_is_not_read_by_the_hour_again(setup: JobSetup) -> None:
    await count_for_days(setup, 2)
    before = await spans(setup, "accepted", MIDNIGHT, 6 * HOUR)
    await fold(setup)
    await setup.database.run(change("DELETE FROM rollups"))
    assert await spans(setup, "accepted", MIDNIGHT, 6 * HOUR) == [
        each for each in before if each.hour < MIDNIGHT + 42 * HOUR
    ]


async def test_a_count_that_comes_late_is_summed_up_with_the_next_step(setup: JobSetup) -> None:
    await setup.database.run(add([Count("accepted", "email", "a")], MIDNIGHT, 0))
    setup.clock.forward(6 * 3600)
    assert await fold(setup) == 0, "a time that may still get counts was summed up"
    setup.clock.forward(SETTLED.total_seconds())
    assert await fold(setup) == 1
    await setup.database.run(add([Count("accepted", "email", "a")], MIDNIGHT, 1))
    setup.clock.forward(6 * 3600)
    assert await fold(setup) == 1
    assert [each.count for each in await spans(setup, "accepted", MIDNIGHT, 24 * HOUR)] == [2]


async def test_jobs_that_are_not_counted_yet_hold_back_the_sums(setup: JobSetup) -> None:
    await setup.database.run(begin_counting(MIDNIGHT + 13 * HOUR))
    await count_for_days(setup, 2)
    assert await fold(setup, "rollups") == 2


async def test_two_keepers_sum_up_each_step_once(setup: JobSetup) -> None:
    await count_for_days(setup, 1)
    before = await spans(setup, "accepted", MIDNIGHT, 24 * HOUR)
    assert await fold(setup) + await fold(setup) == 3
    assert await spans(setup, "accepted", MIDNIGHT, 24 * HOUR) == before


async def test_figures_of_outgoing_mail_are_the_same_from_days_and_hours(setup: JobSetup) -> None:
    seed = Random().randrange(10**6)
    print(f"seed {seed}")
    rng, traffic = Random(seed), await Traffic.open(setup, tenants=2)
    start = hour_of(setup.clock())
    for _ in range(8):
        await traffic.put(rng.choice(sorted(traffic.owners)), rng.randrange(1, 4), ALL, rng.randrange(1, 4))
        for each in await traffic.take(50, ALL):
            await setup.database.run(outbound.deliver(each.hold, "18c1", setup.clock()))
        setup.clock.forward(rng.choice((3600, 5 * 3600, 11 * 3600)))
    setup.clock.forward(24 * 3600)  # At least one day is over, whatever chance chose.
    now, until = setup.clock(), next_hour(setup.clock())
    windows = [(start + hours * HOUR, until) for hours in (0, 5, 30)]

    async def figures() -> list[object]:
        found: list[object] = []
        for window in windows:
            service, times, *_ = await setup.database.run(load_figures(*window, now))
            results = await setup.database.run(load_results(*window, 10))
            evenness = [
                (each.hour, each.members, each.served, round(each.gini, 9), round(each.jain, 9))
                for each in await setup.database.run(evenness_hours(*window))
            ]
            times = sorted((each.measure, each.lane, each.bucket, each.count, each.total_us) for each in times)
            found += [sorted(service), times, results, evenness]
        return found

    before = await figures()
    assert await fold(setup, "outbound")
    assert await fold(setup, "evenness")
    assert await figures() == before
    whole = (start, floored(now, 24 * HOUR), now)
    in_days = await setup.database.run(load_figures(*whole))
    for table in ("outbound_service", "outbound_times"):
        await setup.database.run(change(f"DELETE FROM {table}"))
    assert await setup.database.run(load_figures(*whole)) == in_days, "days that are summed up were read by the hour"
    hours = [each.hour for each in await setup.database.run(evenness_hours(start, until))]
    assert hours == sorted({hour for hour, _, _ in traffic.service if hour + HOUR + SETTLED <= now})

"""Calls of a model and their cost: reserved before, settled after, and never above a cap under concurrency."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest

from postroom.core.errors import BudgetSpent, IllegalMove
from postroom.store.actions.model_calls import (
    IN_PROGRESS,
    LEFT_AFTER,
    LEFT_BEHIND,
    CallEnd,
    Caps,
    DaySpend,
    NewCall,
    calls_of,
    end_call,
    fail_left_calls,
    last_calls,
    reserve_call,
    spend_of,
)
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from support.scale import scale
from support.store.fault_cases_model import CAPS, new_call, started
from support.store.job_setup import JobSetup

TODAY = "2026-11-15"


async def spent(setup: JobSetup, day: str = TODAY) -> DaySpend:
    return await setup.database.run(spend_of(day))


def again(call: NewCall) -> NewCall:
    """Another call about the same message."""
    return replace(call, id=new_id())


async def paid(setup: JobSetup, call: NewCall, caps: Caps) -> None:
    """A call that has cost what was reserved for it."""
    await setup.database.run(reserve_call(call, caps, setup.clock()))
    await setup.database.run(end_call(call.id, CallEnd("answered", cost_micros=call.reserved_micros), setup.clock()))


async def test_a_reservation_counts_at_once(setup: JobSetup) -> None:
    call = await started(setup)
    assert await spent(setup) == DaySpend(TODAY, 10_000, 1)
    [kept] = await setup.database.run(calls_of(call.message_id))
    assert (kept.state, kept.reserved_micros, kept.cost_micros, kept.ended_at) == ("started", 10_000, None, None)


async def test_the_real_cost_takes_the_place_of_the_reservation(setup: JobSetup) -> None:
    call = await started(setup)
    end = CallEnd("answered", input_tokens=900, output_tokens=50, cost_micros=1_200, latency_ms=800)
    assert await setup.database.run(end_call(call.id, end, setup.clock.forward(1)))
    assert await spent(setup) == DaySpend(TODAY, 1_200, 1)
    [kept] = await setup.database.run(calls_of(call.message_id))
    assert (kept.state, kept.cost_micros, kept.input_tokens, kept.output_tokens) == ("answered", 1_200, 900, 50)
    assert (kept.latency_ms, kept.error, kept.ended_at) == (800, None, setup.clock())


async def test_a_call_of_unknown_cost_has_cost_what_was_reserved(setup: JobSetup) -> None:
    call = await started(setup)
    await setup.database.run(end_call(call.id, CallEnd("failed", error="too slow"), setup.clock()))
    assert (await spent(setup)).micros == 10_000
    [kept] = await setup.database.run(calls_of(call.message_id))
    assert (kept.state, kept.cost_micros, kept.error) == ("failed", 10_000, "too slow")


async def test_a_call_ends_once(setup: JobSetup) -> None:
    call = await started(setup)
    assert await setup.database.run(end_call(call.id, CallEnd("answered", cost_micros=5), setup.clock()))
    assert not await setup.database.run(end_call(call.id, CallEnd("failed", cost_micros=7), setup.clock()))
    assert (await spent(setup)).micros == 5


async def test_a_call_cannot_end_as_started(setup: JobSetup) -> None:
    call = await started(setup)
    with pytest.raises(IllegalMove):
        await setup.database.run(end_call(call.id, CallEnd("started"), setup.clock()))


async def test_the_cap_of_the_day_may_be_reached_and_not_exceeded(setup: JobSetup) -> None:
    call = await new_call(setup)
    caps = Caps(day_micros=20_000, message_micros=1_000_000)
    for _ in range(2):
        await paid(setup, again(call), caps)
    with pytest.raises(BudgetSpent, match=r"2 cents for 2026-11-15 is spent.*model\.max_cents_per_day") as refused:
        await setup.database.run(reserve_call(again(call), caps, setup.clock()))
    assert refused.value.until == datetime(2026, 11, 16, tzinfo=UTC)
    assert await spent(setup) == DaySpend(TODAY, 20_000, 2)
    assert len(await setup.database.run(calls_of(call.message_id))) == 2


async def test_while_calls_in_progress_hold_the_rest_the_next_comes_back_soon(setup: JobSetup) -> None:
    """They may cost less than was reserved for them: to wait for midnight would be wrong."""
    call = await new_call(setup)
    caps = Caps(day_micros=20_000, message_micros=1_000_000)
    held = [again(call), again(call)]
    for each in held:
        await setup.database.run(reserve_call(each, caps, setup.clock()))
    with pytest.raises(BudgetSpent, match="in progress") as refused:
        await setup.database.run(reserve_call(again(call), caps, setup.clock()))
    assert refused.value.until == setup.clock() + IN_PROGRESS
    for each in held:
        await setup.database.run(end_call(each.id, CallEnd("answered", cost_micros=5_000), setup.clock()))
    await setup.database.run(reserve_call(again(call), caps, setup.clock()))


async def test_the_next_day_has_a_budget_of_its_own(setup: JobSetup) -> None:
    call = await new_call(setup)
    caps = Caps(day_micros=10_000, message_micros=1_000_000)
    await setup.database.run(reserve_call(again(call), caps, setup.clock()))
    setup.clock.now = datetime(2026, 11, 16, tzinfo=UTC)
    await setup.database.run(reserve_call(again(call), caps, setup.clock()))
    assert await spent(setup, "2026-11-16") == DaySpend("2026-11-16", 10_000, 1)


async def test_a_call_is_settled_on_the_day_it_was_reserved_on(setup: JobSetup) -> None:
    setup.clock.now = datetime(2026, 11, 15, 23, 59, 59, tzinfo=UTC)
    call = await started(setup)
    await setup.database.run(end_call(call.id, CallEnd("answered", cost_micros=1), setup.clock.forward(5)))
    assert (await spent(setup)).micros == 1
    assert (await spent(setup, "2026-11-16")).micros == 0


async def test_all_calls_about_a_message_count_against_its_cap_and_time_does_not_help(setup: JobSetup) -> None:
    call = await new_call(setup)
    for _ in range(5):
        await setup.database.run(reserve_call(again(call), CAPS, setup.clock()))
    setup.clock.forward(3 * 86_400)
    with pytest.raises(BudgetSpent, match=r"5 cents of model\.max_cents_per_message") as refused:
        await setup.database.run(reserve_call(again(call), CAPS, setup.clock()))
    assert refused.value.until is None
    assert (await spent(setup, "2026-11-18")).micros == 0


async def test_what_costs_nothing_is_within_a_cap_of_nothing(setup: JobSetup) -> None:
    call = await new_call(setup, reserved_micros=0)
    await setup.database.run(reserve_call(call, Caps(0, 0), setup.clock()))
    assert await spent(setup) == DaySpend(TODAY, 0, 1)


async def test_reservations_at_the_same_time_stay_under_the_cap(setup: JobSetup, second_database: Database) -> None:
    """From two processes, with ends in between that give back what was not needed."""
    seed = 20261115
    rng = Random(seed)
    call = await new_call(setup)
    caps = Caps(day_micros=10 * 10_000, message_micros=10**12)
    granted: list[NewCall] = []
    refused = 0

    async def ask(database: Database, gives_back: bool) -> None:
        nonlocal refused
        mine = again(call)
        try:
            await database.run(reserve_call(mine, caps, setup.clock()))
        except BudgetSpent:
            refused += 1
            return
        if gives_back:
            await database.run(end_call(mine.id, CallEnd("answered", cost_micros=0), setup.clock()))
        else:
            granted.append(mine)

    databases = (setup.database, second_database)
    asked = scale(60, 2000)
    await asyncio.gather(*(ask(databases[n % 2], rng.random() < 0.3) for n in range(asked)))
    print(f"seed {seed}: {len(granted)} granted, {refused} refused of {asked}")
    assert (await spent(setup)).micros == 10_000 * len(granted) <= caps.day_micros
    for _ in range(10 - len(granted) + 1):
        await ask(setup.database, False)
    assert len(granted) == 10
    assert (await spent(setup)).micros == caps.day_micros


async def test_reservations_for_one_message_at_the_same_time_stay_under_its_cap(
    setup: JobSetup, second_database: Database
) -> None:
    call = await new_call(setup)
    databases = (setup.database, second_database)
    asking = [databases[n % 2].run(reserve_call(again(call), CAPS, setup.clock())) for n in range(20)]
    ends = await asyncio.gather(*asking, return_exceptions=True)
    assert sum(end is None for end in ends) == 5
    assert sum(isinstance(end, BudgetSpent) for end in ends) == 15
    assert (await spent(setup)).micros == 50_000


async def test_a_call_that_a_crash_left_behind_is_failed_later_and_stays_paid(setup: JobSetup) -> None:
    call = await started(setup)
    setup.clock.forward(LEFT_AFTER.total_seconds())
    assert await setup.database.run(fail_left_calls(setup.clock())) == 0
    setup.clock.forward(1)
    fresh = again(call)
    await setup.database.run(reserve_call(fresh, CAPS, setup.clock()))
    assert await setup.database.run(fail_left_calls(setup.clock())) == 1
    left, new = await setup.database.run(calls_of(call.message_id))
    assert (left.id, left.state, left.cost_micros, left.error) == (call.id, "failed", 10_000, LEFT_BEHIND)
    assert (new.id, new.state) == (fresh.id, "started")
    assert (await spent(setup)).micros == 20_000
    assert not await setup.database.run(end_call(call.id, CallEnd("answered", cost_micros=1), setup.clock()))
    assert (await spent(setup)).micros == 20_000


async def test_the_last_calls_come_newest_first(setup: JobSetup) -> None:
    first = await started(setup)
    second = again(first)
    await setup.database.run(reserve_call(second, CAPS, setup.clock.forward(60)))
    assert [call.id for call in await setup.database.run(last_calls(10))] == [second.id, first.id]
    assert [call.id for call in await setup.database.run(last_calls(1))] == [second.id]


def test_a_call_that_ended_without_a_word_has_used_nothing_that_is_known() -> None:
    end = CallEnd("failed")
    assert (end.input_tokens, end.output_tokens, end.latency_ms, end.cost_micros, end.error) == (0, 0, 0, None, None)

"""When a call to Gmail may be made: properties of the quota, in simulated time."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.core.errors import BadInput
from postroom.mailboxes.gmail.errors import QuotaExhausted, RateLimited
from postroom.mailboxes.gmail.quota import DUE_AFTER, Quota
from postroom.mailboxes.gmail.terms import PRICES, Terms, Use
from support.jumping_loop import now, run

SEED = 25


def quota(terms: Terms, patience: float = 1e9) -> Quota:
    return Quota(terms, rng=Random(SEED), clock=now, patience=timedelta(seconds=patience))


def terms(per_minute: int = 1000, reserve: int = 200, most_at_once: int = 8) -> Terms:
    return Terms(per_minute=per_minute, reserve=reserve, most_at_once=most_at_once)


@dataclass
class Asked:
    """A call: when it is asked for, how long it takes, when during it Google counts it, and what Google says."""

    at: float
    use: Use
    units: int
    takes: float = 0.25
    counted: float = 0.0
    limited: bool = False
    retry_after: float | None = None
    admitted_at: float = -1.0
    counted_at: float = -1.0
    order: int = -1


class QuotaSetup:
    """Makes the calls and remembers what happened."""

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self.admitted: list[Asked] = []

    async def make(self, *calls: Asked) -> None:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(self._make(call))

    async def _make(self, call: Asked) -> None:
        await asyncio.sleep(call.at)
        async with self.quota.admitted("messages.get", call.units, call.use) as ticket:
            call.admitted_at = now()
            call.order = len(self.admitted)
            self.admitted.append(call)
            await asyncio.sleep(call.takes * call.counted)
            call.counted_at = now()
            await asyncio.sleep(call.takes * (1 - call.counted))
            if call.limited:
                wait = None if call.retry_after is None else timedelta(seconds=call.retry_after)
                self.quota.limited(ticket, RateLimited("messages.get", "rateLimitExceeded", wait))

    def most_in_a_minute(self, use: Use | None = None) -> int:
        counted = sorted((each.counted_at, each.units) for each in self.admitted if use in (None, each.use))
        return max((sum(units for at, units in counted if start <= at < start + 60) for start, _ in counted), default=0)


# Times are multiples of 1/64 s, so that sums of them are exact.
moments = st.integers(0, 64 * 300).map(lambda number: number / 64)
asked = st.builds(
    Asked,
    at=moments,
    use=st.sampled_from(["live", "steady", "bulk"]),
    units=st.integers(1, 300),
    takes=st.integers(0, 64 * 20).map(lambda number: number / 64),
    counted=st.sampled_from([0.0, 0.5, 1.0]),
    limited=st.booleans(),
    retry_after=st.one_of(st.none(), st.integers(0, 200).map(float)),
)
many_calls = st.lists(asked, max_size=60)


@given(many_calls, st.integers(300, 2000), st.integers(0, 200), st.integers(1, 8))
def test_no_minute_sees_more_units_than_allowed_and_everybody_gets_their_turn(
    calls: list[Asked], per_minute: int, kept: int, most_at_once: int
) -> None:
    allowed = terms(per_minute + kept, kept, most_at_once)

    async def scenario() -> QuotaSetup:
        setup = QuotaSetup(quota(allowed))
        await setup.make(*calls)
        return setup

    setup = run(scenario())
    assert len(setup.admitted) == len(calls)
    assert setup.most_in_a_minute() <= allowed.per_minute
    assert setup.most_in_a_minute("bulk") <= allowed.allowance("bulk")
    assert setup.quota.waiting == 0


@given(many_calls, st.integers(1, 8))
def test_within_a_use_the_first_to_come_is_the_first_to_go(calls: list[Asked], most_at_once: int) -> None:
    async def scenario() -> QuotaSetup:
        setup = QuotaSetup(quota(terms(most_at_once=most_at_once)))
        await setup.make(*calls)
        return setup

    setup = run(scenario())
    for use in ("live", "bulk"):
        arrivals = [each.at for each in setup.admitted if each.use == use]
        assert arrivals == sorted(arrivals)


@given(many_calls)
def test_nobody_calls_while_google_has_asked_for_silence(calls: list[Asked]) -> None:
    async def scenario() -> None:
        await QuotaSetup(quota(terms())).make(*calls)

    run(scenario())
    silences = [
        (each.admitted_at + each.takes, each.admitted_at + each.takes + each.retry_after)
        for each in calls
        if each.limited and each.retry_after
    ]
    for start, end in silences:
        assert not [each for each in calls if start < each.admitted_at < end]


@settings(max_examples=30)
@given(st.lists(st.integers(5, 40), min_size=1, max_size=20), st.integers(10, 400), st.integers(1, 64))
def test_live_within_its_reserve_waits_no_longer_than_one_call_takes_whatever_bulk_does(
    live_units: list[int], bulk_units: int, takes: int
) -> None:
    """One live call every ten seconds, at most six of up to 40 units in a minute, beside a hundred bulk calls."""
    length = takes / 64
    live = [Asked(10.0 * number, "live", units, takes=0.25) for number, units in enumerate(live_units)]
    bulk = [Asked(0.0, "bulk", bulk_units, takes=length) for _ in range(100)]

    async def scenario() -> None:
        await QuotaSetup(quota(terms(1000, 320))).make(*bulk, *live)

    run(scenario())
    assert max(each.admitted_at - each.at for each in live) <= max(length, 0.25)


def test_bulk_gets_its_turn_beside_live_that_never_pauses() -> None:
    bulk = [Asked(1.0, "bulk", 400, takes=1.0) for _ in range(3)]
    live = [Asked(0.0, "live", 20) for _ in range(1000)]

    async def scenario() -> QuotaSetup:
        setup = QuotaSetup(quota(terms()))
        await setup.make(*live, *bulk)
        return setup

    setup = run(scenario())
    waits = [each.admitted_at - each.at for each in bulk]
    # One in two minutes, and at most the time in which its units come together.
    assert all(wait <= 190.0 * number for number, wait in enumerate(waits, 1)), waits
    assert max(each.admitted_at for each in live) > waits[2]
    assert setup.most_in_a_minute() <= 1000


def test_bulk_leaves_the_reserve_alone_while_nobody_needs_it() -> None:
    calls = [Asked(0.0, "bulk", 100, takes=0.25) for _ in range(20)]

    async def scenario() -> QuotaSetup:
        setup = QuotaSetup(quota(terms()))
        await setup.make(*calls)
        return setup

    setup = run(scenario())
    assert len([each for each in setup.admitted if each.admitted_at < 60]) == 8
    assert setup.most_in_a_minute() == 800


def test_bulk_spreads_what_it_may_spend_over_the_minute_and_loses_none_of_it() -> None:
    bulk = [Asked(0.0, "bulk", 100) for _ in range(40)]

    async def scenario() -> QuotaSetup:
        setup = QuotaSetup(quota(terms()))
        await setup.make(*bulk)
        return setup

    setup = run(scenario())
    moments = sorted(each.admitted_at for each in bulk)
    assert min(later - earlier for earlier, later in pairwise(moments)) >= 7.5 - 0.01
    # Eight a minute; units come back a minute after the answer, which is there after a quarter second.
    assert moments[39] <= 39 * 7.5 + 5 * 0.25
    assert setup.most_in_a_minute("bulk") == 800


def test_bulk_goes_slower_by_what_live_spends() -> None:
    live = [Asked(0.0, "live", 100) for _ in range(3)]
    bulk = [Asked(1.0, "bulk", 100) for _ in range(5)]

    async def scenario() -> None:
        await QuotaSetup(quota(terms())).make(*live, *bulk)

    run(scenario())
    moments = sorted(each.admitted_at for each in bulk)
    assert moments == pytest.approx([1.0, 13.0, 25.0, 37.0, 49.0], abs=0.01)


def test_live_that_has_spent_its_reserve_goes_on_with_the_next_units_that_bulk_gets_back() -> None:
    bulk = [Asked(0.0, "bulk", 100) for _ in range(30)]
    live = [Asked(at, "live", 20) for at in (70.0, 130.5, 190.0) for _ in range(12)]

    async def scenario() -> None:
        await QuotaSetup(quota(terms())).make(*bulk, *live)

    run(scenario())
    assert max(each.admitted_at - each.at for each in live) <= 7.5 + 0.01


def test_steady_spends_half_of_its_units_at_once_and_the_rest_over_the_minute() -> None:
    steady = [Asked(0.0, "steady", 100) for _ in range(12)]

    async def scenario() -> QuotaSetup:
        setup = QuotaSetup(quota(terms()))
        await setup.make(*steady)
        return setup

    setup = run(scenario())
    moments = sorted(each.admitted_at for each in steady)
    assert moments[:8] == pytest.approx([0.0, 0.0, 0.0, 0.25, 7.75, 15.25, 22.75, 30.25], abs=0.3)
    assert moments[8] >= 60.0
    assert setup.most_in_a_minute() == 800


def test_live_finds_its_reserve_whatever_steady_does_and_bulk_waits_for_both() -> None:
    steady = [Asked(0.0, "steady", 100) for _ in range(20)]
    bulk = Asked(0.0, "bulk", 100)
    live = [Asked(at, "live", 100) for at in (1.0, 40.0)]

    async def scenario() -> None:
        await QuotaSetup(quota(terms())).make(*steady, bulk, *live)

    run(scenario())
    assert [each.admitted_at for each in live] == [1.0, 40.0]
    assert bulk.admitted_at == pytest.approx(DUE_AFTER, abs=15.0)


def test_whoever_asks_when_a_call_would_be_admitted_is_told_in_time() -> None:
    async def scenario() -> list[tuple[bool, float]]:
        setup, found = quota(terms()), list[tuple[bool, float]]()
        async with setup.admitted("messages.get", 800, "steady"):
            pass
        for units, use, within in ((200, "live", 0.0), (201, "live", 10.0), (1, "steady", 10.0), (1, "steady", 600.0)):
            found.append((await setup.is_ready(units, cast("Use", use), within), now()))
        return found

    assert run(scenario()) == [(True, 0.0), (False, 10.0), (False, 20.0), (True, 60.0)]


def test_live_passes_bulk_that_waits() -> None:
    bulk = [Asked(0.0, "bulk", 800, takes=1.0), Asked(0.5, "bulk", 10), Asked(0.5, "bulk", 10)]
    live = [Asked(2.0, "live", 200), Asked(3.0, "live", 10)]

    async def scenario() -> None:
        await QuotaSetup(quota(terms())).make(*bulk, *live)

    run(scenario())
    assert live[0].admitted_at == 2.0
    assert live[1].order < bulk[1].order < bulk[2].order


def test_bulk_leaves_a_place_for_live() -> None:
    bulk = [Asked(0.0, "bulk", 10, takes=30.0) for _ in range(4)]
    live = Asked(5.0, "live", 10)

    async def scenario() -> None:
        await QuotaSetup(quota(terms(most_at_once=4))).make(*bulk, live)

    run(scenario())
    assert live.admitted_at == 5.0
    assert sorted(each.admitted_at for each in bulk) == [0.0, 0.75, 1.5, 30.0]


def test_a_dear_live_call_is_not_passed_by_cheap_bulk() -> None:
    dear, cheap = Asked(1.0, "live", 900), Asked(2.0, "bulk", 10)

    async def scenario() -> None:
        await QuotaSetup(quota(terms())).make(Asked(0.0, "live", 500), dear, cheap)

    run(scenario())
    assert dear.order < cheap.order


def test_bulk_that_is_long_under_way_counts_towards_what_bulk_may_spend() -> None:
    slow, waiting = Asked(0.0, "bulk", 700, takes=500.0), Asked(1.0, "bulk", 200)
    live = [Asked(10.0 * number, "live", 10) for number in range(40)]

    async def scenario() -> None:
        await QuotaSetup(quota(terms())).make(slow, waiting, *live)

    run(scenario())
    assert waiting.admitted_at >= 500.0
    assert all(each.admitted_at == each.at for each in live)


def test_units_come_back_a_minute_after_the_answer_not_after_the_request() -> None:
    calls = [Asked(0.0, "live", 1000, takes=30.0, counted=1.0), Asked(1.0, "live", 1000)]

    async def scenario() -> None:
        await QuotaSetup(quota(terms())).make(*calls)

    run(scenario())
    assert calls[1].admitted_at == pytest.approx(90.0, abs=0.01)


def test_more_run_at_once_while_all_is_well_and_half_as_many_after_a_rate_limit() -> None:
    async def scenario() -> list[int]:
        setup = QuotaSetup(quota(terms(most_at_once=16, per_minute=100_000)))
        seen = [setup.quota.at_once]
        await setup.make(*[Asked(0.0, "live", 1) for _ in range(300)])
        seen.append(setup.quota.at_once)
        await setup.make(*[Asked(0.0, "live", 1, limited=True) for _ in range(16)])
        seen.append(setup.quota.at_once)
        for _ in range(10):
            await setup.make(Asked(0.0, "live", 1, limited=True))
        seen.append(setup.quota.at_once)
        return seen

    # The sixteen were on their way together: they are told the same thing once.
    assert run(scenario()) == [4, 16, 8, 1]


def test_the_silence_doubles_with_every_rate_limit_in_a_row_and_starts_small_again() -> None:
    async def scenario() -> list[float]:
        setup = QuotaSetup(quota(terms()))
        pauses: list[float] = []
        for limited in (True, True, True, True, False, True):
            started = now()
            await setup.make(Asked(0.0, "live", 1, takes=0.0, limited=limited))
            pauses.append(now() - started)
        started = now()
        await setup.make(Asked(0.0, "live", 1, takes=0.0))
        return [*pauses[1:], now() - started]

    first, second, third, fourth, well, again = run(scenario())
    assert 0.5 <= first <= 1.01
    assert 1 <= second <= 2.01
    assert 2 <= third <= 4.01
    assert 4 <= fourth <= 8.01
    assert well == 0.0
    assert 0.5 <= again <= 1.01


def test_a_silence_beyond_patience_is_reported_to_those_who_wait_and_those_who_come() -> None:
    async def scenario() -> None:
        limits = quota(terms(), patience=90)
        async with limits.admitted("messages.get", 1000) as ticket:
            waiting = asyncio.create_task(QuotaSetup(limits).make(Asked(0.0, "bulk", 5)))
            await asyncio.sleep(1)
            limits.limited(ticket, QuotaExhausted("messages.get", "dailyLimitExceeded", timedelta(minutes=20)))
        with pytest.raises(ExceptionGroup) as told:
            await waiting
        assert isinstance(told.value.exceptions[0], QuotaExhausted)
        with pytest.raises(QuotaExhausted) as caught:
            await QuotaSetup(limits)._make(Asked(0.0, "live", 5))
        assert caught.value.retry_after is not None
        assert timedelta(minutes=19) < caught.value.retry_after < timedelta(minutes=23)
        await asyncio.sleep(23 * 60)
        await QuotaSetup(limits).make(Asked(0.0, "live", 5))

    run(scenario())


def test_who_may_not_send_for_hours_may_still_read() -> None:
    async def scenario() -> float:
        limits = quota(terms(), patience=90)
        async with limits.admitted("messages.send", 100) as ticket:
            limits.limited(ticket, RateLimited("messages.send", "rateLimitExceeded", timedelta(hours=12)))
        await QuotaSetup(limits).make(Asked(0.0, "live", 5))
        return now()

    assert run(scenario()) < 90


@given(st.lists(st.tuples(asked, st.integers(0, 64 * 60)), min_size=1, max_size=30))
def test_whoever_gives_up_takes_nothing_with_them(calls: list[tuple[Asked, int]]) -> None:
    async def scenario() -> int:
        limits = quota(terms(most_at_once=2))
        setup = QuotaSetup(limits)
        tasks = [asyncio.create_task(setup.make(call)) for call, _ in calls]
        for task, (_, after) in zip(tasks, calls, strict=True):
            asyncio.get_running_loop().call_later(after / 64, task.cancel)
        await asyncio.wait(tasks)
        await asyncio.sleep(300)
        await setup.make(*[Asked(0.0, "live", 500, takes=0.0) for _ in range(2)])
        assert limits.waiting == 0
        return limits.spent()

    assert run(scenario()) == 1000


def test_who_gives_up_at_the_head_of_the_line_lets_the_next_one_go_at_once() -> None:
    async def scenario() -> float:
        limits = quota(terms())
        setup = QuotaSetup(limits)
        await setup.make(Asked(0.0, "live", 900, takes=0.0))
        dear = asyncio.create_task(setup._make(Asked(0.0, "live", 500)))
        cheap = Asked(0.0, "live", 50, takes=0.0)
        going = asyncio.create_task(setup.make(cheap))
        await asyncio.sleep(5)
        dear.cancel()
        await going
        return cheap.admitted_at

    assert run(scenario()) == 5.0


@pytest.mark.parametrize("cancel_first", [True, False])
def test_who_gives_up_in_the_moment_of_being_admitted_leaves_the_place_and_the_units(cancel_first: bool) -> None:
    async def scenario() -> None:
        limits = quota(terms(most_at_once=1))
        async with limits.admitted("messages.get", 100):
            waiting = asyncio.create_task(QuotaSetup(limits)._make(Asked(0.0, "live", 300)))
            await asyncio.sleep(1)
            if cancel_first:
                waiting.cancel()
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        assert limits.spent() == 100
        await QuotaSetup(limits).make(Asked(0.0, "live", 900, takes=0.0))
        assert now() == 1.0

    run(scenario())


async def test_a_call_that_never_fits_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="800 units a minute"):
        async with quota(terms()).admitted("batch", 900, "bulk"):
            pass


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"prices": {**PRICES, "messages.gett": 5}}, "did you mean messages.get"),
        ({"prices": {"messages.get": 5}}, "every method"),
        ({"prices": {**PRICES, "messages.get": -1}}, "negative"),
        ({"reserve": -1}, "reserve"),
        ({"reserve": 5_950}, "not enough for one"),
        ({"most_at_once": 0}, "most_at_once"),
    ],
)
def test_terms_that_cannot_work_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Terms(**wrong)

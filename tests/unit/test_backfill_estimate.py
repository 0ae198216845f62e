"""The arithmetic of an estimate: worked examples by hand, and what must hold for all of them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.backfill.estimate import (
    ASSUMED_TOKENS,
    BackfillFacts,
    Count,
    FinishedBackfill,
    Learned,
    QuotaPace,
    Range,
    Sample,
    TokenPrices,
    TokenUse,
    cents,
    cost_micros,
    estimate,
    exactly,
    learned_from,
    saved_percent,
    wilson_interval,
)

GMAIL = QuotaPace(units_per_minute=4_800, message_units=20, page_units=5, page_size=500)
THREE_DOLLARS = TokenPrices.blended(3_000_000)


def facts_of(**changes: object) -> BackfillFacts:
    facts = BackfillFacts(
        total=exactly(50_000),
        candidates=exactly(50_000),
        sample=Sample(read=200, in_category=60, full=60),
        quota=GMAIL,
        rate_limit_per_hour=100,
        daily_cost_cap_cents=500,
        prices=THREE_DOLLARS,
    )
    return replace(facts, **changes)  # pyright: ignore[reportArgumentType]


class TestTheWorkedExample:
    """50,000 messages, 10,000 tokens each, $3.00 per million, of which 30 % are classified."""

    found = estimate(facts_of())

    def test_naive_costs_1500_dollars(self):
        assert self.found.naive.messages == 50_000
        assert self.found.naive.cost_micros == 1_500_000_000
        assert cents(self.found.naive.cost_micros) == 150_000

    def test_selective_costs_450_dollars_and_saves_70_percent(self):
        assert self.found.classified.expected == 15_000
        assert cents(self.found.cost_micros.expected) == 45_000
        assert self.found.saved_percent == 70

    def test_on_demand_costs_150_dollars_and_saves_90_percent(self):
        assert self.found.on_demand.messages == 5_000
        assert cents(self.found.on_demand.cost_micros) == 15_000
        assert self.found.on_demand_saved_percent == 90

    def test_one_message_costs_three_cents(self):
        assert self.found.message_cost_micros == 30_000

    def test_at_100_an_hour_it_takes_500_hours(self):
        assert self.found.seconds_at_rate == 500 * 3_600

    def test_at_the_quota_it_takes_three_and_a_half_hours(self):
        # 50,000 messages at 20 units and 100 pages at 5 make 1,000,500 units, of which 4,800 a minute are left.
        assert self.found.seconds_at_quota == 12_507

    def test_at_5_dollars_a_day_it_takes_90_days(self):
        assert self.found.days_at_cap == 90
        assert self.found.days == 90


def test_without_a_model_nothing_costs_anything_and_the_counts_stay():
    found = estimate(facts_of(prices=None))
    assert found.classified.expected == 15_000
    assert found.cost_micros == Range(0, 0, 0)
    assert (found.naive.cost_micros, found.on_demand.cost_micros, found.days_at_cap) == (0, 0, 0)
    assert found.saved_percent == 0
    assert found.days == 21


def test_input_and_output_have_their_own_price():
    # 2,000 × $1.00 + 100 × $5.00 per million are 2,500 millionths.
    assert cost_micros(3, TokenUse(2_000, 100, 40), TokenPrices(1_000_000, 5_000_000)) == 7_500


def test_a_part_of_a_millionth_counts_as_one():
    assert cost_micros(1, TokenUse(1, 0), TokenPrices.blended(1)) == 1
    assert cost_micros(1_000_000, TokenUse(1, 0), TokenPrices.blended(1)) == 1
    assert cents(1) == 1
    assert cents(10_000) == 1
    assert cents(0) == 0


def test_an_empty_mailbox_costs_nothing_and_takes_no_time():
    found = estimate(facts_of(total=exactly(0), candidates=exactly(0), sample=Sample()))
    assert found.classified == found.ingested == found.cost_micros == Range(0, 0, 0)
    assert (found.seconds, found.days) == (0, 0)


def test_if_everything_was_sampled_there_is_no_range():
    found = estimate(facts_of(candidates=exactly(200), sample=Sample(200, 100, 58, 30, 12)))
    assert found.classified == Range(58, 58, 58)
    assert found.ingested == Range(88, 88, 88)


def test_without_a_sample_all_may_be_classified():
    assert estimate(facts_of(candidates=exactly(300), sample=Sample())).classified == Range(0, 300, 300)


def test_a_count_that_is_only_guessed_widens_the_range():
    found = estimate(facts_of(candidates=Count(10_000, 12_000)))
    assert found.to_read == Range(10_000, 12_000, 14_000)
    low, expected, high = found.classified
    assert low < 10_000 * 0.3 < expected == 3_600
    assert high > 14_000 * 0.3


def test_what_is_stored_already_costs_nothing():
    whole, rest = estimate(facts_of()), estimate(facts_of(stored=5_000))
    assert rest.classified.expected == rest.uncorrected == 10_000
    assert cents(rest.cost_micros.expected) == 30_000
    assert (rest.to_read, rest.ingested, rest.naive) == (whole.to_read, whole.ingested, whole.naive)
    assert estimate(facts_of(stored=60_000)).cost_micros == Range(0, 0, 0)


def test_the_interval_is_wilsons():
    # 60 of 200, of a population so large that the sample is nothing of it: from 24.1 % to 36.7 %.
    low, high = wilson_interval(60, 200, 10**12)
    assert (round(low, 3), round(high, 3)) == (0.241, 0.367)
    assert wilson_interval(0, 200, 10**12)[0] == 0
    assert round(wilson_interval(0, 200, 10**12)[1], 3) == 0.019
    assert wilson_interval(0, 0, 100) == (0, 1)


class TestLearning:
    def test_nothing_is_learned_from_nothing(self):
        assert learned_from([]) == Learned(1_000, 0)

    def test_it_is_the_sum_read_over_the_sum_expected_weighted_by_size(self):
        # (50 + 800 + 90) of (50 + 1,000 + 50) are 0.8545.
        assert learned_from([FinishedBackfill(1_000, 800), FinishedBackfill(50, 90)]) == Learned(855, 2)

    def test_little_experience_changes_little(self):
        assert learned_from([FinishedBackfill(5, 0)]) == Learned(909, 1)

    def test_it_stays_between_a_half_and_twice(self):
        assert learned_from([FinishedBackfill(10_000, 0)]).permille == 500
        assert learned_from([FinishedBackfill(10, 100_000)]).permille == 2_000

    def test_the_correction_changes_cost_and_classified_and_is_told_apart(self):
        found = estimate(facts_of(learned=Learned(800, 3)))
        assert (found.uncorrected, found.classified.expected) == (15_000, 12_000)
        assert cents(found.cost_micros.expected) == 36_000
        assert found.naive.cost_micros == 1_500_000_000

    def test_no_correction_makes_more_than_there_are(self):
        found = estimate(facts_of(candidates=exactly(100), sample=Sample(100, 90, 90), learned=Learned(2_000, 1)))
        assert found.classified == Range(100, 100, 100)


@pytest.mark.parametrize(("cost", "naive", "saved"), [(450, 1_500, 70), (1_500, 1_500, 0), (0, 0, 0), (20, 10, -100)])
def test_what_is_saved(cost: int, naive: int, saved: int):
    assert saved_percent(cost, naive) == saved


def count_of(counted: int, more: int) -> Count:
    return Count(counted, counted + more)


counts = st.builds(count_of, st.integers(0, 10**6), st.integers(0, 10**5))


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    full, metadata, skipped, out = (draw(st.integers(0, 50)) for _ in range(4))
    kept = full + metadata + skipped
    return Sample(kept + out, kept, full, metadata, skipped)


all_facts = st.builds(
    BackfillFacts,
    total=counts,
    candidates=counts,
    sample=samples(),
    quota=st.builds(QuotaPace, st.integers(100, 15_000), st.integers(0, 50), st.integers(0, 50), st.integers(1, 500)),
    rate_limit_per_hour=st.integers(1, 10**6),
    daily_cost_cap_cents=st.integers(1, 10**6),
    prices=st.none() | st.builds(TokenPrices, st.integers(0, 10**8), st.integers(0, 10**8)),
    tokens=st.just(ASSUMED_TOKENS) | st.builds(TokenUse, st.integers(0, 10**5), st.integers(0, 10**4), st.just(10)),
    learned=st.builds(Learned, st.integers(500, 2_000), st.integers(0, 10)),
    stored=st.integers(0, 10**6),
    list_pages=st.integers(0, 1_000),
)


@given(all_facts)
def test_ranges_contain_what_is_expected_and_nothing_is_negative(facts: BackfillFacts):
    found = estimate(facts)
    for low, expected, high in (found.to_read, found.ingested, found.classified, found.cost_micros):
        assert 0 <= low <= expected <= high
    assert found.classified.expected <= facts.candidates.about
    assert found.classified.high <= facts.candidates.most
    assert min(found.seconds_at_rate, found.seconds_at_quota, found.days_at_cap, found.days) >= 0
    assert min(found.naive.cost_micros, found.on_demand.cost_micros, found.message_cost_micros) >= 0
    assert found.on_demand.cost_micros <= found.naive.cost_micros


@given(all_facts, st.integers(1, 1_000))
def test_more_of_anything_never_costs_less_or_takes_less_time(facts: BackfillFacts, more: int):
    found = estimate(facts)
    prices = facts.prices or TokenPrices(0, 0)
    for changed in (
        replace(facts, candidates=Count(facts.candidates.counted + more, facts.candidates.about + more)),
        replace(facts, tokens=facts.tokens._replace(input=facts.tokens.input + more)),
        replace(facts, tokens=facts.tokens._replace(output=facts.tokens.output + more)),
        replace(facts, prices=prices._replace(input_micros=prices.input_micros + more)),
        replace(facts, prices=prices._replace(output_micros=prices.output_micros + more)),
        replace(facts, learned=Learned(facts.learned.permille + more, 1)),
        replace(facts, list_pages=facts.list_pages + more),
        replace(facts, sample=Sample(1, 1, full=1)),
    ):
        other = estimate(changed)
        assert other.cost_micros.expected >= found.cost_micros.expected
        assert other.seconds_at_quota >= found.seconds_at_quota
        assert other.seconds_at_rate >= found.seconds_at_rate
        assert other.days_at_cap >= found.days_at_cap


@given(all_facts, st.integers(1, 1_000))
def test_a_higher_rate_quota_or_cap_never_takes_longer_and_costs_the_same(facts: BackfillFacts, more: int):
    found = estimate(facts)
    for changed in (
        replace(facts, rate_limit_per_hour=facts.rate_limit_per_hour + more),
        replace(facts, daily_cost_cap_cents=facts.daily_cost_cap_cents + more),
        replace(facts, quota=facts.quota._replace(units_per_minute=facts.quota.units_per_minute + more)),
    ):
        other = estimate(changed)
        assert other.days <= found.days
        assert other.seconds <= found.seconds
        assert other.cost_micros == found.cost_micros


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 10**6))
def test_an_interval_contains_its_share(hits: int, misses: int, unseen: int):
    sampled = hits + misses
    low, high = wilson_interval(hits, sampled, sampled + unseen)
    assert 0 <= low <= high <= 1
    if sampled:
        assert low - 1e-9 <= hits / sampled <= high + 1e-9


@given(st.lists(st.builds(FinishedBackfill, st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1))
def test_what_is_learned_is_always_within_its_limits(finished: list[FinishedBackfill]):
    learned = learned_from(finished)
    assert 500 <= learned.permille <= 2_000
    assert learned.jobs == len(finished)

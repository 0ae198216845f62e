"""The cost and the duration of a backfill, from counts, a sample, and earlier measurements.

**Cost.** `C = N_full × T_full × R`: the messages that a model will read, the tokens of each, and the price of a token.
Only messages ingested in full are read. Their share is measured on a sample of those that the search finds, and its
range is the Wilson interval at 95 %, narrowed as the sample approaches the whole. Those that are stored already are
subtracted: they are recognised, and no model reads them again. A naive backfill reads everything;
on demand, mail is fetched by 200 searches a year of 25 results each.

**Time.** Every message that the search finds is read, at the job's rate and within the quota that live mail leaves,
whichever is slower; at the daily cap work stops until the next day.

**Learning.** The number of messages that models read in finished backfills of the same mailbox, over the number
expected, corrects the next estimate: weighted by size, held near 1 while little is known, and never below a half or
above twice.

Costs are whole millionths of a dollar, rounded up at the end of each sum.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from postroom.core.money import MICROS_PER_CENT

MILLION = 1_000_000
HOUR_S = 3_600
DAY_S = 86_400
Z_95 = 1.96
# Less than any share of a count, and more than the error of a float.
TINY = 1e-6
SEARCHES_PER_YEAR = 200
FOUND_PER_SEARCH = 25
ON_DEMAND_MESSAGES = SEARCHES_PER_YEAR * FOUND_PER_SEARCH
PERMILLE = 1_000
LEAST_FACTOR, MOST_FACTOR = 500, 2_000
# How many messages of experience weigh as much as the assumption that estimates are right.
DOUBT = 50


class Count(NamedTuple):
    """How many messages there are: `counted`, and `about` how many if the list was too long to count all."""

    counted: int
    about: int

    @property
    def is_exact(self) -> bool:
        return self.about == self.counted

    @property
    def most(self) -> int:
        """The most there may be: the guessed part may be twice as large."""
        return self.about + (self.about - self.counted)


def exactly(counted: int) -> Count:
    return Count(counted, counted)


class Sample(NamedTuple):
    """The outcomes of the messages of a sample. Those read and not in a category are in none of the other numbers."""

    read: int = 0
    in_category: int = 0
    full: int = 0
    metadata: int = 0
    skipped: int = 0


class TokenUse(NamedTuple):
    """The tokens that one message takes, and on how many messages that was measured (0: it is assumed)."""

    input: int
    output: int
    messages: int = 0


ASSUMED_TOKENS = TokenUse(10_000, 0)
"""10,000 tokens for each message, until some were measured."""


class TokenPrices(NamedTuple):
    """Prices in millionths of a dollar per million tokens."""

    input_micros: int
    output_micros: int

    @classmethod
    def blended(cls, micros: int) -> "TokenPrices":
        """One price for all tokens."""
        return cls(micros, micros)


class QuotaPace(NamedTuple):
    """The units per minute that live mail leaves, and what reading a message and listing a page of ids take of them."""

    units_per_minute: int
    message_units: int
    page_units: int
    page_size: int


NO_QUOTA = QuotaPace(1, 0, 0, 500)
"""Of a mailbox whose provider counts nothing, as on IMAP."""


class Learned(NamedTuple):
    """The correction from finished backfills, in thousandths, and how many there were."""

    permille: int = PERMILLE
    jobs: int = 0


NOTHING_LEARNED = Learned()


class FinishedBackfill(NamedTuple):
    """How many messages a model was expected to read, without correction, and how many it did."""

    expected: int
    read_by_model: int


class Range(NamedTuple):
    low: int
    expected: int
    high: int


class Alternative(NamedTuple):
    """Another way to get at the same mail."""

    messages: int
    cost_micros: int


@dataclass(frozen=True, slots=True)
class BackfillFacts:
    """Everything an estimate is made from. Without prices there is no model, and nothing costs anything."""

    total: Count
    candidates: Count
    sample: Sample
    quota: QuotaPace
    rate_limit_per_hour: int
    daily_cost_cap_cents: int
    prices: TokenPrices | None
    tokens: TokenUse = ASSUMED_TOKENS
    learned: Learned = NOTHING_LEARNED
    stored: int = 0
    """Messages in the categories that are stored already: no model reads them again."""
    list_pages: int = 0
    """Pages that are listed even if they are empty: one for each span of the walk and each query."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """`to_read` are all that the search finds, `ingested` those in the categories that no ingestion rule skips, and
    `classified` those of them that a model reads; `uncorrected` is that number without the correction.
    """

    facts: BackfillFacts = field(repr=False)
    to_read: Range
    ingested: Range
    classified: Range
    uncorrected: int
    cost_micros: Range
    message_cost_micros: int
    naive: Alternative
    on_demand: Alternative
    seconds_at_rate: int
    seconds_at_quota: int
    days_at_cap: int

    @property
    def seconds(self) -> int:
        """How long it takes if the cap is never reached."""
        return max(self.seconds_at_rate, self.seconds_at_quota)

    @property
    def days(self) -> int:
        """The days on which it works, with the cap."""
        return max(-(-self.seconds // DAY_S), self.days_at_cap)

    @property
    def saved_percent(self) -> int:
        """The savings against reading everything."""
        return saved_percent(self.cost_micros.expected, self.naive.cost_micros)

    @property
    def on_demand_saved_percent(self) -> int:
        return saved_percent(self.on_demand.cost_micros, self.naive.cost_micros)


def estimate(facts: BackfillFacts) -> Estimate:
    """The estimate from these facts."""
    candidates, sample = facts.candidates, facts.sample
    kept = _estimate_hits(candidates, sample.full + sample.metadata, sample.read, NOTHING_LEARNED)
    uncorrected = _estimate_hits(candidates, sample.full, sample.read, NOTHING_LEARNED, facts.stored)
    full = _estimate_hits(candidates, sample.full, sample.read, facts.learned, facts.stored)
    units = candidates.about * facts.quota.message_units
    units += (facts.list_pages + candidates.about // facts.quota.page_size) * facts.quota.page_units
    cost = Range(*(cost_micros(messages, facts.tokens, facts.prices) for messages in full))
    on_demand = min(facts.total.about, ON_DEMAND_MESSAGES)
    return Estimate(
        facts,
        to_read=Range(candidates.counted, candidates.about, candidates.most),
        ingested=kept,
        classified=full,
        uncorrected=uncorrected.expected,
        cost_micros=cost,
        message_cost_micros=cost_micros(1, facts.tokens, facts.prices),
        naive=Alternative(facts.total.about, cost_micros(facts.total.about, facts.tokens, facts.prices)),
        on_demand=Alternative(on_demand, cost_micros(on_demand, facts.tokens, facts.prices)),
        seconds_at_rate=-(-candidates.about * HOUR_S // facts.rate_limit_per_hour),
        seconds_at_quota=-(-units * 60 // facts.quota.units_per_minute),
        days_at_cap=-(-cost.expected // (facts.daily_cost_cap_cents * MICROS_PER_CENT)),
    )


def cost_micros(messages: int, tokens: TokenUse, prices: TokenPrices | None) -> int:
    """The cost of having a model read this many messages, in millionths of a dollar."""
    if prices is None:
        return 0
    return -(-messages * (tokens.input * prices.input_micros + tokens.output * prices.output_micros) // MILLION)


def cents(micros: int) -> int:
    """Millionths of a dollar in cents, rounded up."""
    return -(-micros // MICROS_PER_CENT)


def saved_percent(cost: int, naive: int) -> int:
    """The savings against the naive cost, in percent; negative if it costs more, and 0 if nothing costs anything."""
    return (naive - cost) * 100 // naive if naive else 0


def learned_from(finished: Sequence[FinishedBackfill]) -> Learned:
    """The correction for the next estimate."""
    if not finished:
        return NOTHING_LEARNED
    expected = DOUBT + sum(each.expected for each in finished)
    read = DOUBT + sum(each.read_by_model for each in finished)
    return Learned(min(MOST_FACTOR, max(LEAST_FACTOR, _divide(read * PERMILLE, expected))), len(finished))


def wilson_interval(hits: int, sampled: int, population: int) -> tuple[float, float]:
    """The range of a share at 95 %, of which a sample of a finite population had so many hits."""
    if sampled == 0:
        return 0.0, 1.0
    left = max(population - sampled, 0)
    z2 = Z_95 * Z_95 * left / max(population - 1, 1)
    share, scale = hits / sampled, 1 + z2 / sampled
    middle = (share + z2 / (2 * sampled)) / scale
    half = math.sqrt(share * (1 - share) * z2 / sampled + z2 * z2 / (4 * sampled * sampled)) / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def _estimate_hits(candidates: Count, hits: int, sampled: int, learned: Learned, stored: int = 0) -> Range:
    """The hits of the sample among all candidates, without those stored already, corrected. Without a sample, all may
    be hits.
    """
    found, of = (hits, sampled) if sampled else (1, 1)
    new = max(0, candidates.about * found - stored * of)
    expected = min(candidates.about, _divide(new * learned.permille, of * PERMILLE))
    low, high = wilson_interval(hits, sampled, candidates.about)
    factor = learned.permille / PERMILLE
    lowest = min(expected, math.floor(max(0, candidates.counted * low - stored) * factor + TINY))
    highest = max(expected, math.ceil(max(0, candidates.most * high - stored) * factor - TINY))
    return Range(lowest, expected, min(highest, candidates.most))


def _divide(numerator: int, denominator: int) -> int:
    """The quotient as a whole number, halves up."""
    return (2 * numerator + denominator) // (2 * denominator)

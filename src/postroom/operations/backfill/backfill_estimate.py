"""Estimates of backfills: the connector counts and samples, the price and the tokens come from here."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from pydantic import BaseModel, NonNegativeInt, ValidationError

from postroom.core.backfill.cursor import LONGEST_SPAN
from postroom.core.backfill.estimate import (
    HOUR_S,
    Alternative,
    BackfillFacts,
    Count,
    Estimate,
    QuotaPace,
    Range,
    Sample,
    cents,
    estimate,
    learned_from,
)
from postroom.core.backfill.job import NewBackfill, check_limits
from postroom.core.backfill.window import Window
from postroom.core.days import DAY
from postroom.core.errors import MailboxLater
from postroom.core.mail.accounts import provider_of
from postroom.mailboxes.accounts.mailbox_requests import ConnectorRequests
from postroom.mailboxes.providers import provider_named
from postroom.operations.backfill.backfill import Backfills, backfills_of, measured_tokens, token_prices
from postroom.settings.reading import Settings
from postroom.settings.sections import ModelSettings
from postroom.store.backfill import backfill_estimates as store
from postroom.store.backfill.backfill_estimates import BackfillOutcome as BackfillOutcome
from postroom.store.backfill.backfill_estimates import StoredEstimate
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock

PaceOf = Callable[[str], QuotaPace]
PATIENCE = timedelta(seconds=60)
POLL_S = 1.0
LEARNS_FROM = 10
LARGEST_SAMPLE = 200
MOST_COUNTED = 1_000_000_000
MOST_QUERIES = 1_000


@dataclass(frozen=True, slots=True)
class CountForm:
    """`counted`, and `about` how many if the list was too long to count all of it."""

    counted: int
    about: int


@dataclass(frozen=True, slots=True)
class RangeForm:
    low: int
    expected: int
    high: int


@dataclass(frozen=True, slots=True)
class AlternativeForm:
    messages: int
    cost_cents: int
    cost_micros: int
    saved_percent: int


@dataclass(frozen=True, slots=True)
class BasisForm:
    """`sampled` messages were read, of which so many were in the categories and would be ingested in full, as metadata,
    or skipped. Tokens are per message; `tokens_measured_on` 0 messages means that they are assumed. Prices are in
    millionths of a dollar per million tokens, and null without a model. `correction_permille` was learned from finished
    backfills of this mailbox; `uncorrected` is `classified` without it.
    """

    sampled: int
    in_category: int
    full: int
    metadata: int
    skipped: int
    input_tokens: int
    output_tokens: int
    tokens_measured_on: int
    input_price_micros: int | None
    output_price_micros: int | None
    correction_permille: int
    learned_from_jobs: int


@dataclass(frozen=True, slots=True)
class EstimateForm:
    """Costs in cents, rounded up, and in millionths of a dollar; ranges at 95 %. `to_read` are all messages that the
    searches find, `ingested` those that stay, `classified` those of them that a model reads. `days` is how long it
    takes at the rate, the quota and the cap together. `naive` would have a model read everything in the window,
    `on_demand` what 200 searches a year find. `notes` say in words what the numbers are based on.
    """

    total: CountForm
    categories: Mapping[str, CountForm]
    to_read: RangeForm
    ingested: RangeForm
    classified: RangeForm
    uncorrected: int
    cost_cents: RangeForm
    cost_micros: RangeForm
    message_cost_micros: int
    saved_percent: int
    hours_at_rate: float
    hours_at_quota: float
    days_at_cap: int
    days: int
    naive: AlternativeForm
    on_demand: AlternativeForm
    basis: BasisForm
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class MadeEstimate:
    """An estimate, the checked backfill that it is for, and the id under which it is stored."""

    id: UUID
    backfill: NewBackfill
    form: EstimateForm

    @property
    def agreed(self) -> NewBackfill:
        """The backfill to create once its owner has agreed to this estimate."""
        return replace(self.backfill, consent=True, estimate_id=self.id)


class BackfillEstimates:
    """Makes estimates, stores them, and learns from what backfills then did."""

    def __init__(self, backfills: Backfills, model: ModelSettings, pace_of: PaceOf) -> None:
        self._backfills = backfills
        self._database = backfills.database
        self._model = model
        self._pace_of = pace_of
        self._clock = backfills.clock
        self._requests = ConnectorRequests(self._database, self._clock, poll_s=POLL_S)

    async def estimate(self, wanted: NewBackfill, signed: Signature) -> MadeEstimate:
        """Ask the connector, compute, store. Raises BadInput for what `create` would refuse, and MailboxLater."""
        wanted = await self._backfills.checked(wanted)
        check_limits(replace(wanted, consent=True))
        prices = token_prices(self._model)
        arguments: dict[str, object] = {
            "categories": list(wanted.target_categories),
            "date_from": wanted.date_from.isoformat(),
            "date_to": wanted.date_to.isoformat(),
            "time_zone": str(self._backfills.zone),
        }
        found = await self._sample(wanted.endpoint_identity, wanted.target_categories, arguments)
        finished = await self._database.run(store.finished_backfills(wanted.endpoint_identity, LEARNS_FROM))
        window = Window(wanted.date_from, wanted.date_to, self._backfills.zone)
        stored = await self._database.run(
            store.stored_in_categories(wanted.endpoint_identity, wanted.target_categories, window)
        )
        spans = -(-((wanted.date_to - wanted.date_from) + DAY) // LONGEST_SPAN)
        made = estimate(
            BackfillFacts(
                total=found.total,
                candidates=found.candidates,
                sample=found.sample,
                quota=self._pace_of(provider_of(wanted.endpoint_identity)),
                rate_limit_per_hour=wanted.rate_limit_per_hour,
                daily_cost_cap_cents=wanted.daily_cost_cap_cents,
                prices=prices,
                tokens=await measured_tokens(self._database),
                learned=learned_from(finished),
                stored=stored,
                list_pages=spans * found.queries,
            )
        )
        id, form = new_id(), _form(made, found.categories)
        limits = {
            "rate_limit_per_hour": wanted.rate_limit_per_hour,
            "daily_cost_cap_cents": wanted.daily_cost_cap_cents,
        }
        recording = store.record_estimate(
            id, wanted.endpoint_identity, {**arguments, **limits}, asdict(form), signed.actor, self._clock()
        )
        await self._database.run(recording)
        return MadeEstimate(id, wanted, form)

    async def load(self, id: UUID) -> StoredEstimate:
        """Raises NotFound."""
        return await self._database.run(store.load_estimate(id))

    async def outcome(self, job_id: UUID) -> BackfillOutcome:
        """A backfill beside the estimate that it was created with. Raises NotFound."""
        return await self._database.run(store.backfill_outcome(job_id))

    async def _sample(
        self, endpoint_identity: str, names: Collection[str], arguments: dict[str, object]
    ) -> "SampledMailbox":
        answer = await self._requests.ask(endpoint_identity, "backfill_sample", arguments, PATIENCE)
        match answer.state:
            case "answered":
                return read_sample(answer.result, names)
            case "failed":
                raise SampleFailed(f"the connector of {endpoint_identity} could not count: {answer.error}")
            case _:
                raise MailboxLater(
                    f"no connector of {endpoint_identity} answered within {PATIENCE.total_seconds():.0f} s; see "
                    "`postroom connector list`, and try again while it runs"
                )


class SampleFailed(MailboxLater):
    """A connector could not count; the message has its own words."""


class SampledMailbox(BaseModel):
    """The answer of a connector, which is not trusted."""

    total: Count
    candidates: Count
    categories: dict[str, Count]
    queries: NonNegativeInt
    sample: Sample


def read_sample(answer: dict[str, Any] | None, names: Collection[str]) -> SampledMailbox:
    """Read the answer of a connector about these categories. Raises MailboxLater if it makes no sense."""
    try:
        found = SampledMailbox.model_validate(answer)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise MailboxLater(f"the connector's answer makes no sense: {where[:80] or 'it'} is malformed") from None
    sample, counts = found.sample, (found.total, found.candidates, *found.categories.values())
    if (
        any(not 0 <= each.counted <= each.about <= MOST_COUNTED for each in counts)
        or min(sample) < 0
        or sample.full + sample.metadata + sample.skipped != sample.in_category
        or not sample.in_category <= sample.read <= LARGEST_SAMPLE
        or found.queries > MOST_QUERIES
        or found.categories.keys() != set(names)
    ):
        raise MailboxLater("the connector's answer makes no sense: its numbers do not fit together")
    return found


def estimates_of(database: Database, settings: Settings, clock: Clock = wall_clock) -> BackfillEstimates:
    return BackfillEstimates(backfills_of(database, settings, clock), settings.model, paces_of(settings))


def paces_of(settings: Settings) -> PaceOf:
    """The quota that live mail leaves to a backfill, by provider."""
    return lambda name: provider_named(name).pace(settings)


def _form(made: Estimate, categories: Mapping[str, Count]) -> EstimateForm:
    facts, sample, prices = made.facts, made.facts.sample, made.facts.prices
    return EstimateForm(
        total=_count(facts.total),
        categories={name: _count(count) for name, count in categories.items()},
        to_read=_range(made.to_read),
        ingested=_range(made.ingested),
        classified=_range(made.classified),
        uncorrected=made.uncorrected,
        cost_cents=_range(Range(*map(cents, made.cost_micros))),
        cost_micros=_range(made.cost_micros),
        message_cost_micros=made.message_cost_micros,
        saved_percent=made.saved_percent,
        hours_at_rate=round(made.seconds_at_rate / HOUR_S, 2),
        hours_at_quota=round(made.seconds_at_quota / HOUR_S, 2),
        days_at_cap=made.days_at_cap,
        days=made.days,
        naive=_alternative(made.naive, 0),
        on_demand=_alternative(made.on_demand, made.on_demand_saved_percent),
        basis=BasisForm(
            sampled=sample.read,
            in_category=sample.in_category,
            full=sample.full,
            metadata=sample.metadata,
            skipped=sample.skipped,
            input_tokens=facts.tokens.input,
            output_tokens=facts.tokens.output,
            tokens_measured_on=facts.tokens.messages,
            input_price_micros=None if prices is None else prices.input_micros,
            output_price_micros=None if prices is None else prices.output_micros,
            correction_permille=facts.learned.permille,
            learned_from_jobs=facts.learned.jobs,
        ),
        notes=_notes(facts),
    )


def _count(given: Count) -> CountForm:
    return CountForm(given.counted, given.about)


def _range(given: Range) -> RangeForm:
    return RangeForm(given.low, given.expected, given.high)


def _alternative(given: Alternative, saved_percent: int) -> AlternativeForm:
    return AlternativeForm(given.messages, cents(given.cost_micros), given.cost_micros, saved_percent)


def _notes(facts: BackfillFacts) -> list[str]:
    """The basis of the numbers, in words."""
    sample, tokens, learned = facts.sample, facts.tokens, facts.learned
    notes = [f"{sample.read:,} of {facts.candidates.about:,} messages were read as a sample"]
    if not facts.candidates.is_exact:
        notes.append(f"only {facts.candidates.counted:,} messages could be counted in time; the rest is a guess")
    if facts.stored:
        notes.append(f"{facts.stored:,} messages are stored already; they are not read by a model again")
    if facts.prices is None:
        notes.append("no model is set, so nothing is charged: rules alone decide")
    elif tokens.messages:
        notes.append(f"{tokens.input + tokens.output:,} tokens per message, measured on {tokens.messages:,} messages")
    else:
        notes.append(f"{tokens.input + tokens.output:,} tokens per message are assumed until some were measured")
    if learned.jobs:
        jobs = "one finished backfill" if learned.jobs == 1 else f"{learned.jobs} finished backfills"
        notes.append(f"corrected by {learned.permille / 1000:.2f}, learned from {jobs} of this mailbox")
    return notes

"""The language model: its budget, its cost today, and every call."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from uuid import UUID

from postroom.core.budget_shares import ShareKind, organisation_of
from postroom.core.days import next_day
from postroom.core.errors import ModelRefused
from postroom.core.money import MICROS_PER_CENT
from postroom.core.views import Internal
from postroom.settings.sections import ModelSettings
from postroom.store.actions.model_calls import (
    CallView as CallView,
)
from postroom.store.actions.model_calls import (
    EndedShare,
    calls_of,
    day_of,
    ended_shares,
    last_calls,
    spend_of,
)
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.decide.model_prices import prices_of


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """In US cents per million tokens."""

    input_cents_per_million: float
    output_cents_per_million: float


@dataclass(frozen=True, slots=True)
class EndedLine:
    """A share of today's budget that has ended: whose it was, its cost in US cents, and how many messages wait."""

    kind: ShareKind
    who: str
    spent_cents: float
    share_cents: float
    messages: int


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Today's cost in US cents, when the next budget starts, and the shares that have ended today."""

    spent_today_cents: float
    calls_today: int
    left_today_cents: float
    next_budget_at: datetime
    ended: Internal[Sequence[EndedLine]] = ()


async def model_status(
    database: Database, settings: ModelSettings, clock: Clock = wall_clock, *, zone: tzinfo = UTC
) -> ModelStatus:
    """Return what the model has cost today. `zone` is that of the owner's day."""
    now = clock()
    day = day_of(now, zone)
    spent = await database.run(spend_of(day))
    ended = [_line(each) for each in await database.run(ended_shares(day))]
    cents = spent.micros / MICROS_PER_CENT
    return ModelStatus(cents, spent.calls, max(0, settings.max_cents_per_day - cents), next_day(now, zone), ended)


def _line(ended: EndedShare) -> EndedLine:
    match ended.kind, ended.policy_tier:
        case "tier", "default":
            who = "mail in bulk"
        case "tier", _:
            who = "mail of strangers"
        case "domain", _:
            who = organisation_of(ended.sender.rpartition("@")[2])
        case "sender", _:
            who = ended.sender
    cents = MICROS_PER_CENT
    return EndedLine(ended.kind, who, ended.spent_micros / cents, ended.cap_micros / cents, ended.messages)


def model_prices(settings: ModelSettings) -> ModelPrices | str:
    """Return the prices of the model, or why they are unknown: then it is not asked."""
    try:
        prices = prices_of(settings)
    except ModelRefused as error:
        return str(error)
    return ModelPrices(prices.input_micros / MICROS_PER_CENT, prices.output_micros / MICROS_PER_CENT)


async def list_calls(database: Database, message_id: UUID | None, limit: int) -> Sequence[CallView]:
    """List the calls about one message, oldest first, or the latest calls, newest first."""
    return await database.run(last_calls(limit) if message_id is None else calls_of(message_id))

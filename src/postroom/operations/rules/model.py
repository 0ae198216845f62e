"""The language model: its budget, its cost today, and every call."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, tzinfo
from typing import Annotated
from uuid import UUID

from postroom.core.access import READ
from postroom.core.budget_shares import ShareKind, organisation_of
from postroom.core.days import next_day, zone_named
from postroom.core.errors import ModelRefused
from postroom.core.money import MICROS_PER_CENT
from postroom.core.views import Internal
from postroom.operations.mail.mail_ids import message_typed_as
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, Limit, command
from postroom.settings.reading import Settings
from postroom.settings.sections import ModelSettings
from postroom.store.actions.model_calls import (
    CallView,
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

CALL_COLUMNS = (
    "started_at",
    "message_id",
    "model",
    "state",
    "input_tokens",
    "output_tokens",
    "cost_cents",
    "latency_ms",
    "error",
)
NO_MODEL = "no model: only rules decide; mail that matches none stays where it is"


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


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """The model that the settings name, and its status; None if they name none."""

    settings: ModelSettings
    status: ModelStatus | None

    @property
    def row(self) -> Mapping[str, object]:
        if self.status is None:
            return {"configured": False, "says": NO_MODEL}
        prices = _prices(self.settings)
        return {
            "configured": True,
            "provider": self.settings.provider,
            "model": self.settings.name,
            "base_url": self.settings.base_url,
            "mode": self.settings.mode,
            **({"problem": prices} if isinstance(prices, str) else asdict(prices)),
            "spent_today_cents": self.status.spent_today_cents,
            "calls_today": self.status.calls_today,
            "left_today_cents": self.status.left_today_cents,
            "max_cents_per_day": self.settings.max_cents_per_day,
            "max_cents_per_message": self.settings.max_cents_per_message,
            "next_budget_at": self.status.next_budget_at,
            "shares_ended": [asdict(each) for each in self.status.ended],
        }


@RULES.operation(READ, command("model status"))
async def read_model(database: Database, settings: Settings, clock: Clock, /) -> ModelInUse:
    """Show which model decides, what it sees of a message, its budget, and what it has cost today."""
    if settings.model.provider == "none":
        return ModelInUse(settings.model, None)
    zone = zone_named(settings.time_zone)
    return ModelInUse(settings.model, await model_status(database, settings.model, clock, zone=zone))


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


def _prices(settings: ModelSettings) -> ModelPrices | str:
    """Return the prices of the model, or why they are unknown: then it is not asked."""
    try:
        prices = prices_of(settings)
    except ModelRefused as error:
        return str(error)
    return ModelPrices(prices.input_micros / MICROS_PER_CENT, prices.output_micros / MICROS_PER_CENT)


def _call(view: CallView) -> Mapping[str, object]:
    """A call; while it has not ended, its cost is what was reserved."""
    row = asdict(view)
    reserved, cost = row.pop("reserved_micros"), row.pop("cost_micros")
    return {**row, "cost_cents": (reserved if cost is None else cost) / MICROS_PER_CENT}


@RULES.operation(READ, command("model calls", *CALL_COLUMNS, row=_call))
async def list_calls(
    database: Database,
    /,
    message: Annotated[
        UUID | None,
        Argument("Only calls about this message, oldest first."),
        message_typed_as("--message ID", "Only calls about this message, oldest first."),
    ] = None,
    limit: Limit = 50,
) -> list[CallView]:
    """List the calls to the model, newest first: tokens, cost in US cents, duration and errors."""
    return await database.run(last_calls(limit) if message is None else calls_of(message))

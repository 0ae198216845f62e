"""The language model: its budget, its cost today, and every call."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from postroom.core.errors import ModelRefused
from postroom.core.money import MICROS_PER_CENT
from postroom.decide.model_prices import prices_of
from postroom.settings.sections import ModelSettings
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.model_calls import CallView, calls_of, day_of, last_calls, next_day, spend_of

__all__ = ["CallView", "ModelPrices", "ModelStatus", "list_calls", "model_prices", "model_status"]


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """In US cents per million tokens."""

    input_cents_per_million: float
    output_cents_per_million: float


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """Today's cost in US cents, and when the next budget starts."""

    spent_today_cents: float
    calls_today: int
    left_today_cents: float
    next_budget_at: datetime


async def model_status(database: Database, settings: ModelSettings, clock: Clock = wall_clock) -> ModelStatus:
    now = clock()
    spent = await database.run(spend_of(day_of(now)))
    cents = spent.micros / MICROS_PER_CENT
    return ModelStatus(cents, spent.calls, max(0, settings.max_cents_per_day - cents), next_day(now))


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

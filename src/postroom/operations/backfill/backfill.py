"""Backfills, for people: create, pause, resume, cancel, list."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from postroom.core.backfill.estimate import ASSUMED_TOKENS, TokenPrices, TokenUse, cost_micros
from postroom.core.backfill.job import BackfillJob, FailedMessage, FoundMail, NewBackfill, check_limits
from postroom.core.backfill.window import checked_window
from postroom.core.days import day_in
from postroom.core.errors import BadInput, ModelRefused, NotFound
from postroom.core.lifecycle import BackfillStatus
from postroom.core.mail.accounts import provider_of
from postroom.core.mail.categories import chosen_categories
from postroom.core.mail.providers import PROVIDERS
from postroom.core.money import MICROS_PER_CENT
from postroom.core.suggestions import did_you_mean
from postroom.settings.mailboxes import BackfillSettings
from postroom.settings.reading import Settings
from postroom.settings.sections import ModelSettings
from postroom.store.accounts import accounts
from postroom.store.actions.model_calls import average_tokens
from postroom.store.backfill import backfill
from postroom.store.backfill.backfill_estimates import load_estimate
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.decide.model_prices import prices_of


@dataclass(frozen=True, slots=True)
class CreatedBackfill:
    """The new job, and the jobs of the same mailbox that overlap with it: messages are ingested once all the same."""

    job: BackfillJob
    overlaps: list[UUID]


class Backfills:
    """The backfills of all mailboxes."""

    def __init__(
        self, database: Database, settings: BackfillSettings, model: ModelSettings, clock: Clock = wall_clock
    ) -> None:
        self.database = database
        self._model = model
        self.clock = clock
        self.settings = settings
        self.zone = ZoneInfo(settings.time_zone)

    async def create(self, new: NewBackfill, signed: Signature) -> CreatedBackfill:
        """Create a backfill. Raises BadInput, which names the field, and NotFound."""
        new = await self.checked(new)
        check_limits(new)
        await self._check_estimate(new)
        id, cost = new_id(), await self.expected_cost()
        overlaps = await self.database.run(backfill.create_backfill(id, new, cost, self.clock(), signed))
        return CreatedBackfill(await self.load(id), overlaps)

    async def checked(self, new: NewBackfill) -> NewBackfill:
        """The same with its categories, window and mailbox checked. Raises BadInput and NotFound."""
        if not new.target_categories:
            raise BadInput("target_categories", "is empty", "name at least one category, such as finance")
        names = tuple(each.name for each in chosen_categories(new.target_categories, "target_categories"))
        checked_window(new.date_from, new.date_to, self.zone, day_in(self.clock(), self.zone))
        if new.connector_type not in PROVIDERS:
            remedy = did_you_mean(new.connector_type, PROVIDERS, f"use {', '.join(PROVIDERS)}")
            raise BadInput("connector_type", f"{new.connector_type[:80]!r} is unknown", remedy)
        known = [each.endpoint_identity for each in await self.database.run(accounts.list_accounts())
                 if each.state != "removed"]  # fmt: skip
        identity = new.endpoint_identity
        if identity not in known or provider_of(identity) != new.connector_type:
            remedy = did_you_mean(identity, known, "`postroom account list` shows all")
            raise BadInput("endpoint_identity", f"{identity[:200]!r} is no account of {new.connector_type}", remedy)
        return replace(new, target_categories=names)

    async def _check_estimate(self, new: NewBackfill) -> None:
        """Check that the estimate it is created with is its own: it will be compared with the outcome."""
        if new.estimate_id is None:
            return
        try:
            shown = await self.database.run(load_estimate(new.estimate_id))
        except NotFound:
            problem = f"{new.estimate_id} is no estimate"
            raise BadInput("estimate_id", problem, "use the one of backfill.estimate, or leave it out") from None
        wanted = {
            "categories": list(new.target_categories),
            "date_from": new.date_from.isoformat(),
            "date_to": new.date_to.isoformat(),
        }
        if shown.endpoint_identity != new.endpoint_identity or any(
            shown.request.get(name) != value for name, value in wanted.items()
        ):
            raise BadInput("estimate_id", "is for another mailbox, other categories or other days", "estimate this one")

    async def expected_cost(self) -> int:
        """The expected cost of a message that a model reads, in millionths of a dollar; zero without a model."""
        return cost_micros(1, await measured_tokens(self.database), token_prices(self._model))

    async def pause(self, id: UUID, signed: Signature) -> BackfillJob:
        await self.database.run(backfill.pause_backfill(id, self.clock(), signed))
        return await self.load(id)

    async def resume(self, id: UUID, signed: Signature) -> BackfillJob:
        await self.database.run(backfill.resume_backfill(id, self.clock(), signed))
        return await self.load(id)

    async def cancel(self, id: UUID, signed: Signature) -> BackfillJob:
        await self.database.run(backfill.cancel_backfill(id, self.clock(), signed))
        return await self.load(id)

    async def load(self, id: UUID) -> BackfillJob:
        """Raises NotFound."""
        now = self.clock()
        return await self.database.run(backfill.load_backfill(id, self.day(now), now))

    async def list_jobs(
        self,
        most: int = 50,
        *,
        connector_type: str | None = None,
        endpoint_identity: str | None = None,
        status: BackfillStatus | None = None,
        before: Cursor | None = None,
    ) -> list[BackfillJob]:
        """List backfills, newest first."""
        now = self.clock()
        wanted = backfill.list_backfills(
            most,
            self.day(now),
            now,
            connector_type=connector_type,
            endpoint_identity=endpoint_identity,
            status=status,
            before=before,
        )
        return await self.database.run(wanted)

    async def found(self, id: UUID) -> list[FoundMail]:
        """The mail it brought in of the categories that it is for, by category and year, the last year first."""
        wanted = (await self.load(id)).target_categories
        return [each for each in await self.database.run(backfill.backfill_found(id)) if each.category in wanted]

    async def failures(self, id: UUID, most: int = 100) -> list[FailedMessage]:
        """The messages that could not be read, the last first."""
        return await self.database.run(backfill.backfill_failures(id, most))

    def day(self, now: datetime) -> str:
        """The day whose cap counts now."""
        return day_in(now, self.zone).isoformat()


def backfills_of(database: Database, settings: Settings, clock: Clock = wall_clock) -> Backfills:
    return Backfills(database, settings.backfill, settings.model, clock)


async def measured_tokens(database: Database) -> TokenUse:
    """The tokens that a message takes, as measured; assumed until some were."""
    return await database.run(average_tokens()) or ASSUMED_TOKENS


def token_prices(model: ModelSettings) -> TokenPrices | None:
    """The prices of the model; None without a model. If only one price is known, it counts for all tokens.

    Raises BadInput if none is known.
    """
    if model.provider == "none":
        return None
    try:
        prices = prices_of(model)
    except ModelRefused as error:
        given = [each for each in (model.input_cents_per_million, model.output_cents_per_million) if each is not None]
        if not given:
            raise BadInput("model", f"has no known price ({error})", "set the prices of the model") from None
        return TokenPrices.blended(round(given[0] * MICROS_PER_CENT))
    return TokenPrices(round(prices.input_micros), round(prices.output_micros))

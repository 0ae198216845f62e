"""What becomes of backfilled mail: decided as live mail is, charged to its backfill, and not acted on unless asked."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import pytest

from postroom.core.backfill.job import BackfillJob, NewBackfill
from postroom.core.jobs.job import JobView
from postroom.core.queue.queues import EMAIL
from postroom.core.roles import Principal, Role
from postroom.intake.intake import Intake
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.backfill.backfill_work import BackfillWork
from postroom.operations.people.audit import signature
from postroom.settings.mailboxes import BackfillSettings
from postroom.settings.sections import ModelSettings
from postroom.store.actions import decisions
from postroom.store.actions.model_calls import day_of, spend_of
from postroom.store.backfill import backfill
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.model_api import ModelApi, running_model_api
from postroom_sandbox.model_moods import decides
from support.message_setup import message_id_of
from support.product import ENDPOINT, OWNER, Product, envelope, raw_mail, running_product
from support.until import CHANNELS, until

FINANCE = NewBackfill("gmail", ENDPOINT, ("finance",), date(2020, 1, 1), date(2020, 12, 31), consent=True)
T = TypeVar("T")


@dataclass
class OldMail:
    """A product with a model, and a backfill that brings in mail."""

    product: Product
    api: ModelApi
    backfills: Backfills
    job: BackfillJob

    @property
    def database(self) -> Database:
        return self.product.database

    async def bring_in(self, number: int) -> str:
        """A message of the archive; returns its id in the mailbox."""
        subject = f"Your invoice {number}"
        id = self.product.mailbox.deliver(raw_mail(subject)).id
        headers = [["From", "shop@store.example"], ["To", OWNER], ["Subject", subject]]
        whole = envelope(id, {"headers": headers, "labels": ["INBOX"]})
        control = {"backfill_job_id": str(self.job.id)}
        await Intake(self.database, None).ingest({**whole, "control": control})
        return id

    async def decided(self, number: int) -> list[decisions.Decision]:
        id = await message_id_of(self.database, f"Your invoice {number}")
        return [view.decision for view in await self.database.run(decisions.decisions_about(id))]

    async def now(self) -> BackfillJob:
        return await self.backfills.load(self.job.id)

    async def parked(self) -> list[JobView]:
        """Waits until a decision is parked."""

        async def look() -> list[JobView]:
            found = await self.database.run(jobs.list_jobs(type="classify", limit=50))
            return [each for each in found if each.parked_by]

        return await self.until(look, bool)

    async def until(self, look: Callable[[], Awaitable[T]], holds: Callable[[T], object]) -> T:
        return await until(self.database, look, holds, (*CHANNELS, backfill.CHANNEL))


async def begin(product: Product, api: ModelApi, model: dict[str, Any], **changes: Any) -> OldMail:
    settings = BackfillSettings.model_validate({})
    backfills = Backfills(product.database, settings, ModelSettings.model_validate(model), wall_clock)
    created = await backfills.create(replace(FINANCE, **changes), signature("test", "admin"))
    work = BackfillWork(product.database, backfills, EMAIL, wall_clock)
    state = await work.poll("gmail", ENDPOINT, signature(Principal(Role.CONNECTOR, ENDPOINT).actor, Role.CONNECTOR))
    assert state is not None
    assert state.job.id == created.job.id
    return OldMail(product, api, backfills, state.job)


@dataclass
class Running:
    product: Product
    api: ModelApi
    model: dict[str, Any]

    async def backfill(self, **changes: Any) -> OldMail:
        return await begin(self.product, self.api, self.model, **changes)


@pytest.fixture
async def running(database: Database, tmp_path: Path) -> AsyncGenerator[Running]:
    api = ModelApi()
    async with running_model_api(api) as address:
        prices = {"input_cents_per_million": 100, "output_cents_per_million": 500}
        model = {"provider": "openai", "name": "stand-in", "base_url": f"{address}/v1", "mode": "full", **prices}
        async with running_product(database, tmp_path, model=model) as product:
            yield Running(product, api, model)


async def test_the_model_decides_about_old_mail_in_shadow_and_the_backfill_pays(running: Running) -> None:
    running.api.say(decides("archive", 0.95, "an old invoice"))
    old = await running.backfill()
    id = await old.bring_in(1)
    await running.product.settled(1)
    decision, shadow = await old.decided(1)
    assert (decision.source, decision.action_type) == ("none", "none")
    assert (shadow.source, shadow.action_type, shadow.shadow) == ("llm", "archive", True)
    assert "INBOX" in running.product.mailbox.get(id).labels
    job = await old.now()
    assert job.spent_micros > 0
    assert (job.spent_today_micros, job.messages_waiting) == (job.spent_micros, 0)
    assert (await running.product.database.run(spend_of(day_of(wall_clock())))).micros == 0


async def test_what_it_brought_in_is_counted_by_category_and_year(running: Running) -> None:
    running.api.say(decides("archive", 0.95, "an old invoice"))
    old = await running.backfill()
    for number in (1, 2, 3):
        await old.bring_in(number)
    await running.product.settled(3)
    found = await old.backfills.found(old.job.id)
    assert [(each.category, each.messages) for each in found] == [("finance", 3)]
    assert [each.year for each in found] == [2026]


async def test_decisions_are_carried_out_where_the_owner_asked_for_it(running: Running) -> None:
    running.api.say(decides("star", 0.95, "an old invoice"))
    old = await running.backfill(acts=True)
    id = await old.bring_in(1)
    await running.product.settled(1)
    assert "STARRED" in running.product.mailbox.get(id).labels


async def test_mail_of_a_paused_backfill_waits_and_is_decided_when_it_is_resumed(running: Running) -> None:
    old = await running.backfill()
    await old.bring_in(1)
    await running.product.settled(1)
    asked = running.api.requests
    await old.bring_in(2)
    await old.backfills.pause(old.job.id, signature("test", "admin"))
    [job] = await old.parked()
    assert job.parked_by == f"backfill:{old.job.id}"
    assert running.api.requests == asked
    await old.backfills.resume(old.job.id, signature("test", "admin"))
    await running.product.settled(2)
    assert running.api.requests == asked + 1


async def test_at_the_cap_mail_waits_and_after_a_cancellation_no_model_is_asked(running: Running) -> None:
    old = await running.backfill(daily_cost_cap_cents=1)
    await old.bring_in(1)
    await running.product.settled(1)
    charged = (await old.now()).spent_micros
    assert charged > 0
    numbers = list[int]()
    while (await old.now()).status == "active":
        numbers.append(len(numbers) + 2)
        await old.bring_in(numbers[-1])
        await old.until(old.now, lambda job: job.status != "active" or job.messages_waiting == 0)
    assert numbers
    assert (await old.now()).spent_micros <= 10_000
    await old.parked()
    asked = running.api.requests
    await old.backfills.cancel(old.job.id, signature("test", "admin"))
    await running.product.settled(1 + len(numbers))
    assert running.api.requests == asked
    decision = (await old.decided(numbers[-1]))[0]
    assert "canceled" in decision.rationale

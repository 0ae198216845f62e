"""Deciding with a model behind the rules: over real HTTP, from the mailbox to the action."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.product import Product, letter, running_product
from integration.test_actions import message_id_of, until_job_is
from postroom.core.jobs.job import JobView
from postroom.decide.adviser import ModelAdviser
from postroom.decide.model import Model, release_waiting
from postroom.settings.sections import ModelSettings
from postroom.store import decisions, jobs, labels, protection
from postroom.store.audit import Signature
from postroom.store.engine.clock import wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.mail import account_of
from postroom_sandbox.faults import Fault
from postroom_sandbox.model_api import ModelApi, Raw, running_model_api
from postroom_sandbox.model_moods import Says, decides

SUBJECT = "Something nobody wrote a rule for"


@dataclass
class Desk:
    product: Product
    api: ModelApi

    @property
    def database(self) -> Database:
        return self.product.database

    async def deliver(self, subject: str = SUBJECT, **headers: str) -> str:
        """A new message in the mailbox, handed in."""
        id = self.product.mailbox.deliver(letter(subject, **headers)).id
        await self.product.live.sync()
        return id

    def inbox(self, gmail_id: str) -> bool:
        return "INBOX" in self.product.mailbox.get(gmail_id).labels

    async def decided(self, subject: str = SUBJECT) -> list[decisions.Decision]:
        id = await message_id_of(self.database, subject)
        return [view.decision for view in await self.database.run(decisions.decisions_about(id))]

    async def classify_job(self, holds: Callable[[JobView], bool]) -> JobView:
        """The job that decides about the message, when it is like that."""
        moved = asyncio.Event()
        subscription = self.database.subscribe(jobs.CHANNEL, lambda _message: moved.set())
        try:
            async with asyncio.timeout(self.product.patience_s):
                while True:
                    moved.clear()
                    for job in await self.database.run(jobs.list_jobs(state=None, type="classify", limit=10)):
                        if holds(job):
                            return job
                    await signalled(moved, 0.1)
        finally:
            subscription.close()


@pytest.fixture
async def desk(database: Database, tmp_path: Path) -> AsyncGenerator[Desk]:
    api = ModelApi()
    async with running_model_api(api) as address:
        prices = {"input_cents_per_million": 100, "output_cents_per_million": 500}
        settings = ModelSettings.model_validate(
            {"provider": "openai", "name": "stand-in", "base_url": f"{address}/v1", **prices}
        )
        model = Model(database, settings)
        adviser = ModelAdviser(database, model, "full", frozenset({"Postroom/Snoozed"}))
        async with running_product(database, tmp_path, adviser=adviser) as product:
            yield Desk(product, api)
        await model.close()


async def test_what_no_rule_matches_the_model_decides(desk: Desk) -> None:
    desk.api.say(decides("archive", 0.95, "a notice that needs nothing"))
    id = await desk.deliver()
    await desk.product.settled(1)
    (decision,) = await desk.decided()
    assert (decision.source, decision.action_type, decision.confidence) == ("llm", "archive", 0.95)
    assert decision.rationale == "a notice that needs nothing"
    assert decision.model
    assert decision.prompt_version
    assert not desk.inbox(id)


async def test_a_rule_that_matches_leaves_the_model_unasked(desk: Desk) -> None:
    await desk.product.rule("shop", {"sender_domain": "store.example"}, "star")
    await desk.deliver()
    await desk.product.settled(1)
    assert desk.api.requests == 0


@pytest.mark.parametrize(("action", "confidence"), [("archive", 0.5), ("trash", 0.85), ("delete", 1.0)])
async def test_what_is_unsure_or_irreversible_waits_for_a_person(desk: Desk, action: str, confidence: float) -> None:
    desk.api.say(decides(action, confidence))
    id = await desk.deliver()
    (row,) = await desk.product.until_decided(1)
    assert row.action_state == "awaiting_approval"
    (decision,) = await desk.decided()
    assert decision.needs_approval
    assert (decision.safety or {})["reasons"]
    assert desk.inbox(id)


async def test_a_model_in_shadow_decides_and_touches_nothing(desk: Desk) -> None:
    signed = Signature(new_id(), "test", "admin")
    await desk.database.run(protection.begin_shadow("model", "", signed, wall_clock()))
    desk.api.say(decides("archive", 0.95))
    id = await desk.deliver()
    await desk.product.settled(1)
    live, shadow = await desk.decided()
    assert (live.source, live.action_type, live.shadow) == ("none", "none", False)
    assert (shadow.source, shadow.action_type, shadow.shadow) == ("llm", "archive", True)
    assert desk.inbox(id)


async def test_a_provider_that_is_down_is_asked_again_and_nothing_is_lost(desk: Desk) -> None:
    desk.api.faults.order(Fault(503, path="/v1/", times=1))
    desk.api.say(decides("archive", 0.95))
    id = await desk.deliver()
    job = await desk.classify_job(lambda job: job.last_error is not None)
    assert job.state == "queued"
    await desk.database.run(jobs.retry_job(job.id, wall_clock()))
    await desk.product.settled(1)
    assert not desk.inbox(id)


async def test_a_wrong_key_parks_the_decision_until_the_settings_are_mended(desk: Desk) -> None:
    desk.api.faults.order(Fault(401, path="/v1/", times=1))
    desk.api.say(decides("archive", 0.95))
    id = await desk.deliver()
    job = await desk.classify_job(lambda job: job.parked_by is not None)
    assert "model.api_key" in (job.last_error or "")
    await release_waiting(desk.database, wall_clock())
    await desk.product.settled(1)
    assert not desk.inbox(id)


async def test_a_first_mail_that_is_refused_waits_for_the_first_answer_and_no_longer(desk: Desk) -> None:
    refused = Raw(b'{"error": {"message": "no"}}', 400)
    desk.api.say(refused)
    await desk.deliver("This one is refused")
    await desk.classify_job(lambda job: job.parked_by is not None)
    desk.api.say(decides("archive", 0.95), refused)
    await desk.deliver()
    await desk.product.settled(2)
    (decision,) = await desk.decided("This one is refused")
    assert (decision.source, decision.action_type) == ("none", "none")
    assert "refuses this mail" in decision.rationale


async def test_a_model_that_makes_no_sense_leaves_the_message_where_it_is(desk: Desk) -> None:
    desk.api.say(*[Says(text="I would rather not.", refuses=True)] * 2)
    id = await desk.deliver()
    await desk.product.settled(1)
    (decision,) = await desk.decided()
    assert (decision.source, decision.action_type) == ("none", "none")
    assert "no usable answer" in decision.rationale
    assert desk.inbox(id)


async def test_the_model_is_offered_the_users_labels_and_no_others(desk: Desk) -> None:
    account = await desk.database.run(account_of("gmail:user:mara@lindqvist.example"))
    seen = [
        labels.SeenLabel("L1", "Receipts", "user"),
        labels.SeenLabel("L2", "Postroom/Snoozed", "user"),
        labels.SeenLabel("INBOX", "INBOX", "system"),
    ]
    await desk.database.run(labels.sync_labels(account.id, seen, wall_clock()))
    await desk.deliver()
    await desk.product.settled(1)
    (asked,) = desk.api.asked
    assert asked.labels == ("Receipts",)


async def test_a_message_is_decided_about_anew_as_the_next_generation(desk: Desk) -> None:
    from postroom.core.jobs.types import CATALOGUE
    from postroom.store.job_builders import decide_again

    desk.api.say(decides("none", 0.9), decides("star", 0.9))
    await desk.deliver()
    (row,) = await desk.product.settled(1)
    assert row.action_type == "none"
    account = await desk.database.run(account_of("gmail:user:mara@lindqvist.example"))
    message = await message_id_of(desk.database, SUBJECT)
    again = decide_again(CATALOGUE, account.id, message, 2)
    await desk.database.run(jobs.enqueue_many([again], wall_clock()))
    await until_job_is(desk.database, again.id, lambda job: job.state == "completed")
    assert [(each.generation, each.action_type) for each in await desk.decided()] == [(2, "star"), (1, "none")]

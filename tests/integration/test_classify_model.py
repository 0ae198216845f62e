"""Deciding with a model behind the rules: over real HTTP, from the mailbox to the action."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.jobs.job import JobView
from postroom.operations.caller import Caller
from postroom.operations.installation.live_settings import LiveSettings
from postroom.operations.installation.settings_view import change_setting
from postroom.operations.rules.model import model_status
from postroom.settings.reading import Settings
from postroom.settings.sections import ModelSettings
from postroom.store.actions import decisions, protection
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs
from postroom.store.mail import labels
from postroom.store.mail.mail import account_of, load_message
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from postroom.triage.decide.model import release_waiting
from postroom_sandbox.faults import Fault
from postroom_sandbox.model_api import ModelApi, Raw, running_model_api
from postroom_sandbox.model_moods import FakeAnswer, decides
from postroom_sandbox.model_requests import ReceivedRequest
from support.clocks import zone_at_noon
from support.mail import story_of
from support.message_setup import message_id_of, until_job_is
from support.product import OWNER, Product, raw_mail, running_product
from support.until import until

SUBJECT = "Something nobody wrote a rule for"


@dataclass
class ClassifySetup:
    product: Product
    api: ModelApi

    @property
    def database(self) -> Database:
        return self.product.database

    async def deliver(self, subject: str = SUBJECT, **headers: str) -> str:
        """A new message in the mailbox, handed in."""
        id = self.product.mailbox.deliver(raw_mail(subject, **headers)).id
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
async def setup(database: Database, tmp_path: Path) -> AsyncGenerator[ClassifySetup]:
    api = ModelApi()
    async with running_model_api(api) as address:
        prices = {"input_cents_per_million": 100, "output_cents_per_million": 500}
        model = {"provider": "openai", "name": "stand-in", "base_url": f"{address}/v1", "mode": "full", **prices}
        async with running_product(database, tmp_path, model=model) as product:
            yield ClassifySetup(product, api)


def dear(_asked: ReceivedRequest) -> FakeAnswer:
    """A decision about a long mail, which costs nearly two cents."""
    return replace(decides("none", 0.9), tokens=(16_000, 500))


async def test_one_stranger_does_not_spend_the_day_of_the_model(setup: ClassifySetup) -> None:
    setup.api.mood = dear
    for number in range(54):
        setup.product.mailbox.deliver(raw_mail(f"Spam {number}", "Thief <thief@evil.example>"))
    await setup.product.live.sync()
    waiting = await setup.classify_job(
        lambda job: "this sender's mail has used up its share of today's budget" in (job.last_error or "")
    )
    assert (waiting.parked_by, waiting.attempts) == ("model:budget", 0), "waiting uses up no attempt"
    await setup.deliver("An honest question", sender="Ann <ann@honest.example>")
    [honest] = await setup.product.until_all(
        1, lambda row: row.subject == "An honest question" and row.action_type is not None
    )
    assert (honest.source, honest.action_type) == ("llm", "none")
    story = await story_of(setup.database, json.loads(waiting.payload_json)["message_id"])
    assert any("This sender's mail has used up its share of today's budget" in line.text for line in story)
    status = await model_status(setup.database, ModelSettings.model_validate({}), zone=zone_at_noon())
    assert [(each.kind, each.who) for each in status.ended] == [("sender", "thief@evil.example")]
    assert status.spent_today_cents < 20


async def test_strangers_who_answer_a_letter_to_a_list_do_not_spend_what_is_kept_for_contacts(
    setup: ClassifySetup,
) -> None:
    """Its id is public, and answers are `high_priority`."""
    setup.api.mood = dear
    letter = raw_mail("To the list", OWNER, "list@lists.example", Message_ID="<letter@owner.example>")
    setup.product.mailbox.deliver(letter, labels={"SENT"})
    await setup.product.live.sync()
    for number in range(54):
        raw = raw_mail(f"Re: {number}", f"thief{number}@evil.example", In_Reply_To="<letter@owner.example>")
        setup.product.mailbox.deliver(raw)
    await setup.product.live.sync()
    waiting = await setup.classify_job(
        lambda job: "mail of this sender's domain has used up its share" in (job.last_error or "")
    )
    assert waiting.parked_by == "model:budget"
    message = await setup.database.run(load_message(UUID(json.loads(waiting.payload_json)["message_id"])))
    assert message.policy_tier == "high_priority", "it is an answer"


async def test_a_budget_that_is_raised_lets_the_mail_go_on_that_waited_for_it(
    setup: ClassifySetup,
) -> None:
    by = Caller(setup.database, Signature(new_id(), "test", "admin"))
    elsewhere = LiveSettings(Settings.model_validate({}))
    await change_setting(by, elsewhere, "model.max_cents_per_day", "0")
    here = setup.product.services.parts.live
    await until(setup.database, lambda: here.refresh(setup.database), lambda found: found.model.max_cents_per_day == 0)
    setup.api.say(decides("archive", 0.75), decides("archive", 0.75))
    await setup.deliver()
    waiting = await setup.classify_job(lambda job: job.parked_by == "model:budget")
    assert (waiting.attempts, setup.api.requests) == (0, 0)
    await change_setting(by.again(), elsewhere, "model.max_cents_per_day", "50")
    await setup.product.settled(1)
    (decision,) = await setup.decided()
    assert (decision.source, decision.needs_approval) == ("llm", False)
    await change_setting(by.again(), elsewhere, "safety.confidence", "0.8")
    await until(setup.database, lambda: here.refresh(setup.database), lambda found: found.safety.confidence == 0.8)
    agents = setup.product.services.agents
    assert agents is not None
    assert agents.requests.policy.confidence == 0.8, "agents keep to it too"
    await setup.deliver("A second one")
    await setup.product.until_decided(2)
    (decision,) = await setup.decided("A second one")
    assert decision.needs_approval, "0.75 is less than 0.8"


async def test_what_no_rule_matches_the_model_decides(setup: ClassifySetup) -> None:
    others = [{"action": "apply_label Unknown", "confidence": 0.4}, {"action": "star", "confidence": 0.04}]
    setup.api.say(decides("archive", 0.95, "a notice that needs nothing", alternatives=others))
    id = await setup.deliver()
    await setup.product.settled(1)
    (decision,) = await setup.decided()
    assert (decision.source, decision.action_type, decision.confidence) == ("llm", "archive", 0.95)
    assert decision.rationale == "a notice that needs nothing"
    assert decision.model
    assert decision.prompt_version
    assert decision.alternatives == [{"action": "star", "parameters": {}, "confidence": 0.04}]
    assert not setup.inbox(id)


async def test_a_rule_that_matches_leaves_the_model_unasked(setup: ClassifySetup) -> None:
    await setup.product.rule("shop", {"sender_domain": "store.example"}, "star")
    await setup.deliver()
    await setup.product.settled(1)
    assert setup.api.requests == 0


@pytest.mark.parametrize(("action", "confidence"), [("archive", 0.5), ("trash", 0.85), ("delete", 1.0)])
async def test_what_is_unsure_or_irreversible_waits_for_a_person(
    setup: ClassifySetup, action: str, confidence: float
) -> None:
    setup.api.say(decides(action, confidence))
    id = await setup.deliver()
    (row,) = await setup.product.until_decided(1)
    assert row.action_state == "approved_pending"
    (decision,) = await setup.decided()
    assert decision.needs_approval
    assert (decision.safety or {})["reasons"]
    assert setup.inbox(id)


async def test_a_model_in_shadow_decides_and_touches_nothing(setup: ClassifySetup) -> None:
    signed = Signature(new_id(), "test", "admin")
    await setup.database.run(protection.begin_shadow("model", "", signed, wall_clock()))
    setup.api.say(decides("archive", 0.95))
    id = await setup.deliver()
    await setup.product.settled(1)
    live, shadow = await setup.decided()
    assert (live.source, live.action_type, live.shadow) == ("none", "none", False)
    assert (shadow.source, shadow.action_type, shadow.shadow) == ("llm", "archive", True)
    assert setup.inbox(id)


@pytest.mark.parametrize("has_rule", [False, True])
async def test_old_mail_that_was_searched_for_asks_no_model_and_is_decided_in_shadow(
    setup: ClassifySetup, has_rule: bool
) -> None:
    live, mailbox = setup.product.live, setup.product.mailbox
    if has_rule:
        await setup.product.rule("shop", {"sender_domain": "store.example"}, "archive")
    await live.sync()
    id = mailbox.deliver(raw_mail(SUBJECT), received_at=wall_clock() - timedelta(days=400)).id
    client = live._client  # pyright: ignore[reportPrivateUsage]
    [(result, _)] = await live.ingest_found(client, [id])
    assert result.end == "new"
    await setup.product.settled(1)
    decision, *shadows = await setup.decided()
    assert (decision.source, decision.action_type) == ("none", "none")
    assert [each.action_type for each in shadows] == (["archive"] if has_rule else [])
    assert setup.api.requests == 0
    assert setup.inbox(id)


async def test_a_provider_that_is_down_is_asked_again_and_nothing_is_lost(setup: ClassifySetup) -> None:
    setup.api.faults.order(Fault(503, path="/v1/", times=1))
    setup.api.say(decides("archive", 0.95))
    id = await setup.deliver()
    job = await setup.classify_job(lambda job: job.last_error is not None)
    assert job.state == "queued"
    await setup.database.run(jobs.retry_job(job.id, wall_clock()))
    await setup.product.settled(1)
    assert not setup.inbox(id)


async def test_a_wrong_key_parks_the_decision_until_the_settings_are_fixed(setup: ClassifySetup) -> None:
    setup.api.faults.order(Fault(401, path="/v1/", times=1))
    setup.api.say(decides("archive", 0.95))
    id = await setup.deliver()
    job = await setup.classify_job(lambda job: job.parked_by is not None)
    assert "model.api_key" in (job.last_error or "")
    await release_waiting(setup.database, wall_clock())
    await setup.product.settled(1)
    assert not setup.inbox(id)


async def test_a_first_mail_that_is_refused_waits_for_the_first_answer_and_no_longer(setup: ClassifySetup) -> None:
    refused = Raw(b'{"error": {"message": "no"}}', 400)
    setup.api.say(refused)
    await setup.deliver("This one is refused")
    await setup.classify_job(lambda job: job.parked_by is not None)
    setup.api.say(decides("archive", 0.95), refused)
    await setup.deliver()
    await setup.product.settled(2)
    (decision,) = await setup.decided("This one is refused")
    assert (decision.source, decision.action_type) == ("none", "none")
    assert "refuses this mail" in decision.rationale


async def test_a_model_that_is_invalid_leaves_the_message_where_it_is(setup: ClassifySetup) -> None:
    setup.api.say(*[FakeAnswer(text="I would rather not.", refuses=True)] * 2)
    id = await setup.deliver()
    await setup.product.settled(1)
    (decision,) = await setup.decided()
    assert (decision.source, decision.action_type) == ("none", "none")
    assert "no usable answer" in decision.rationale
    assert setup.inbox(id)


async def test_the_model_is_offered_the_users_labels_and_no_others(setup: ClassifySetup) -> None:
    account = await setup.database.run(account_of("gmail:user:mara@lindqvist.example"))
    seen = [
        labels.SeenLabel("L1", "Receipts", "user"),
        labels.SeenLabel("L2", "Postroom/Snoozed", "user"),
        labels.SeenLabel("INBOX", "INBOX", "system"),
    ]
    await setup.database.run(labels.sync_labels(account.id, seen, wall_clock()))
    await setup.deliver()
    await setup.product.settled(1)
    (asked,) = setup.api.asked
    assert asked.labels == ("Receipts",)


async def test_a_message_is_decided_on_again_as_the_next_generation(setup: ClassifySetup) -> None:
    from postroom.core.jobs.types import CATALOGUE
    from postroom.store.jobs.job_builders import decide_again

    setup.api.say(decides("none", 0.9), decides("star", 0.9))
    await setup.deliver()
    (row,) = await setup.product.settled(1)
    assert row.action_type == "none"
    account = await setup.database.run(account_of("gmail:user:mara@lindqvist.example"))
    message = await message_id_of(setup.database, SUBJECT)
    again = decide_again(CATALOGUE, account.id, message, 2)
    await setup.database.run(jobs.enqueue_many([again], wall_clock()))
    await until_job_is(setup.database, again.id, lambda job: job.state == "completed")
    assert [(each.generation, each.action_type) for each in await setup.decided()] == [(2, "star"), (1, "none")]

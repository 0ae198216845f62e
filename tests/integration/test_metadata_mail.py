"""Mail stored as metadata only: rules decide about it by what they can see."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from postroom.core.actions.action import DecidedType
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.ingestion import DEFAULT_POLICY
from postroom.core.rules.draft import RuleDraft
from postroom.intake.buffer import Buffer
from postroom.intake.dispatcher import Dispatcher
from postroom.intake.intake import Intake
from postroom.jobs.run import JobRun
from postroom.store.actions import actions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail import mail
from postroom.store.rules import rules
from postroom.system.wall_clock import wall_clock
from postroom.triage.handlers.classify import Classify
from support.arrived import arrived_mail
from support.clocks import ManualClock
from support.gates import LASTING
from support.product import ENDPOINT, OWNER, Product, envelope, raw_mail, running_product

NEWS = raw_mail("Weekly news", List_Unsubscribe="<https://news.example/out>", Precedence="bulk")


async def test_a_newsletter_under_the_shipped_filters_is_archived_by_a_rule_on_its_headers(
    database: Database, tmp_path: Path
) -> None:
    async with running_product(database, tmp_path, policy=DEFAULT_POLICY) as product:
        await product.rule("news", {"header_match": {"name": "List-Unsubscribe"}}, "archive")
        product.mailbox.deliver(NEWS)
        assert await product.live.sync() == 1
        (row,) = await product.settled(1)
        assert (row.rule_name, row.action_type, row.action_state) == ("news", "archive", "completed")
        (found,) = product.mailbox.search('subject:"Weekly news"')
        assert "INBOX" not in found.labels
        assert await _kept_of(product) == ("metadata", "Weekly news", "")


async def _kept_of(product: Product) -> tuple[str, str, str]:
    (job,) = await product.database.run(jobs.list_jobs(type="classify"))
    shown = await product.database.run(jobs.show_job(job.id))
    assert shown is not None
    message = await product.database.run(mail.load_message(UUID(json.loads(shown.payload_json)["message_id"])))
    return message.ingestion_tier, message.facts.subject, message.facts.body_text


class IntakeSetup:
    """The way from the intake to the decision, step by step, in the hands of the test."""

    def __init__(self, database: Database, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.intake = Intake(database, None, clock)
        self.dispatcher = Dispatcher(database, CATALOGUE, Buffer(database, clock=clock), clock=clock)

    async def opened(self, *given: tuple[UUID, RuleDraft]) -> "IntakeSetup":
        await self.database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, self.clock()))
        await self.database.run(rules.add_rules(given, self.clock()))
        return self

    async def arrives(self, text: str, metadata: dict[str, Any] | None = None, *, full: bool = False) -> None:
        """The one message, as metadata or whole."""
        headers = [["From", "a@b.example"], ["Subject", "Sale"], ["List-Id", "<sale>"]]
        given = envelope("one", {"headers": headers})
        if not full:
            payload = {"raw": None, "normalized_text": text, "metadata": metadata}
            given = {**given, "payload": payload, "control": {"ingestion_tier": "metadata"}}
        else:
            given["payload"]["normalized_text"] = text
        await self.intake.ingest(given)
        await self.dispatcher.tick()

    async def claimed(self) -> Job | None:
        """The next message to classify. What follows from decisions is left lying."""
        token, until = new_id(), self.clock() + timedelta(hours=1)
        await self.database.run(jobs.open_lease(token, "worker", self.clock(), until))
        while claimed := await self.database.run(jobs.claim(token, 1, self.clock())):
            if claimed[0].type == "classify":
                return claimed[0]
        return None

    async def decides(self, job: Job | None = None) -> bool:
        """Classifies the next message, as the worker does."""
        job = job or await self.claimed()
        if job is None:
            return False
        run = JobRun(job, self.database, self.clock, LASTING)
        await Classify(self.database, CATALOGUE, self.clock)(run)
        if not run.ended:
            await self.database.run(jobs.finish([job.claim], [job.seq], self.clock()))
        return True

    async def verdict(self) -> tuple[str | None, str | None]:
        (row,) = await arrived_mail(self.database)
        return row.action_type, row.rule_name


def a_rule(
    name: str, conditions: Mapping[str, Any], action: DecidedType = "archive", priority: int = 100
) -> tuple[UUID, RuleDraft]:
    return new_id(), RuleDraft(name, conditions, action, {"label": "x"}, priority=priority)


async def test_the_whole_of_what_no_rule_matched_by_its_metadata_is_decided_again(
    database: Database, clock: ManualClock
) -> None:
    setup = await IntakeSetup(database, clock).opened(a_rule("plain", {"not": {"body_contains": "invoice"}}))
    await setup.arrives("Sale", {"headers": [["Subject", "Sale"]]})
    assert await setup.decides()
    assert await setup.verdict() == ("none", None)
    await setup.arrives("Everything must go", full=True)
    assert await setup.decides()
    assert await setup.verdict() == ("archive", "plain")


async def test_the_whole_of_what_a_rule_has_decided_by_its_metadata_is_left_at_that(
    database: Database, clock: ManualClock
) -> None:
    by_text = a_rule("text", {"body_contains": "go"}, "apply_label", priority=1)
    setup = await IntakeSetup(database, clock).opened(a_rule("list", {"list_id": "sale"}), by_text)
    await setup.arrives("Sale", {"headers": [["List-Id", "<sale>"]]})
    assert await setup.decides()
    await setup.arrives("Everything must go", full=True)
    assert await setup.decides()
    assert await setup.verdict() == ("archive", "list")
    assert len(await database.run(actions.list_actions(10))) == 1


async def test_the_whole_is_looked_at_also_when_its_metadata_is_just_being_decided(
    database: Database, clock: ManualClock
) -> None:
    """However the two jobs lie in time, the text is seen once, and the message is acted on once."""
    setup = await IntakeSetup(database, clock).opened(a_rule("text", {"body_contains": "go"}))
    await setup.arrives("Sale", {"headers": [["List-Id", "<sale>"]]})
    deciding = await setup.claimed()
    await setup.arrives("Everything must go", full=True)
    assert await setup.decides(deciding)
    while await setup.decides():
        pass
    assert await setup.verdict() == ("archive", "text")
    assert [each.state for each in await database.run(actions.list_actions(10))] == ["queued"]
    assert await database.run(actions.end_orphans(wall_clock())) == 0

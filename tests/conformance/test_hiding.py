"""A model hides no more than its caps allow, however many processes decide; what it hid is recorded and listed."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from postroom.core.actions.action import DecidedType
from postroom.core.actions.hiding import HidingLimits
from postroom.core.actions.safety import Policy
from postroom.core.errors import SafetyRefused
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.contacts import Contact
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.model_decision import ModelDecision
from postroom.jobs.run import JobRun
from postroom.operations.actions.undo import UndoSelection, undo_selection
from postroom.operations.caller import Caller
from postroom.operations.people.audit import signature
from postroom.store.actions.actions import list_actions
from postroom.store.actions.pauses import pause
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.contacts import keep_contacts
from postroom.store.mail.labels import SeenLabel, sync_labels
from postroom.store.mail.mail import StoredMessage
from postroom.store.people.audit import Signature, list_audit
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents
from postroom.triage.decide.engine import Advice
from postroom.triage.handlers.classify import Classify
from support.gates import LASTING
from support.store.job_setup import JobSetup
from support.store.mail_setup import LABELS, MailSetup, Sample


class Obedient:
    """A model that always decides the same."""

    def __init__(self, action: DecidedType = "archive", **parameters: object) -> None:
        self.decision = ModelDecision(action, parameters, 1.0, "because the mail says so")

    async def advise(self, message: StoredMessage) -> Advice:
        return Advice(self.decision, "a model", "1")


@pytest.fixture
async def box(setup: JobSetup) -> MailSetup:
    setup.clock.now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    return await MailSetup(setup, adviser=Obedient()).opened()


def letters(count: int, sender: str = "s{}@shop{}.example", prefix: str = "m") -> list[Sample]:
    return [Sample(f"{prefix}{n}", sender.format(n, n)) for n in range(count)]


async def hidden(box: MailSetup, *mail: Sample) -> int:
    """How many of these the model hides."""
    return sum(each.action_type != "none" for each in await box.decide(*mail))


@pytest.mark.parametrize(
    ("action", "parameters"),
    [("archive", {}), ("trash", {}), ("mark_read", {}), ("snooze", {"amount": 8, "units": "days"})],
)
@pytest.mark.parametrize(
    ("kept", "why"),
    [
        (Sample("1", "ann@friends.example"), "from one of your contacts"),
        (Sample("1", reply_to_mine=True), "answers a message of yours"),
        (Sample("1", subject="Security alert: new sign-in"), "security"),
        (Sample("1", subject="Ihr Bestätigungscode lautet 482913"), "security"),
        (Sample("1", "billing@bank.example", subject="Your bank statement is ready"), "finance"),
        (Sample("1", "lab@clinic.example", subject="Your blood test results"), "health"),
    ],
    ids=lambda value: value if isinstance(value, str) else "mail",
)
async def test_a_model_does_not_hide_mail_that_only_people_hide(
    box: MailSetup, action: DecidedType, parameters: dict[str, object], kept: Sample, why: str
) -> None:
    signed = Signature(new_id(), "test", "admin")
    ann = [Contact("ann@friends.example", "Ann")]
    await box.setup.database.run(keep_contacts(ann, "mcp", "", signed, box.setup.clock()))
    box.adviser = Obedient(action, **parameters)
    [decision] = await box.decide(kept)
    assert (decision.action_type, decision.needs_approval) == ("none", False)
    assert "is not done: it " in decision.rationale
    assert why in decision.rationale
    assert (decision.safety or {})["proposed"] == {"action": action, "parameters": parameters}
    assert await box.setup.database.run(list_actions(10)) == []


async def test_a_short_snooze_and_a_star_are_not_hiding(box: MailSetup) -> None:
    box.adviser = Obedient("snooze", amount=2, units="days")
    assert await hidden(box, replace(Sample("1"), reply_to_mine=True)) == 1
    box.adviser = Obedient("star")
    assert await hidden(box, Sample("2", subject="Security alert")) == 1


async def test_a_message_is_snoozed_for_a_short_time_only_once(box: MailSetup) -> None:
    """A week again and again is a year."""
    box.adviser = Obedient("snooze", amount=167, units="hours")
    assert await hidden(box, replace(Sample("1"), reply_to_mine=True)) == 1
    message = (await box.setup.database.run(list_actions(1)))[0].message_id
    agents = Agents(ActionRequests(box.setup.database, CATALOGUE, Policy(trust_agents=True), box.setup.clock))
    agent = Signature(new_id(), f"token:{new_id()}", "agent")
    with pytest.raises(SafetyRefused, match="answers a message of yours"):
        await agents.propose(message, "snooze", {"amount": 1, "units": "hours"}, "x", agent)
    assert await hidden(box, Sample("2", "one@shop.example")) == 1
    other = (await box.setup.database.run(list_actions(1)))[0].message_id
    await agents.propose(other, "snooze", {"amount": 1, "units": "hours"}, "x", agent)
    listed = await box.setup.database.run(list_audit(10, action="mail.hide"))
    assert [(each.after or {})["message_id"] for each in listed] == [str(other)], "mail that may be hidden is counted"


async def test_a_label_that_is_a_folder_hides_and_another_does_not(box: MailSetup) -> None:
    seen = [*LABELS, SeenLabel("folder:Old", "Old", "user")]
    await box.setup.database.run(sync_labels(box.account.id, seen, box.setup.clock()))
    box.adviser = Obedient("apply_label", label="Receipts")
    assert await hidden(box, Sample("1", subject="Security alert")) == 1
    box.adviser = Obedient("apply_label", label="Old")
    assert await hidden(box, Sample("2", subject="Security alert")) == 0
    assert await hidden(box, *letters(6, "one@shop.example")) == 5


async def test_five_messages_of_a_sender_are_hidden_in_a_day(box: MailSetup) -> None:
    assert await hidden(box, *letters(7, "one@shop.example")) == 5
    assert "the limit of 5 hidden messages of one sender a day is reached" in (await box.decision("m6")).rationale
    assert await hidden(box, Sample("other", "two@shop.example")) == 1
    box.setup.clock.now = datetime(2026, 11, 15, 23, 59, tzinfo=UTC)
    assert await hidden(box, *letters(1, "one@shop.example", "late")) == 0
    box.setup.clock.now = datetime(2026, 11, 16, 0, 0, tzinfo=UTC)
    assert await hidden(box, *letters(1, "one@shop.example", "new")) == 1


async def test_the_day_is_the_owners(box: MailSetup) -> None:
    box.policy = Policy(zone=ZoneInfo("Asia/Tokyo"))
    assert await hidden(box, *letters(6, "one@shop.example")) == 5
    box.setup.clock.now = datetime(2026, 11, 15, 15, 0, tzinfo=UTC)
    assert await hidden(box, *letters(1, "one@shop.example", "new")) == 1


async def test_thirty_messages_are_hidden_in_an_hour(box: MailSetup) -> None:
    assert await hidden(box, *letters(32)) == 30
    assert "the limit of 30 hidden messages an hour is reached" in (await box.decision("m31")).rationale
    box.setup.clock.forward(3601)
    assert await hidden(box, *letters(1, prefix="new")) == 1


async def test_the_cap_of_a_day_holds_over_its_hours(box: MailSetup) -> None:
    box.policy = Policy(hiding=HidingLimits(100, 3, 5))
    assert await hidden(box, *letters(4)) == 3
    box.setup.clock.forward(3601)
    assert await hidden(box, *letters(4, prefix="new")) == 2
    assert "the limit of 5 hidden messages a day is reached" in (await box.decision("new3")).rationale


async def test_rules_of_the_owner_are_not_capped_and_hide_what_they_say(box: MailSetup) -> None:
    await box.rules(RuleDraft("all", {"sender_domain": "shop.example"}, "archive", {}))
    assert await hidden(box, *letters(8, "one@shop.example")) == 8
    assert await hidden(box, Sample("s", "one@shop.example", subject="Security alert")) == 1


async def test_deciding_again_gives_nothing_back(box: MailSetup) -> None:
    assert await hidden(box, *letters(5, "one@shop.example")) == 5
    await box.again("m0")
    assert (await box.decision("m0")).action_type == "none"


async def test_processes_that_decide_at_once_stay_under_the_cap_together(
    box: MailSetup, second_database: Database
) -> None:
    await box.deliver(*letters(20, "one@shop.example"))
    jobs = await box.setup.claim(20)

    async def classify(database: Database, number: int) -> None:
        handler = Classify(database, CATALOGUE, box.setup.clock, policy=box.policy, adviser=box.adviser)
        await handler(JobRun(jobs[number], database, box.setup.clock, LASTING))

    databases = (box.setup.database, second_database)
    await asyncio.gather(*(classify(databases[n % 2], n) for n in range(20)))
    assert len(await box.setup.database.run(list_actions(100))) == 5
    decided = [await box.decision(f"m{n}") for n in range(20)]
    assert sum(each.action_type == "none" for each in decided) == 15


async def test_bringing_all_back_cancels_what_would_be_hidden_when_a_pause_ends(box: MailSetup) -> None:
    signed = Signature(new_id(), "test", "admin")
    await box.setup.database.run(pause("all", "look", signed, box.setup.clock()))
    await box.deliver(*letters(3))
    for job in await box.setup.claim(3):
        handler = Classify(box.setup.database, CATALOGUE, box.setup.clock, adviser=box.adviser)
        await handler(JobRun(job, box.setup.database, box.setup.clock, LASTING))
    hidden = UndoSelection(hidden=True)
    foreseen = await undo_selection(Caller(box.setup.database, signature("ada", "admin")), hidden, dry_run=True)
    assert foreseen == (0, 0, 3)
    assert await undo_selection(Caller(box.setup.database, signature("ada", "admin")), hidden) == (
        0,
        0,
        3,
    )
    states = {(each.state, each.error) for each in await box.setup.database.run(list_actions(10))}
    assert states == {("canceled", "a person has brought back all that was hidden")}
    [entry] = await box.setup.database.run(list_audit(10, action="actions.undo"))
    assert entry.after == {"hidden": "True", "actions": 0, "messages": 0, "canceled": 3}
    assert await undo_selection(Caller(box.setup.database, signature("ada", "admin")), hidden) == (
        0,
        0,
        0,
    )


async def test_each_hidden_message_is_in_the_audit_log(box: MailSetup) -> None:
    await box.decide(*letters(6, "one@shop.example"))
    entries = await box.setup.database.run(list_audit(100, action="mail.hide"))
    assert len(entries) == 5
    assert {(each.actor, each.role, each.object_type) for each in entries} == {("model", "model", "action")}
    shown = {str(each.id): each for each in await box.setup.database.run(list_actions(100))}
    for each in entries:
        action = shown[each.object_id]
        assert each.after == {"message_id": str(action.message_id), "action_type": "archive"}

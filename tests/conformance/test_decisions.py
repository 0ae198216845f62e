"""Decisions in the store: one effective decision per generation, any number in shadow; and requested actions."""

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from postroom.core.actions.action import DecidedType
from postroom.core.actions.label_changes import LabelChange
from postroom.core.actions.undo import irreversible_hint, undo_hint
from postroom.core.errors import ConstraintBroken
from postroom.core.jobs.types import CATALOGUE
from postroom.core.lifecycle import ActionState
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.model_decision import ModelDecision
from postroom.jobs.run import JobRun
from postroom.operations.accounts.acting import begin_acting
from postroom.operations.caller import Caller
from postroom.store.accounts import accounts
from postroom.store.actions import actions, decisions, undos
from postroom.store.engine.ids import new_id
from postroom.store.installation.rollups import hourly
from postroom.store.jobs.job_builders import decide_again
from postroom.store.mail.mail import StoredMessage
from postroom.store.people.audit import Signature
from postroom.store.rules import rules
from postroom.triage.decide.engine import Advice
from postroom.triage.handlers.classify import Classify
from support.gates import LASTING
from support.store.action_setup import ActionSetup, Stored, Waiting, decision_about
from support.store.job_setup import JobSetup
from support.store.mail_setup import OWNER, MailSetup, Sample

YEAR = timedelta(days=365)


@pytest.fixture
def action_setup(setup: JobSetup) -> ActionSetup:
    return ActionSetup(setup)


async def test_there_is_one_decision_of_a_generation_and_the_second_leaves_no_trace(action_setup: ActionSetup) -> None:
    stored = await action_setup.stored()
    decision = decision_about(stored.account_id, stored.message_id)
    now = action_setup.setup.clock()
    await action_setup.setup.database.run(decisions.record_decision(stored.deciding, decision, None, None, now))
    job, follow_up = await action_setup.setup.claimed(), action_setup.setup.new()
    action = decisions.NewAction(new_id(), "rule", "queued", "hash", follow_up.id)
    second = decision_about(stored.account_id, stored.message_id)
    with pytest.raises(ConstraintBroken):
        await action_setup.setup.database.run(decisions.record_decision(job, second, action, follow_up, now))
    assert await action_setup.views() == []
    assert await action_setup.setup.state(job.id) == "running"
    third = decision_about(stored.account_id, stored.message_id, generation=2)
    await action_setup.setup.database.run(decisions.record_decision(job, third, action, follow_up, now))
    assert await action_setup.setup.database.run(decisions.latest_generation(stored.message_id)) == 2
    assert [each.id for each in await action_setup.views()] == [action.id]


async def decided(
    action_setup: ActionSetup, before: Stored, generation: int, kind: DecidedType, state: ActionState
) -> UUID:
    """Decides about the message anew, by a job of its own; returns the id that its action would have."""
    decision = decision_about(before.account_id, before.message_id, kind, generation=generation)
    follow_up, now = action_setup.setup.new(), action_setup.setup.clock()
    job_id = follow_up.id if state == "queued" else None
    action = decisions.NewAction(new_id(), "rule", state, f"hash of {kind}", job_id, now + timedelta(days=1))
    job = before.deciding if generation == 1 else await action_setup.setup.claimed()
    await action_setup.setup.database.run(decisions.record_decision(job, decision, action, follow_up, now))
    return action.id


@pytest.mark.parametrize("kind", ["delete", "forward", "auto_reply"])
@pytest.mark.parametrize("moment", ["on its way", "under way", "done"])
async def test_what_cannot_be_undone_is_not_done_again_when_a_message_is_decided_on_again(
    action_setup: ActionSetup, kind: DecidedType, moment: str
) -> None:
    stored = await action_setup.stored()
    first = Waiting(
        await decided(action_setup, stored, 1, kind, "queued"), *stored[:2], await action_setup.setup.claim_one()
    )
    if moment != "on its way":
        await action_setup.begin(first)
    if moment == "done":
        hint, now = irreversible_hint(kind), action_setup.setup.clock()
        await action_setup.setup.database.run(
            actions.complete_action(first.job, first.id, actions.DoneChange(None, hint), now)
        )
    await decided(action_setup, stored, 2, kind, "queued")
    assert [each.id for each in await action_setup.views()] == [first.id]
    assert await action_setup.setup.claim() == []
    newest, *_ = await action_setup.setup.database.run(decisions.decisions_about(stored.message_id))
    assert newest.decision.generation == 2
    assert "already done" in newest.decision.rationale


@pytest.mark.parametrize(("kind", "ended"), [("archive", False), ("forward", True)])
async def test_what_can_be_undone_or_was_never_done_is_done_when_a_message_is_decided_on_again(
    action_setup: ActionSetup, kind: DecidedType, ended: bool
) -> None:
    stored = await action_setup.stored()
    first = Waiting(
        await decided(action_setup, stored, 1, kind, "queued"), *stored[:2], await action_setup.setup.claim_one()
    )
    if ended:
        await action_setup.begin(first)
        await action_setup.fail(first)
    second = await decided(action_setup, stored, 2, kind, "queued")
    assert {each.id for each in await action_setup.views()} == {first.id, second}


async def test_what_waits_for_a_yes_is_taken_back_when_its_message_is_decided_on_again(
    action_setup: ActionSetup,
) -> None:
    stored, other = await action_setup.stored(), await action_setup.stored()
    first = await decided(action_setup, stored, 1, "forward", "approved_pending")
    elsewhere = await decided(action_setup, other, 1, "forward", "approved_pending")
    wish = decision_about(stored.account_id, stored.message_id, "trash")
    asked = decisions.NewAction(new_id(), "agent", "approved_pending", "hash", asked_by="an agent")
    await action_setup.setup.database.run(decisions.ask_for_action(wish, asked, None, action_setup.setup.clock()))
    second = await decided(action_setup, stored, 2, "forward", "approved_pending")
    found = {each.id: (each.state, each.error) for each in await action_setup.views()}
    waiting = ("approved_pending", None)
    assert found == {first: ("canceled", "decided again"), elsewhere: waiting, asked.id: waiting, second: waiting}


async def test_what_follows_from_deciding_again_belongs_to_its_batch(setup: JobSetup) -> None:
    mail_setup, batch = await MailSetup(setup).opened(), new_id()
    await mail_setup.rules(RuleDraft("archive it", {"subject_contains": "offer"}, "archive"))
    await mail_setup.decide(Sample("1", subject="An offer"))
    before = await setup.database.run(actions.list_actions(10))
    await setup.accept(decide_again(CATALOGUE, mail_setup.account.id, mail_setup.ids["1"], 2, batch))
    [deciding] = await setup.claim()
    await Classify(setup.database, CATALOGUE, setup.clock)(JobRun(deciding, setup.database, setup.clock, LASTING))
    job = await setup.claim_one()
    action = UUID(job.payload["action_id"])
    await setup.database.run(actions.begin_action(job, action, 20, setup.clock()))
    hint = undo_hint("archive", frozenset({"INBOX"}), LabelChange(remove=frozenset({"INBOX"})))
    await setup.database.run(actions.complete_action(job, action, actions.DoneChange(frozenset(), hint), setup.clock()))
    assert action not in {each.id for each in before}
    assert [each.id for each in await setup.database.run(undos.undoable(10, batch_id=batch))] == [action]


class SwitchesOn:
    """A model that archives; its owner begins to act while it is asked for the first time."""

    def __init__(self, by: Caller, since: datetime) -> None:
        self.by, self.since, self.begun = by, since, list[int]()

    async def advise(self, message: StoredMessage) -> Advice:
        if not self.begun:
            self.begun.append((await begin_acting(self.by, OWNER, self.since)).messages)
        return Advice(ModelDecision("archive", {}, 0.99, "it looks unimportant"), "a model", "1")


async def test_mail_that_is_decided_while_acting_begins_is_decided_again_and_acted_on(setup: JobSetup) -> None:
    box, signed = await MailSetup(setup).opened(), Signature(new_id(), "cli:ada", "admin")
    before, later = Sample("1"), setup.clock() + timedelta(days=300)
    await setup.database.run(accounts.act_from(box.account.id, later, signed, setup.clock()))
    box.adviser = adviser = SwitchesOn(Caller(setup.database, signed, setup.clock).again(), setup.clock() - YEAR)
    await box.deliver(before)
    await box.work()
    assert adviser.begun == [0], "when acting began there was no decision about it yet"
    assert (await box.decision("1")).action_type == "archive"
    assert [each.action_type for each in await setup.database.run(actions.list_actions(9))] == ["archive"]


async def test_deciding_again_is_asked_for_once_at_a_time_and_again_after_it_was_canceled(setup: JobSetup) -> None:
    account_id, message_id = new_id(), new_id()

    async def ask() -> tuple[UUID, int]:
        job = decide_again(CATALOGUE, account_id, message_id, 2, new_id())
        return job.id, await setup.database.run(decisions.enqueue_decisions([job], setup.clock()))

    first, count = await ask()
    assert (count, (await ask())[1]) == (1, 0)
    await setup.cancel(first)
    assert (await ask())[1] == 1


async def test_shadow_decisions_are_kept_beside_the_one_that_counts_as_many_as_there_are(
    action_setup: ActionSetup,
) -> None:
    stored = await action_setup.stored()
    account_id, message_id, job = stored
    live = decision_about(account_id, message_id)
    shadows = [decision_about(account_id, message_id, kind, shadow=True) for kind in ("trash", "trash", "star")]
    await action_setup.setup.database.run(
        decisions.record_decision(job, live, None, None, action_setup.setup.clock(), shadows)
    )
    found = [each.decision for each in await action_setup.setup.database.run(decisions.decisions_about(message_id))]
    assert found[0].id == live.id
    assert {each.id for each in found[1:]} == {each.id for each in shadows}
    assert await action_setup.views() == []


async def test_a_message_about_which_nothing_was_decided_has_no_generation(action_setup: ActionSetup) -> None:
    assert (
        await action_setup.setup.database.run(decisions.latest_generation((await action_setup.stored()).message_id))
        == 0
    )


async def test_an_action_that_somebody_asked_for_waits_with_its_job_and_without_a_decision(
    action_setup: ActionSetup,
) -> None:
    stored = await action_setup.stored()
    await action_setup.setup.finish(stored.deciding)
    wish = decision_about(stored.account_id, stored.message_id, "star", safety={"verdict": "allow"})
    follow_up, id, now = action_setup.setup.new(), new_id(), action_setup.setup.clock()
    action = decisions.NewAction(id, "user", "queued", "hash", follow_up.id, asked_by="ada")
    await action_setup.setup.database.run(decisions.ask_for_action(wish, action, follow_up, now))
    view = await action_setup.view(id)
    assert (view.state, view.actor, view.asked_by, view.decision_id) == ("queued", "user", "ada", None)
    assert (view.action_type, view.safety) == ("star", {"verdict": "allow"})
    assert await action_setup.setup.database.run(decisions.latest_generation(stored.message_id)) == 0
    await action_setup.begin(Waiting(id, stored.account_id, stored.message_id, await action_setup.setup.claim_one()))
    assert await action_setup.state(id) == "executing"


async def test_decisions_are_counted_by_their_rule_and_those_of_no_rule_by_their_source(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(RuleDraft("shop", {"sender_domain": "shop.example"}, "archive"))
    await mail_setup.decide(Sample("1"), Sample("2", sender="ann@other.example"), Sample("3"))
    (rule,) = await setup.database.run(rules.list_rules())
    now, an_hour = setup.clock(), timedelta(hours=1)
    counted = await setup.database.run(hourly("rule", now - an_hour, now + an_hour))
    assert {each.name: each.count for each in counted} == {str(rule.id): 2, "none": 1}

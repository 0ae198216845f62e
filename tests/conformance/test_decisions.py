"""Decisions in the store: one of each generation that counts, any number in shadow; and actions that were asked for."""

from datetime import timedelta
from uuid import UUID

import pytest

from conformance.action_desk import ActionDesk, Stored, Waiting, decision_about
from conformance.desk import Desk
from conformance.mailroom import Letter, Mailroom
from postroom.core.actions.action import DecidedType, LabelChange
from postroom.core.actions.undo import no_way_back, undo_hint
from postroom.core.errors import ConstraintBroken
from postroom.core.jobs.types import CATALOGUE
from postroom.core.lifecycle import ActionState
from postroom.core.rules.draft import RuleDraft
from postroom.handlers.classify import Classify
from postroom.jobs.run import JobRun
from postroom.store import actions, decisions, rules, undos
from postroom.store.engine.ids import new_id
from postroom.store.job_builders import decide_again
from postroom.store.rollups import hourly
from support.gates import LASTING


@pytest.fixture
def office(desk: Desk) -> ActionDesk:
    return ActionDesk(desk)


async def test_there_is_one_decision_of_a_generation_and_the_second_leaves_no_trace(office: ActionDesk) -> None:
    stored = await office.stored()
    decision = decision_about(stored.account_id, stored.message_id)
    now = office.desk.clock()
    await office.desk.database.run(decisions.record_decision(stored.deciding, decision, None, None, now))
    job, follow_up = await office.desk.claimed(), office.desk.new()
    action = decisions.NewAction(new_id(), "rule", "queued", "hash", follow_up.id)
    second = decision_about(stored.account_id, stored.message_id)
    with pytest.raises(ConstraintBroken):
        await office.desk.database.run(decisions.record_decision(job, second, action, follow_up, now))
    assert await office.views() == []
    assert await office.desk.state(job.id) == "running"
    third = decision_about(stored.account_id, stored.message_id, generation=2)
    await office.desk.database.run(decisions.record_decision(job, third, action, follow_up, now))
    assert await office.desk.database.run(decisions.latest_generation(stored.message_id)) == 2
    assert [each.id for each in await office.views()] == [action.id]


async def decided(office: ActionDesk, before: Stored, generation: int, kind: DecidedType, state: ActionState) -> UUID:
    """Decides about the message anew, by a job of its own; returns the id that its action would have."""
    decision = decision_about(before.account_id, before.message_id, kind, generation=generation)
    follow_up, now = office.desk.new(), office.desk.clock()
    job_id = follow_up.id if state == "queued" else None
    action = decisions.NewAction(new_id(), "rule", state, f"hash of {kind}", job_id, now + timedelta(days=1))
    job = before.deciding if generation == 1 else await office.desk.claimed()
    await office.desk.database.run(decisions.record_decision(job, decision, action, follow_up, now))
    return action.id


@pytest.mark.parametrize("kind", ["delete", "forward", "auto_reply"])
@pytest.mark.parametrize("moment", ["on its way", "under way", "done"])
async def test_what_cannot_be_undone_is_not_done_again_when_a_message_is_decided_about_anew(
    office: ActionDesk, kind: DecidedType, moment: str
) -> None:
    stored = await office.stored()
    first = Waiting(await decided(office, stored, 1, kind, "queued"), *stored[:2], await office.desk.claim_one())
    if moment != "on its way":
        await office.begin(first)
    if moment == "done":
        hint, now = no_way_back(kind), office.desk.clock()
        await office.desk.database.run(actions.complete_action(first.job, first.id, None, hint, now))
    await decided(office, stored, 2, kind, "queued")
    assert [each.id for each in await office.views()] == [first.id]
    assert await office.desk.claim() == []
    newest, *_ = await office.desk.database.run(decisions.decisions_about(stored.message_id))
    assert newest.decision.generation == 2
    assert "done before" in newest.decision.rationale


@pytest.mark.parametrize(("kind", "ended"), [("archive", False), ("forward", True)])
async def test_what_can_be_undone_or_was_never_done_is_done_when_a_message_is_decided_about_anew(
    office: ActionDesk, kind: DecidedType, ended: bool
) -> None:
    stored = await office.stored()
    first = Waiting(await decided(office, stored, 1, kind, "queued"), *stored[:2], await office.desk.claim_one())
    if ended:
        await office.begin(first)
        await office.fail(first)
    second = await decided(office, stored, 2, kind, "queued")
    assert {each.id for each in await office.views()} == {first.id, second}


async def test_what_waits_for_a_yes_is_taken_back_when_its_message_is_decided_about_anew(office: ActionDesk) -> None:
    stored, other = await office.stored(), await office.stored()
    first = await decided(office, stored, 1, "forward", "awaiting_approval")
    elsewhere = await decided(office, other, 1, "forward", "awaiting_approval")
    wish = decision_about(stored.account_id, stored.message_id, "trash")
    asked = decisions.NewAction(new_id(), "agent", "awaiting_approval", "hash", asked_by="an agent")
    await office.desk.database.run(decisions.ask_for_action(wish, asked, None, office.desk.clock()))
    second = await decided(office, stored, 2, "forward", "awaiting_approval")
    found = {each.id: (each.state, each.error) for each in await office.views()}
    waiting = ("awaiting_approval", None)
    assert found == {first: ("canceled", "decided anew"), elsewhere: waiting, asked.id: waiting, second: waiting}


async def test_what_follows_from_deciding_anew_belongs_to_its_batch(desk: Desk) -> None:
    room, batch = await Mailroom(desk).opened(), new_id()
    await room.rules(RuleDraft("archive it", {"subject_contains": "offer"}, "archive"))
    await room.decide(Letter("1", subject="An offer"))
    before = await desk.database.run(actions.list_actions(10))
    await desk.accept(decide_again(CATALOGUE, room.account.id, room.ids["1"], 2, batch))
    [deciding] = await desk.claim()
    await Classify(desk.database, CATALOGUE, desk.clock)(JobRun(deciding, desk.database, desk.clock, LASTING))
    job = await desk.claim_one()
    action = UUID(job.payload["action_id"])
    await desk.database.run(actions.begin_action(job, action, 20, desk.clock()))
    hint = undo_hint("archive", frozenset({"INBOX"}), LabelChange(remove=frozenset({"INBOX"})))
    await desk.database.run(actions.complete_action(job, action, frozenset(), hint, desk.clock()))
    assert action not in {each.id for each in before}
    assert [each.id for each in await desk.database.run(undos.undoable(10, batch_id=batch))] == [action]


async def test_deciding_anew_is_asked_for_once_at_a_time_and_again_after_it_was_canceled(desk: Desk) -> None:
    account_id, message_id = new_id(), new_id()

    async def ask() -> tuple[UUID, int]:
        job = decide_again(CATALOGUE, account_id, message_id, 2, new_id())
        return job.id, await desk.database.run(decisions.enqueue_decisions([job], desk.clock()))

    first, count = await ask()
    assert (count, (await ask())[1]) == (1, 0)
    await desk.cancel(first)
    assert (await ask())[1] == 1


async def test_shadow_decisions_are_kept_beside_the_one_that_counts_as_many_as_there_are(office: ActionDesk) -> None:
    stored = await office.stored()
    account_id, message_id, job = stored
    live = decision_about(account_id, message_id)
    shadows = [decision_about(account_id, message_id, kind, shadow=True) for kind in ("trash", "trash", "star")]
    await office.desk.database.run(decisions.record_decision(job, live, None, None, office.desk.clock(), shadows))
    found = [each.decision for each in await office.desk.database.run(decisions.decisions_about(message_id))]
    assert found[0].id == live.id
    assert {each.id for each in found[1:]} == {each.id for each in shadows}
    assert await office.views() == []


async def test_a_message_about_which_nothing_was_decided_has_no_generation(office: ActionDesk) -> None:
    assert await office.desk.database.run(decisions.latest_generation((await office.stored()).message_id)) == 0


async def test_an_action_that_somebody_asked_for_waits_with_its_job_and_without_a_decision(office: ActionDesk) -> None:
    stored = await office.stored()
    await office.desk.finish(stored.deciding)
    wish = decision_about(stored.account_id, stored.message_id, "star", safety={"verdict": "allow"})
    follow_up, id, now = office.desk.new(), new_id(), office.desk.clock()
    action = decisions.NewAction(id, "user", "queued", "hash", follow_up.id, asked_by="ada")
    await office.desk.database.run(decisions.ask_for_action(wish, action, follow_up, now))
    view = await office.view(id)
    assert (view.state, view.actor, view.asked_by, view.decision_id) == ("queued", "user", "ada", None)
    assert (view.action_type, view.safety) == ("star", {"verdict": "allow"})
    assert await office.desk.database.run(decisions.latest_generation(stored.message_id)) == 0
    await office.begin(Waiting(id, stored.account_id, stored.message_id, await office.desk.claim_one()))
    assert await office.state(id) == "executing"


async def test_decisions_are_counted_by_their_rule_and_those_of_no_rule_by_their_source(desk: Desk) -> None:
    room = await Mailroom(desk).opened()
    await room.rules(RuleDraft("shop", {"sender_domain": "shop.example"}, "archive"))
    await room.decide(Letter("1"), Letter("2", sender="ann@other.example"), Letter("3"))
    (rule,) = await desk.database.run(rules.list_rules())
    now, an_hour = desk.clock(), timedelta(hours=1)
    counted = await desk.database.run(hourly("rule", now - an_hour, now + an_hour))
    assert {each.name: each.count for each in counted} == {str(rule.id): 2, "none": 1}

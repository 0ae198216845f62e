"""Decisions in the store: one of each generation that counts, any number in shadow; and actions that were asked for."""

import pytest

from conformance.action_desk import ActionDesk, Waiting, decision_about
from conformance.desk import Desk
from postroom.core.errors import ConstraintBroken
from postroom.store import decisions
from postroom.store.ids import new_id


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

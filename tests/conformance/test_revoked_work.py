"""Revoking a token withdraws what its holder asked for and what is not done yet."""

from datetime import datetime

import pytest

from postroom.core.actions.action import Actor
from postroom.core.actions.safety import Policy
from postroom.core.errors import IllegalMove, Refused
from postroom.core.jobs.types import CATALOGUE
from postroom.core.roles import Principal, Role
from postroom.store.actions import actions, approvals, pauses
from postroom.store.actions.token_work import WithdrawnWork
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.people.audit import Signature, list_audit
from postroom.store.people.tokens import NewToken, create_token, mint, revoke_token
from postroom.triage.act.action_requests import ActionRequests
from postroom.triage.act.agents import Agents
from support.mail import done, keep_mail
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

CAP = 100


def agents_on(database: Database, now: datetime, *, trusted: bool) -> Agents:
    return Agents(ActionRequests(database, CATALOGUE, Policy(trust_agents=trusted), lambda: now))


async def minted(setup: JobSetup, name: str) -> NewToken:
    token = mint(Role.AGENT, name=name).token
    await setup.database.run(create_token(token, signed(), setup.clock()))
    return token


def by(token: NewToken) -> Signature:
    who = Principal(token.role, token_id=token.id)
    return Signature(new_id(), who.actor, who.role)


async def states(setup: JobSetup) -> list[tuple[str, str | None]]:
    return [(each.state, each.error) for each in await setup.database.run(actions.list_actions(100))][::-1]


async def test_waiting_proposals_can_no_longer_be_approved(setup: JobSetup) -> None:
    token, other = await minted(setup, "assistant"), await minted(setup, "another")
    agents = agents_on(setup.database, setup.clock(), trusted=False)
    for number, whose in enumerate((token, token, other)):
        message = await keep_mail(setup.database, setup.clock, number)
        await agents.propose(message, "delete", {}, "x", by(whose))
    first = (await setup.database.run(approvals.list_waiting(10)))[0]
    revoked = await setup.database.run(revoke_token(token.id, signed(), setup.clock()))
    assert (revoked.revoked, revoked.work) == (True, WithdrawnWork(withdrawn=2))
    why = "the token 'assistant' that asked for it was revoked"
    assert await states(setup) == [("canceled", why), ("canceled", why), ("approved_pending", None)]
    approve = approvals.approve_action(first.id, first.action_hash, setup.new(), signed(), setup.clock())
    with pytest.raises(IllegalMove, match="not waiting"):
        await setup.database.run(approve)
    entries = await setup.database.run(list_audit(10, actor="cli:ada"))
    assert [each.action for each in entries[:3]] == ["token.revoke", "approval.cancel", "approval.cancel"]
    assert entries[0].after is not None
    assert entries[0].after["withdrawn"] == 2


async def test_queued_actions_are_canceled_also_those_that_wait_for_the_end_of_a_pause(setup: JobSetup) -> None:
    token = await minted(setup, "assistant")
    agents = agents_on(setup.database, setup.clock(), trusted=True)
    await setup.database.run(pauses.pause("all", "look", signed(), setup.clock()))
    for number in range(2):
        await agents.propose(await keep_mail(setup.database, setup.clock, number), "archive", {}, "x", by(token))
    parked, other = [each for each in await setup.claim() if each.type == "action.gmail"]
    assert await setup.park(parked, f"{jobs.PAUSE}all")
    assert await setup.release(other) == 1
    revoked = await setup.database.run(revoke_token(token.id, signed(), setup.clock()))
    assert revoked.work == WithdrawnWork(canceled=2)
    assert await setup.database.run(pauses.resume("all", signed(), setup.clock())) == 0
    assert {state for state, _ in await states(setup)} == {"canceled"}
    assert [each for each in await setup.claim() if each.type == "action.gmail"] == []


async def test_a_retry_does_not_do_what_was_withdrawn(setup: JobSetup) -> None:
    """Another token may retry jobs, and so may people, who see many of them at once."""
    token = await minted(setup, "assistant")
    agents = agents_on(setup.database, setup.clock(), trusted=True)
    asked = await agents.propose(await keep_mail(setup.database, setup.clock), "archive", {}, "x", by(token))
    job_id = (await setup.database.run(jobs.list_jobs(type="action.gmail")))[0].id
    await setup.database.run(revoke_token(token.id, signed(), setup.clock()))
    await setup.database.run(jobs.retry_job(job_id, setup.clock()))
    job = next(each for each in await setup.claim() if each.type == "action.gmail")
    reason = await setup.database.run(actions.begin_action(job, asked.action_id, CAP, setup.clock()))
    assert reason == "the token that asked for it was revoked"
    assert await states(setup) == [("canceled", reason)]
    assert (await setup.show(job.id)).state == "completed"


async def test_what_a_person_approved_is_done_by_a_retry(setup: JobSetup) -> None:
    token = await minted(setup, "assistant")
    agents = agents_on(setup.database, setup.clock(), trusted=False)
    asked = await agents.propose(await keep_mail(setup.database, setup.clock), "archive", {}, "x", by(token))
    job = setup.new()
    shown = (await setup.database.run(approvals.show_approval(asked.action_id))).action_hash
    await setup.database.run(approvals.approve_action(asked.action_id, shown, job, signed(), setup.clock()))
    await setup.database.run(revoke_token(token.id, signed(), setup.clock()))
    assert [state for state, _ in await states(setup)] == ["canceled"]
    await setup.database.run(jobs.retry_job(job.id, setup.clock()))
    claimed = next(each for each in await setup.claim() if each.id == job.id)
    assert await setup.database.run(actions.begin_action(claimed, asked.action_id, CAP, setup.clock())) is None


async def test_an_action_that_has_begun_stops_at_its_next_step(setup: JobSetup) -> None:
    token = await minted(setup, "assistant")
    agents = agents_on(setup.database, setup.clock(), trusted=True)
    asked = await agents.propose(await keep_mail(setup.database, setup.clock), "archive", {}, "x", by(token))
    job = next(each for each in await setup.claim() if each.type == "action.gmail")
    await setup.database.run(actions.begin_action(job, asked.action_id, CAP, setup.clock()))
    revoked = await setup.database.run(revoke_token(token.id, signed(), setup.clock()))
    assert revoked.work == WithdrawnWork(stopping=1)
    assert (await setup.show(job.id)).cancel_requested


async def test_a_request_that_was_on_its_way_is_refused(setup: JobSetup) -> None:
    token = await minted(setup, "assistant")
    message = await keep_mail(setup.database, setup.clock)
    await setup.database.run(revoke_token(token.id, signed(), setup.clock()))
    with pytest.raises(Refused, match="revoked"):
        await agents_on(setup.database, setup.clock(), trusted=True).propose(message, "archive", {}, "x", by(token))
    assert await states(setup) == []


async def test_undos_of_what_others_did_are_canceled_and_those_of_its_own_actions_stay(setup: JobSetup) -> None:
    """While everything is paused, what it asked to undo would begin with the next resume."""
    token, database = await minted(setup, "assistant"), setup.database
    agents = agents_on(database, setup.clock(), trusted=True)
    whose: tuple[tuple[Actor, str], ...] = (("rule", "test"), ("agent", by(token).actor))
    of_rule, own = [
        await done(database, setup.clock, await keep_mail(database, setup.clock, number), *each)
        for number, each in enumerate(whose)
    ]
    for action in (of_rule, own):
        await agents.undo(action, None, by(token))
    revoked = await database.run(revoke_token(token.id, signed(), setup.clock()))
    assert revoked.work == WithdrawnWork(canceled=1)
    (left,) = [each for each in await setup.claim() if each.type == "undo.action"]
    assert left.payload["original_action_id"] == str(own)
    again = await agents_on(database, setup.clock(), trusted=True).undo(of_rule, None, by(await minted(setup, "other")))
    assert again.state == "queued", "others may ask for it anew"


async def test_an_undo_that_was_on_its_way_is_refused(setup: JobSetup) -> None:
    token, database = await minted(setup, "assistant"), setup.database
    action = await done(database, setup.clock, await keep_mail(database, setup.clock), "rule", "test")
    await database.run(revoke_token(token.id, signed(), setup.clock()))
    with pytest.raises(Refused, match="revoked"):
        await agents_on(database, setup.clock(), trusted=True).undo(action, None, by(token))
    assert [each for each in await setup.claim() if each.type == "undo.action"] == []


async def test_repeating_withdraws_what_an_earlier_revocation_left(setup: JobSetup) -> None:
    token = await minted(setup, "assistant")
    agents = agents_on(setup.database, setup.clock(), trusted=False)
    await agents.propose(await keep_mail(setup.database, setup.clock), "delete", {}, "x", by(token))
    await setup.database.run(revoked_alone())
    for work in (WithdrawnWork(withdrawn=1), WithdrawnWork()):
        again = await setup.database.run(revoke_token(token.id, signed(), setup.clock()))
        assert (again.revoked, again.work) == (False, work)
    assert len(await setup.database.run(list_audit(10, action="token.revoke"))) == 1


@transaction
def revoked_alone() -> Script[None]:
    """Revoke all tokens as it was done before their work was withdrawn with them."""
    yield Text("UPDATE tokens SET revoked_at = created_at")


def test_what_was_withdrawn_is_told_in_words() -> None:
    assert WithdrawnWork().in_words() == ""
    assert WithdrawnWork(51, 1, 0).in_words() == "51 waiting approvals withdrawn, 1 queued action canceled"

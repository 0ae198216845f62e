"""Undo in the store: an action is undone once, by one job at a time, and only if it is reversible."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.permits import Permit
from postroom.core.actions.undo import irreversible_hint
from postroom.core.errors import Canceled, Fatal, LeaseLost, Parked, SafetyRefused
from postroom.core.jobs.job import Job, JobView
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.mailbox import Mailbox
from postroom.jobs.run import JobRun
from postroom.store.actions import actions, pauses, undos
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.mail import mail
from postroom.store.people.audit import list_audit
from postroom.triage.act.undo import UndoService
from postroom.triage.handlers.undo_action import UndoAction
from support.gates import LASTING
from support.store.action_setup import ARRIVED, CAP, OTHERS, ActionSetup, Waiting
from support.store.dump import dump
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

PUT_BACK = irreversible_hint("apply_label")


@pytest.fixture
def action_setup(setup: JobSetup) -> ActionSetup:
    return ActionSetup(setup)


async def begin(action_setup: ActionSetup, done: Waiting, job: Job | None = None) -> tuple[undos.Undo, Job]:
    """By a job of its own, or by this one."""
    job = job or await action_setup.setup.claimed()
    beginning = undos.begin_undo(job, done.id, done.account_id, new_id(), action_setup.setup.clock())
    undo = await action_setup.setup.database.run(beginning)
    assert undo is not None
    return undo, job


async def undone(action_setup: ActionSetup, done: Waiting) -> UUID:
    undo, job = await begin(action_setup, done)
    await action_setup.setup.database.run(
        undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, None, action_setup.setup.clock())
    )
    return undo.id


def chain(*done: Waiting) -> undos.UndoChain:
    return undos.UndoChain(CATALOGUE, done[0].account_id, tuple(each.id for each in done))


async def ask(action_setup: ActionSetup, done: Waiting, database: Database | None = None) -> undos.RequestedUndo:
    asking = undos.request_undo(chain(done), signed(), action_setup.setup.clock())
    return await (database or action_setup.setup.database).run(asking)


async def queued(action_setup: ActionSetup) -> list[JobView]:
    return await action_setup.setup.database.run(jobs.list_jobs(state="queued", type="undo.action"))


async def found(action_setup: ActionSetup, most: int = 100, **which: Any) -> list[UUID]:
    return [each.id for each in await action_setup.setup.database.run(undos.undoable(most, **which))]


# beginning


async def test_an_undo_is_recorded_before_anything_is_changed(action_setup: ActionSetup) -> None:
    done = await action_setup.completed("trash")
    undo, _ = await begin(action_setup, done)
    assert undo.original.id == done.id
    view = await action_setup.view(undo.id)
    assert (view.state, view.actor, view.action_type, view.decision_id) == ("executing", "undo", "restore", None)
    assert view.parameters == {"undo_of": str(done.id)}
    assert (await action_setup.view(done.id)).undone == "executing"


async def test_the_next_attempt_of_a_job_finds_the_undo_that_it_began(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    undo, _ = await begin(action_setup, done)
    await action_setup.setup.rescue_all()
    again, _ = await begin(action_setup, done, await action_setup.setup.claim_one())
    assert again.id == undo.id
    assert len(await action_setup.views()) == 2


async def test_while_one_job_undoes_an_action_another_may_not(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    await begin(action_setup, done)
    job = await action_setup.setup.claimed()
    before = await dump(action_setup.setup.database)
    with pytest.raises(Fatal, match="another undo runs"):
        await begin(action_setup, done, job)
    assert await dump(action_setup.setup.database) == before


async def test_an_action_is_undone_once(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    await undone(action_setup, done)
    job, now = await action_setup.setup.claimed(), action_setup.setup.clock()
    assert await action_setup.setup.database.run(undos.begin_undo(job, done.id, done.account_id, new_id(), now)) is None
    assert (await action_setup.view(done.id)).undone == "completed"


@pytest.mark.parametrize("end", ["failed", "canceled"])
async def test_an_undo_that_did_not_succeed_is_tried_again_by_another_job_under_the_same_link(
    action_setup: ActionSetup, end: str
) -> None:
    done = await action_setup.completed()
    undo, job = await begin(action_setup, done)
    if end == "failed":
        await action_setup.setup.database.run(
            actions.fail_action(job, undo.id, "Gmail is away", action_setup.setup.clock())
        )
        await action_setup.setup.fail(job)
    else:
        await action_setup.setup.cancel_claimed(job)
        assert await action_setup.setup.database.run(actions.end_orphans(action_setup.setup.clock())) == 1
    assert (await action_setup.view(done.id)).undone == end
    again, _ = await begin(action_setup, done)
    assert again.id == undo.id
    view = await action_setup.view(undo.id)
    assert (view.state, view.error) == ("executing", None)
    assert len(await action_setup.views()) == 2


async def test_of_jobs_that_undo_the_same_action_at_once_one_wins(
    action_setup: ActionSetup, second_database: Database
) -> None:
    for _ in range(5):
        done = await action_setup.completed()
        rivals = [await action_setup.setup.claimed() for _ in range(2)]
        now = action_setup.setup.clock()
        answers = await asyncio.gather(
            *(
                database.run(undos.begin_undo(job, done.id, done.account_id, new_id(), now))
                for job, database in zip(rivals, (action_setup.setup.database, second_database), strict=True)
            ),
            return_exceptions=True,
        )
        (winner,) = [answer for answer in answers if isinstance(answer, undos.Undo)]
        (loser,) = [answer for answer in answers if isinstance(answer, Fatal)]
        assert "another undo runs" in str(loser)
        assert await action_setup.state(winner.id) == "executing"
        await action_setup.setup.finish(*rivals)


async def test_an_action_of_another_account_is_not_undone(action_setup: ActionSetup) -> None:
    done, other = await action_setup.completed(), await action_setup.completed(endpoint=OTHERS)
    with pytest.raises(Fatal, match="belongs to another account"):
        await begin(action_setup, done._replace(account_id=other.account_id))
    assert (await action_setup.view(done.id)).undone is None


async def _unknown(action_setup: ActionSetup) -> Waiting:
    return (await action_setup.completed())._replace(id=new_id())


async def _under_way(action_setup: ActionSetup) -> Waiting:
    return await action_setup.begun()


async def _failed(action_setup: ActionSetup) -> Waiting:
    begun = await action_setup.begun()
    await action_setup.fail(begun)
    return begun


async def _without_effect(action_setup: ActionSetup) -> Waiting:
    return await action_setup.completed("star", before=frozenset({"STARRED"}))


async def _for_good(action_setup: ActionSetup) -> Waiting:
    begun = await action_setup.begun("delete")
    hint = irreversible_hint("delete")
    await action_setup.setup.database.run(
        actions.complete_action(begun.job, begun.id, actions.DoneChange(None, hint), action_setup.setup.clock())
    )
    return begun


async def _an_undo(action_setup: ActionSetup) -> Waiting:
    done = await action_setup.completed()
    return done._replace(id=await undone(action_setup, done))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_unknown, "there is no action"),
        (_under_way, "it is executing"),
        (_failed, "it is failed"),
        (_without_effect, "changed nothing"),
        (_for_good, "delete cannot be undone"),
        (_an_undo, "cannot be undone"),
    ],
)
async def test_what_cannot_be_undone_is_refused_with_the_reason_and_nothing_is_found_of_it(
    action_setup: ActionSetup, make: Callable[[ActionSetup], Awaitable[Waiting]], reason: str
) -> None:
    what = await make(action_setup)
    job = await action_setup.setup.claimed()
    before = await dump(action_setup.setup.database)
    with pytest.raises(Fatal, match=reason):
        await begin(action_setup, what, job)
    assert await dump(action_setup.setup.database) == before
    assert what.id not in await found(action_setup)


async def test_while_a_pause_stands_nothing_is_undone(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    await action_setup.setup.database.run(pauses.pause(pauses.ALL, "to look", signed(), action_setup.setup.clock()))
    with pytest.raises(Parked):
        await begin(action_setup, done)
    assert (await action_setup.view(done.id)).undone is None


async def test_an_undo_whose_job_was_canceled_does_not_begin(action_setup: ActionSetup) -> None:
    done, job = await action_setup.completed(), await action_setup.setup.claimed()
    await action_setup.setup.cancel(job.id)
    with pytest.raises(Canceled):
        await begin(action_setup, done, job)


# ending


async def test_an_undo_its_message_and_its_job_end_together_and_the_next_is_enqueued(action_setup: ActionSetup) -> None:
    done = await action_setup.completed("mark_read")
    undo, job = await begin(action_setup, done)
    older, now = chain(done._replace(id=new_id())), action_setup.setup.clock.forward(1)
    await action_setup.setup.database.run(undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, older, now))
    view = await action_setup.view(undo.id)
    assert (view.state, view.executed_at, view.undo_hint) == ("completed", now, PUT_BACK)
    assert await action_setup.setup.state(job.id) == "completed"
    assert [each.idempotency_key for each in await queued(action_setup)] == [older.job().key]
    message = await action_setup.setup.database.run(mail.load_message(done.message_id))
    assert message.facts.labels == ARRIVED


async def test_a_worker_that_was_taken_for_dead_changes_nothing_of_its_undo(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    undo, stale = await begin(action_setup, done)
    await action_setup.setup.rescue_all()
    await begin(action_setup, done, await action_setup.setup.claim_one())
    before, now = await dump(action_setup.setup.database), action_setup.setup.clock()
    acts: list[Transaction[Any]] = [
        undos.begin_undo(stale, done.id, done.account_id, new_id(), now),
        undos.complete_undo(stale, undo.id, ARRIVED, PUT_BACK, chain(done), now),
        actions.keep_pre_image(stale, undo.id, {"labels": sorted(ARRIVED)}, now),
        actions.fail_action(stale, undo.id, "late", now),
    ]
    for act in acts:
        with pytest.raises(LeaseLost):
            await action_setup.setup.database.run(act)
    assert await dump(action_setup.setup.database) == before


async def test_the_waking_of_snoozed_mail_is_canceled_in_every_state_in_which_it_still_can_be(
    action_setup: ActionSetup,
) -> None:
    setup = action_setup.setup

    async def undone_with(wake: UUID) -> None:
        undo, job = await begin(action_setup, await action_setup.completed())
        await setup.database.run(undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, None, setup.clock(), wake))
        assert await action_setup.state(undo.id) == "completed"

    asleep = await setup.enqueue(not_before=setup.clock() + timedelta(hours=2))
    await undone_with(asleep.id)
    assert await setup.state(asleep.id) == "canceled"
    running = await setup.claimed()
    await undone_with(running.id)
    assert (await setup.show(running.id)).cancel_requested
    await setup.finish(running)
    await undone_with(running.id)
    assert await setup.state(running.id) == "completed"
    await undone_with(asleep.id)
    await undone_with(new_id())


async def test_an_undo_and_the_waking_that_it_cancels_end_at_once_without_waiting_for_each_other(
    action_setup: ActionSetup, second_database: Database
) -> None:
    for _ in range(5):
        done = await action_setup.completed()
        undo, job = await begin(action_setup, done)
        waking, now = await action_setup.setup.claimed(), action_setup.setup.clock()
        await asyncio.gather(
            action_setup.setup.database.run(undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, None, now, waking.id)),
            second_database.run(actions.end_woken(waking, done.message_id, ARRIVED, now)),
        )
        assert await action_setup.setup.state(waking.id) == "completed"


# requests


async def test_whoever_asks_first_has_the_key_and_everyone_else_gets_the_same_job(
    action_setup: ActionSetup, second_database: Database
) -> None:
    done = await action_setup.completed()
    databases = [action_setup.setup.database, second_database] * 2
    answers = await asyncio.gather(*(ask(action_setup, done, database) for database in databases))
    (job,) = await queued(action_setup)
    assert answers == [(job.id, "queued")] * 4
    assert job.idempotency_key == f"undo.action:{done.account_id}:{done.id}"
    assert json.loads(job.payload_json) == {"account_id": str(done.account_id), "original_action_id": str(done.id)}
    entries = [each for each in await action_setup.setup.database.run(list_audit(10)) if each.action == "action.undo"]
    assert len(entries) == 1


async def test_an_undo_that_is_asked_for_again_in_any_state_is_the_same_undo(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    first = await ask(action_setup, done)
    undo, job = await begin(action_setup, done, await action_setup.setup.claim_one())
    assert await ask(action_setup, done) == (first.job_id, "executing")
    ending = undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, None, action_setup.setup.clock())
    await action_setup.setup.database.run(ending)
    assert await ask(action_setup, done) == (first.job_id, "completed")
    assert await queued(action_setup) == []


async def test_an_undo_that_failed_is_asked_for_again_under_the_same_key_and_link(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    first = await ask(action_setup, done)
    undo, job = await begin(action_setup, done, await action_setup.setup.claim_one())
    await action_setup.setup.database.run(actions.fail_action(job, undo.id, "away", action_setup.setup.clock()))
    await action_setup.setup.fail(job)
    second = await ask(action_setup, done)
    assert (second.state, second.job_id == first.job_id) == ("queued", False)
    assert (await queued(action_setup))[0].idempotency_key == f"undo.action:{done.account_id}:{done.id}"
    again, _ = await begin(action_setup, done, await action_setup.setup.claim_one())
    assert again.id == undo.id


async def test_an_undo_that_was_canceled_before_it_began_can_be_asked_for_again(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    first = await ask(action_setup, done)
    await action_setup.setup.cancel(first.job_id)
    assert (await ask(action_setup, done)).job_id != first.job_id


async def test_the_cap_of_an_agent_does_not_refuse_a_repeated_request(action_setup: ActionSetup) -> None:
    done, other = await action_setup.completed(), await action_setup.completed()
    now, database = action_setup.setup.clock(), action_setup.setup.database
    first = await database.run(undos.request_undo(chain(done), signed(), now, hourly_cap=1))
    assert await database.run(undos.request_undo(chain(done), signed(), now, hourly_cap=1)) == first
    with pytest.raises(SafetyRefused, match="which is the cap"):
        await database.run(undos.request_undo(chain(other), signed(), now, hourly_cap=1))
    assert [each.id for each in await queued(action_setup)] == [first.job_id]


async def test_the_same_request_to_undo_many_counts_once(action_setup: ActionSetup) -> None:
    first, second, third = [chain(await action_setup.completed()) for _ in range(3)]
    now, run = action_setup.setup.clock(), action_setup.setup.database.run
    assert await run(undos.enqueue_undos([first, second], now)) == 2
    assert await run(undos.enqueue_undos([second, third], now)) == 1


async def test_an_undo_of_many_that_meets_one_under_way_undoes_the_rest_after_it(action_setup: ActionSetup) -> None:
    setup = action_setup.setup
    older = await action_setup.completed()
    setup.clock.forward(1)
    newer = await action_setup.completed("star", after=older)
    first = await ask(action_setup, newer)
    undo, job = await begin(action_setup, newer, await setup.claim_one())
    assert await setup.database.run(undos.enqueue_undos([chain(newer, older)], setup.clock())) == 1
    rest = await setup.claim_one()
    assert rest.payload["original_action_id"] == str(older.id)
    with pytest.raises(Parked, match="is undone first") as parked:
        await begin(action_setup, older, rest)
    await setup.database.run(jobs.park(rest.claim, parked.value.key, "waits", setup.clock()))
    await setup.database.run(undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, None, setup.clock()))
    await begin(action_setup, older, await setup.claim_one())
    assert await ask(action_setup, newer) == (first.job_id, "completed")


async def _no_mailbox(_permit: Permit) -> Mailbox:
    raise Fatal("there is no way to the mailbox")


@pytest.mark.parametrize("obstacle", ["it was undone before", "it cannot be put back"])
async def test_what_was_done_before_is_undone_all_the_same_when_an_undo_fails_or_is_done_already(
    action_setup: ActionSetup, obstacle: str
) -> None:
    older, newer = await action_setup.completed(), await action_setup.completed("star")
    if obstacle == "it was undone before":
        await undone(action_setup, newer)
    payload = {"account_id": str(newer.account_id), "original_action_id": str(newer.id), "then": [str(older.id)]}
    job = await action_setup.setup.claimed(payload=payload)
    handler = UndoAction(UndoService(action_setup.setup.database, CATALOGUE, action_setup.setup.clock), _no_mailbox)
    run = JobRun(job, action_setup.setup.database, action_setup.setup.clock, LASTING)
    if obstacle == "it was undone before":
        await handler(run)
    else:
        with pytest.raises(Fatal):
            await handler(run)
    following = await action_setup.setup.claim_one()
    assert (following.type, following.payload["original_action_id"]) == ("undo.action", str(older.id))
    assert (await action_setup.view(newer.id)).undone == (
        "completed" if obstacle == "it was undone before" else "failed"
    )


# what can be undone


async def test_all_that_was_done_is_found_newest_first_and_no_more_than_asked_for(action_setup: ActionSetup) -> None:
    first = await action_setup.completed()
    action_setup.setup.clock.forward(1)
    second, third = await action_setup.completed("star"), await action_setup.completed("trash")
    newest_first = [*sorted((second.id, third.id), reverse=True), first.id]
    assert await found(action_setup) == newest_first
    assert await found(action_setup, 2) == newest_first[:2]


async def test_what_was_undone_or_is_being_undone_is_not_found_and_what_could_not_be_is(
    action_setup: ActionSetup,
) -> None:
    undone_one, under_way, failed = [await action_setup.completed() for _ in range(3)]
    await undone(action_setup, undone_one)
    await begin(action_setup, under_way)
    undo, job = await begin(action_setup, failed)
    await action_setup.setup.database.run(actions.fail_action(job, undo.id, "no", action_setup.setup.clock()))
    assert await found(action_setup) == [failed.id]


async def test_what_a_rule_a_batch_or_an_account_did_is_found_by_it(action_setup: ActionSetup) -> None:
    rule, batch = "receipts", new_id()
    by_rule = await action_setup.completed(rule_name=rule)
    of_batch = await action_setup.completed(batch_id=batch)
    of_other = await action_setup.completed(endpoint=OTHERS, rule_name=rule)
    assert set(await found(action_setup, rule_name=rule)) == {by_rule.id, of_other.id}
    assert await found(action_setup, batch_id=batch) == [of_batch.id]
    assert await found(action_setup, account_id=of_other.account_id) == [of_other.id]
    assert await found(action_setup, rule_name=rule, account_id=by_rule.account_id) == [by_rule.id]
    assert await found(action_setup, rule_name=rule, batch_id=batch) == []
    assert await action_setup.setup.database.run(undos.has_decided(rule))
    assert not await action_setup.setup.database.run(undos.has_decided("another"))
    (one,) = await action_setup.setup.database.run(undos.undoable(CAP, batch_id=batch))
    assert one == (of_batch.id, of_batch.account_id, of_batch.message_id)


async def test_what_was_done_in_a_time_is_found_with_both_its_ends(action_setup: ActionSetup) -> None:
    done: list[UUID] = []
    for _ in range(3):
        action_setup.setup.clock.forward(60)
        done.append((await action_setup.completed()).id)
    last, minute = action_setup.setup.clock(), timedelta(minutes=1)
    assert await found(action_setup, since=last - minute, until=last) == [done[2], done[1]]
    assert await found(action_setup, since=last - minute, until=last - minute) == [done[1]]
    assert await found(action_setup, until=last - timedelta(seconds=61)) == [done[0]]
    assert await found(action_setup, since=last + timedelta(seconds=1)) == []

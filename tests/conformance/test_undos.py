"""Undoing in the store: an action is undone once, by one job at a time, and only what can be undone is found."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from conformance.action_desk import ARRIVED, CAP, OTHERS, ActionDesk, Waiting
from conformance.desk import Desk
from conformance.dump import dump
from conformance.fault_cases_registry import signed
from postroom.act.undo import UndoService
from postroom.core.actions.permits import Permit
from postroom.core.actions.undo import no_way_back
from postroom.core.errors import Canceled, Fatal, LeaseLost, Parked
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.mailbox import Mailbox
from postroom.handlers.undo_action import UndoAction
from postroom.jobs.run import JobRun
from postroom.store import actions, mail, pauses, undos
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.job_builders import undo_job
from support.gates import LASTING

PUT_BACK = no_way_back("apply_label")


@pytest.fixture
def office(desk: Desk) -> ActionDesk:
    return ActionDesk(desk)


async def begin(office: ActionDesk, done: Waiting, job: Job | None = None) -> tuple[undos.Undo, Job]:
    """By a job of its own, or by this one."""
    job = job or await office.desk.claimed()
    beginning = undos.begin_undo(job, done.id, done.account_id, new_id(), office.desk.clock())
    return await office.desk.database.run(beginning), job


async def undone(office: ActionDesk, done: Waiting) -> UUID:
    undo, job = await begin(office, done)
    await office.desk.database.run(undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, None, office.desk.clock()))
    return undo.id


async def found(office: ActionDesk, most: int = 100, **which: Any) -> list[UUID]:
    return [each.id for each in await office.desk.database.run(undos.undoable(most, **which))]


# beginning


async def test_an_undo_is_recorded_before_anything_is_changed(office: ActionDesk) -> None:
    done = await office.completed("trash")
    undo, _ = await begin(office, done)
    assert undo.original.id == done.id
    view = await office.view(undo.id)
    assert (view.state, view.actor, view.action_type, view.decision_id) == ("executing", "undo", "restore", None)
    assert view.parameters == {"undo_of": str(done.id)}
    assert (await office.view(done.id)).undone == "executing"


async def test_the_next_attempt_of_a_job_finds_the_undo_that_it_began(office: ActionDesk) -> None:
    done = await office.completed()
    undo, _ = await begin(office, done)
    await office.desk.rescue_all()
    again, _ = await begin(office, done, await office.desk.claim_one())
    assert again.id == undo.id
    assert len(await office.views()) == 2


async def test_while_one_job_undoes_an_action_another_may_not(office: ActionDesk) -> None:
    done = await office.completed()
    await begin(office, done)
    job = await office.desk.claimed()
    before = await dump(office.desk.database)
    with pytest.raises(Fatal, match="another undo runs"):
        await begin(office, done, job)
    assert await dump(office.desk.database) == before


async def test_an_action_is_undone_once(office: ActionDesk) -> None:
    done = await office.completed()
    await undone(office, done)
    with pytest.raises(Fatal, match="is undone already"):
        await begin(office, done)
    assert (await office.view(done.id)).undone == "completed"


@pytest.mark.parametrize("end", ["failed", "canceled"])
async def test_an_undo_that_did_not_succeed_is_tried_again_by_another_job_under_the_same_link(
    office: ActionDesk, end: str
) -> None:
    done = await office.completed()
    undo, job = await begin(office, done)
    if end == "failed":
        await office.desk.database.run(actions.fail_action(job, undo.id, "Gmail is away", office.desk.clock()))
        await office.desk.fail(job)
    else:
        await office.desk.cancel_claimed(job)
        assert await office.desk.database.run(actions.end_orphans(office.desk.clock())) == 1
    assert (await office.view(done.id)).undone == end
    again, _ = await begin(office, done)
    assert again.id == undo.id
    view = await office.view(undo.id)
    assert (view.state, view.error) == ("executing", None)
    assert len(await office.views()) == 2


async def test_of_jobs_that_undo_the_same_action_at_once_one_wins(
    office: ActionDesk, second_database: Database
) -> None:
    for _ in range(5):
        done = await office.completed()
        rivals = [await office.desk.claimed() for _ in range(2)]
        now = office.desk.clock()
        answers = await asyncio.gather(
            *(
                database.run(undos.begin_undo(job, done.id, done.account_id, new_id(), now))
                for job, database in zip(rivals, (office.desk.database, second_database), strict=True)
            ),
            return_exceptions=True,
        )
        (winner,) = [answer for answer in answers if isinstance(answer, undos.Undo)]
        (loser,) = [answer for answer in answers if isinstance(answer, Fatal)]
        assert "another undo runs" in str(loser)
        assert await office.state(winner.id) == "executing"
        await office.desk.finish(*rivals)


async def test_an_action_of_another_account_is_not_undone(office: ActionDesk) -> None:
    done, other = await office.completed(), await office.completed(endpoint=OTHERS)
    with pytest.raises(Fatal, match="belongs to another account"):
        await begin(office, done._replace(account_id=other.account_id))
    assert (await office.view(done.id)).undone is None


async def _unknown(office: ActionDesk) -> Waiting:
    return (await office.completed())._replace(id=new_id())


async def _under_way(office: ActionDesk) -> Waiting:
    return await office.begun()


async def _failed(office: ActionDesk) -> Waiting:
    begun = await office.begun()
    await office.fail(begun)
    return begun


async def _without_effect(office: ActionDesk) -> Waiting:
    return await office.completed("star", before=frozenset({"STARRED"}))


async def _for_good(office: ActionDesk) -> Waiting:
    begun = await office.begun("delete")
    hint = no_way_back("delete")
    await office.desk.database.run(actions.complete_action(begun.job, begun.id, None, hint, office.desk.clock()))
    return begun


async def _an_undo(office: ActionDesk) -> Waiting:
    done = await office.completed()
    return done._replace(id=await undone(office, done))


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
    office: ActionDesk, make: Callable[[ActionDesk], Awaitable[Waiting]], reason: str
) -> None:
    what = await make(office)
    job = await office.desk.claimed()
    before = await dump(office.desk.database)
    with pytest.raises(Fatal, match=reason):
        await begin(office, what, job)
    assert await dump(office.desk.database) == before
    assert what.id not in await found(office)


async def test_while_a_pause_stands_nothing_is_undone(office: ActionDesk) -> None:
    done = await office.completed()
    await office.desk.database.run(pauses.pause(pauses.ALL, "to look", signed(), office.desk.clock()))
    with pytest.raises(Parked):
        await begin(office, done)
    assert (await office.view(done.id)).undone is None


async def test_an_undo_whose_job_was_canceled_does_not_begin(office: ActionDesk) -> None:
    done, job = await office.completed(), await office.desk.claimed()
    await office.desk.cancel(job.id)
    with pytest.raises(Canceled):
        await begin(office, done, job)


# ending


async def test_an_undo_its_message_and_its_job_end_together_and_the_next_is_enqueued(office: ActionDesk) -> None:
    done = await office.completed("mark_read")
    undo, job = await begin(office, done)
    older, now = office.desk.new(), office.desk.clock.forward(1)
    await office.desk.database.run(undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, older, now))
    view = await office.view(undo.id)
    assert (view.state, view.executed_at, view.undo_hint) == ("completed", now, PUT_BACK)
    assert await office.desk.state(job.id) == "completed"
    assert await office.desk.state(older.id) == "queued"
    message = await office.desk.database.run(mail.load_message(done.message_id))
    assert message.subject.labels == ARRIVED


async def test_a_worker_that_was_taken_for_dead_changes_nothing_of_its_undo(office: ActionDesk) -> None:
    done = await office.completed()
    undo, stale = await begin(office, done)
    await office.desk.rescue_all()
    await begin(office, done, await office.desk.claim_one())
    before, now = await dump(office.desk.database), office.desk.clock()
    acts: list[Transaction[Any]] = [
        undos.begin_undo(stale, done.id, done.account_id, new_id(), now),
        undos.complete_undo(stale, undo.id, ARRIVED, PUT_BACK, office.desk.new(), now),
        actions.keep_pre_image(stale, undo.id, ARRIVED, now),
        actions.fail_action(stale, undo.id, "late", now),
    ]
    for act in acts:
        with pytest.raises(LeaseLost):
            await office.desk.database.run(act)
    assert await dump(office.desk.database) == before


async def test_the_waking_of_snoozed_mail_is_canceled_in_every_state_in_which_it_still_can_be(
    office: ActionDesk,
) -> None:
    desk = office.desk

    async def undone_with(wake: UUID) -> None:
        undo, job = await begin(office, await office.completed())
        await desk.database.run(undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, None, desk.clock(), wake))
        assert await office.state(undo.id) == "completed"

    asleep = await desk.enqueue(not_before=desk.clock() + timedelta(hours=2))
    await undone_with(asleep.id)
    assert await desk.state(asleep.id) == "canceled"
    running = await desk.claimed()
    await undone_with(running.id)
    assert (await desk.show(running.id)).cancel_requested
    await desk.finish(running)
    await undone_with(running.id)
    assert await desk.state(running.id) == "completed"
    await undone_with(asleep.id)
    await undone_with(new_id())


async def test_an_undo_and_the_waking_that_it_cancels_end_at_once_without_waiting_for_each_other(
    office: ActionDesk, second_database: Database
) -> None:
    for _ in range(5):
        done = await office.completed()
        undo, job = await begin(office, done)
        waking, now = await office.desk.claimed(), office.desk.clock()
        await asyncio.gather(
            office.desk.database.run(undos.complete_undo(job, undo.id, ARRIVED, PUT_BACK, None, now, waking.id)),
            second_database.run(actions.end_awakened(waking, done.message_id, ARRIVED, now)),
        )
        assert await office.desk.state(waking.id) == "completed"


async def test_an_undo_that_was_canceled_before_it_began_can_be_asked_for_again(office: ActionDesk) -> None:
    done, now = await office.completed(), office.desk.clock()

    async def ask() -> tuple[UUID, bool]:
        job = undo_job(CATALOGUE, done.account_id, (done.id,))
        return job.id, await office.desk.database.run(undos.enqueue_undo(job, done.id, signed(), now))

    first, is_new = await ask()
    assert is_new
    assert not (await ask())[1], "it lives, and stands for both"
    await office.desk.cancel(first)
    assert (await ask())[1]


async def test_the_same_wish_to_undo_counts_once(desk: Desk) -> None:
    jobs = [desk.new(key="undo 1"), desk.new(key="undo 2")]
    assert await desk.database.run(undos.enqueue_undos(jobs, desk.clock())) == 2
    again = [desk.new(key="undo 2"), desk.new(key="undo 3")]
    assert await desk.database.run(undos.enqueue_undos(again, desk.clock())) == 1


def _no_mailbox(_permit: Permit) -> Mailbox:
    raise Fatal("there is no way to the mailbox")


@pytest.mark.parametrize("obstacle", ["it was undone before", "it cannot be put back"])
async def test_what_was_done_before_is_undone_all_the_same_when_an_undo_fails_for_good(
    office: ActionDesk, obstacle: str
) -> None:
    older, newer = await office.completed(), await office.completed("star")
    if obstacle == "it was undone before":
        await undone(office, newer)
    payload = {"account_id": str(newer.account_id), "original_action_id": str(newer.id), "then": [str(older.id)]}
    job = await office.desk.claimed(payload=payload)
    handler = UndoAction(UndoService(office.desk.database, CATALOGUE, office.desk.clock), _no_mailbox)
    with pytest.raises(Fatal):
        await handler(JobRun(job, office.desk.database, office.desk.clock, LASTING))
    following = await office.desk.claim_one()
    assert (following.type, following.payload["original_action_id"]) == ("undo.action", str(older.id))
    assert (await office.view(newer.id)).undone == ("completed" if obstacle == "it was undone before" else "failed")


# what can be undone


async def test_all_that_was_done_is_found_newest_first_and_no_more_than_asked_for(office: ActionDesk) -> None:
    first = await office.completed()
    office.desk.clock.forward(1)
    second, third = await office.completed("star"), await office.completed("trash")
    newest_first = [*sorted((second.id, third.id), reverse=True), first.id]
    assert await found(office) == newest_first
    assert await found(office, 2) == newest_first[:2]


async def test_what_was_undone_or_is_being_undone_is_not_found_and_what_could_not_be_is(office: ActionDesk) -> None:
    undone_one, under_way, failed = [await office.completed() for _ in range(3)]
    await undone(office, undone_one)
    await begin(office, under_way)
    undo, job = await begin(office, failed)
    await office.desk.database.run(actions.fail_action(job, undo.id, "no", office.desk.clock()))
    assert await found(office) == [failed.id]


async def test_what_a_rule_a_batch_or_an_account_did_is_found_by_it(office: ActionDesk) -> None:
    rule, batch = "receipts", new_id()
    by_rule = await office.completed(rule_name=rule)
    of_batch = await office.completed(batch_id=batch)
    of_other = await office.completed(endpoint=OTHERS, rule_name=rule)
    assert set(await found(office, rule_name=rule)) == {by_rule.id, of_other.id}
    assert await found(office, batch_id=batch) == [of_batch.id]
    assert await found(office, account_id=of_other.account_id) == [of_other.id]
    assert await found(office, rule_name=rule, account_id=by_rule.account_id) == [by_rule.id]
    assert await found(office, rule_name=rule, batch_id=batch) == []
    assert await office.desk.database.run(undos.has_decided(rule))
    assert not await office.desk.database.run(undos.has_decided("another"))
    (one,) = await office.desk.database.run(undos.undoable(CAP, batch_id=batch))
    assert one == (of_batch.id, of_batch.account_id, of_batch.message_id)


async def test_what_was_done_in_a_time_is_found_with_both_its_ends(office: ActionDesk) -> None:
    done: list[UUID] = []
    for _ in range(3):
        office.desk.clock.forward(60)
        done.append((await office.completed()).id)
    last, minute = office.desk.clock(), timedelta(minutes=1)
    assert await found(office, since=last - minute, until=last) == [done[2], done[1]]
    assert await found(office, since=last - minute, until=last - minute) == [done[1]]
    assert await found(office, until=last - timedelta(seconds=61)) == [done[0]]
    assert await found(office, since=last + timedelta(seconds=1)) == []

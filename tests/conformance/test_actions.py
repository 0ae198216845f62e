"""Actions in the store: who may begin one, what is recorded, how it ends, and stale workers."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from postroom.core.actions.action import ActionType
from postroom.core.actions.undo import irreversible_hint
from postroom.core.errors import Canceled, Fatal, LeaseLost, Parked
from postroom.jobs.run import JobRun
from postroom.store.actions import actions, pauses
from postroom.store.actions.protection import restraints
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail import mail
from postroom.triage.handlers.action_gmail import is_the_end
from support.gates import LASTING
from support.store.action_setup import ARRIVED, CAP, OTHERS, ActionSetup, Waiting
from support.store.dump import dump
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

HOUR_S = 3600.0


@pytest.fixture
def action_setup(setup: JobSetup) -> ActionSetup:
    return ActionSetup(setup)


async def irreversible(action_setup: ActionSetup, waiting: Waiting) -> int:
    found = await action_setup.setup.database.run(restraints(waiting.account_id, action_setup.setup.clock()))
    return found.irreversible_this_hour


# beginning


async def test_an_action_is_begun_by_its_own_job_alone(action_setup: ActionSetup) -> None:
    waiting = await action_setup.waiting()
    with pytest.raises(Fatal, match="belongs to another job"):
        await action_setup.begin(waiting, await action_setup.setup.claimed())
    assert await action_setup.state(waiting.id) == "queued"
    await action_setup.begin(waiting)
    assert await action_setup.state(waiting.id) == "executing"


async def test_an_action_that_is_not_there_is_not_begun(action_setup: ActionSetup) -> None:
    job = await action_setup.setup.claimed()
    with pytest.raises(Fatal, match="not waiting to be executed"):
        await action_setup.setup.database.run(actions.begin_action(job, new_id(), CAP, action_setup.setup.clock()))


async def test_the_next_attempt_of_a_job_goes_on_with_its_action(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun()
    await action_setup.setup.rescue_all()
    await action_setup.begin(begun, await action_setup.setup.claim_one())
    assert await action_setup.state(begun.id) == "executing"


async def test_an_action_that_failed_is_begun_again_when_its_job_is_retried(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun()
    await action_setup.fail(begun, "refused")
    await action_setup.setup.retry(begun.job.id)
    await action_setup.begin(begun, await action_setup.setup.claim_one())
    view = await action_setup.view(begun.id)
    assert (view.state, view.error) == ("executing", None)


async def test_an_action_that_was_canceled_is_begun_again_when_its_job_is_retried(action_setup: ActionSetup) -> None:
    waiting = await action_setup.waiting()
    await action_setup.setup.cancel_claimed(waiting.job)
    await action_setup.setup.database.run(actions.end_orphans(action_setup.setup.clock()))
    assert await action_setup.state(waiting.id) == "canceled"
    await action_setup.setup.retry(waiting.job.id)
    await action_setup.begin(waiting, await action_setup.setup.claim_one())
    assert await action_setup.state(waiting.id) == "executing"


async def test_a_completed_action_is_not_begun_again_even_by_its_own_job(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    job = await action_setup.setup.claimed()
    before = await action_setup.view(done.id)
    with pytest.raises(Fatal):
        await action_setup.begin(done, job._replace(id=done.job.id))
    assert await action_setup.view(done.id) == before


async def test_an_action_of_a_canceled_job_is_not_begun(action_setup: ActionSetup) -> None:
    waiting = await action_setup.waiting()
    await action_setup.setup.cancel(waiting.job.id)
    with pytest.raises(Canceled):
        await action_setup.begin(waiting)
    assert await action_setup.state(waiting.id) == "queued"


async def test_a_job_that_was_canceled_in_its_last_attempt_does_not_fail_its_action(action_setup: ActionSetup) -> None:
    waiting = await action_setup.waiting(max_attempts=1)
    run = JobRun(waiting.job, action_setup.setup.database, action_setup.setup.clock, LASTING)
    assert not is_the_end(run, Canceled("on request"))
    assert not is_the_end(run, Parked("pause:all", "paused"))
    assert is_the_end(run, Fatal("no"))


@pytest.mark.parametrize("scope", ["all", "account"])
async def test_while_a_pause_stands_nothing_begins_and_nothing_that_has_begun_goes_on(
    action_setup: ActionSetup, scope: str
) -> None:
    waiting, begun = await action_setup.waiting(), await action_setup.begun()
    named = pauses.ALL if scope == "all" else str(waiting.account_id)
    await action_setup.setup.database.run(pauses.pause(named, "to look", signed(), action_setup.setup.clock()))
    with pytest.raises(Parked, match="to look") as parked:
        await action_setup.begin(waiting)
    assert parked.value.key == f"pause:{named}"
    assert await action_setup.state(waiting.id) == "queued"
    with pytest.raises(Parked, match="to look"):
        await action_setup.setup.database.run(
            actions.keep_pre_image(begun.job, begun.id, {"labels": sorted(ARRIVED)}, action_setup.setup.clock())
        )


async def test_the_pause_of_one_account_does_not_hold_up_another(action_setup: ActionSetup) -> None:
    waiting, other = await action_setup.waiting(), await action_setup.waiting(endpoint=OTHERS)
    await action_setup.setup.database.run(pauses.pause(str(other.account_id), "", signed(), action_setup.setup.clock()))
    await action_setup.begin(waiting)
    with pytest.raises(Parked):
        await action_setup.begin(other)


# the hourly cap


@pytest.mark.parametrize("kind", ["delete", "forward", "auto_reply"])
async def test_of_what_cannot_be_undone_no_more_begins_in_an_hour_than_the_cap_allows(
    action_setup: ActionSetup, kind: ActionType
) -> None:
    begun = [await action_setup.begun(kind) for _ in range(CAP)]
    one_more, harmless = await action_setup.waiting(kind), await action_setup.waiting("trash")
    with pytest.raises(Parked, match="within the hour") as parked:
        await action_setup.begin(one_more)
    assert parked.value.key == f"cap:{one_more.account_id}"
    assert await action_setup.state(one_more.id) == "queued"
    await action_setup.begin(harmless)
    await action_setup.begin(begun[0])  # what has begun goes on
    other = await action_setup.waiting(kind, endpoint=OTHERS)
    await action_setup.begin(other)
    action_setup.setup.clock.forward(HOUR_S)
    await action_setup.begin(one_more)


async def test_the_hour_counts_from_the_first_attempt(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun("delete")
    action_setup.setup.clock.forward(HOUR_S - 1)
    await action_setup.begin(begun)
    assert await irreversible(action_setup, begun) == 1
    action_setup.setup.clock.forward(1)
    assert await irreversible(action_setup, begun) == 0


async def test_of_two_that_begin_at_once_only_one_is_the_last_that_the_cap_allows(
    action_setup: ActionSetup, second_database: Database
) -> None:
    for _ in range(3):
        for _ in range(CAP - 1):
            await action_setup.begun("delete")
        both = [await action_setup.waiting("delete") for _ in range(2)]
        now = action_setup.setup.clock()
        answers = await asyncio.gather(
            *(
                database.run(actions.begin_action(each.job, each.id, CAP, now))
                for each, database in zip(both, (action_setup.setup.database, second_database), strict=True)
            ),
            return_exceptions=True,
        )
        assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "Parked"]
        assert await irreversible(action_setup, both[0]) == CAP
        action_setup.setup.clock.forward(HOUR_S)


async def test_what_waits_for_the_hour_to_pass_goes_on_when_it_has_passed(action_setup: ActionSetup) -> None:
    for _ in range(CAP):
        await action_setup.begun("delete")
    waiting = await action_setup.waiting("delete")
    await action_setup.setup.park(waiting.job, f"cap:{waiting.account_id}")
    release = action_setup.setup.database.run
    assert await release(actions.release_capped(CAP, action_setup.setup.clock())) == 0
    assert await release(actions.release_capped(CAP + 1, action_setup.setup.clock())) == 1, (
        "the user has raised the cap"
    )
    await action_setup.setup.park(await action_setup.setup.claim_one(), f"cap:{waiting.account_id}")
    action_setup.setup.clock.forward(HOUR_S)
    assert await release(actions.release_capped(CAP, action_setup.setup.clock())) == 1
    await action_setup.begin(waiting, await action_setup.setup.claim_one())


# the pre-image


async def test_the_pre_image_is_that_of_the_first_attempt(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun("snooze")
    keep = action_setup.setup.database.run
    first = await keep(
        actions.keep_pre_image(
            begun.job, begun.id, {"labels": sorted(ARRIVED), "snooze_until": "then"}, action_setup.setup.clock()
        )
    )
    assert first == {"labels": ["INBOX", "UNREAD"], "snooze_until": "then"}
    await action_setup.setup.rescue_all()
    job = await action_setup.setup.claim_one()
    await action_setup.begin(begun, job)
    changed = frozenset({"UNREAD"})
    again = await keep(
        actions.keep_pre_image(
            job, begun.id, {"labels": sorted(changed), "snooze_until": "later"}, action_setup.setup.clock()
        )
    )
    assert again == first
    loaded = await keep(actions.load_action(begun.id))
    assert loaded.pre_image == first


async def test_what_must_come_whatever_becomes_of_the_action_is_enqueued_once_with_the_pre_image(
    action_setup: ActionSetup,
) -> None:
    begun, now = await action_setup.begun("snooze"), action_setup.setup.clock()
    wake, late = action_setup.setup.new(), action_setup.setup.new()
    for follow_up in (wake, late):
        await action_setup.setup.database.run(
            actions.keep_pre_image(begun.job, begun.id, {"labels": sorted(ARRIVED)}, now, [follow_up])
        )
    await action_setup.fail(begun, "Gmail is away")
    assert [job.id for job in await action_setup.setup.claim()] == [wake.id]


async def test_a_job_that_was_canceled_learns_it_before_anything_is_changed(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun()
    await action_setup.setup.cancel(begun.job.id)
    with pytest.raises(Canceled):
        await action_setup.setup.database.run(
            actions.keep_pre_image(begun.job, begun.id, {"labels": sorted(ARRIVED)}, action_setup.setup.clock())
        )


# ending


async def test_an_action_its_message_and_its_job_end_together(action_setup: ActionSetup) -> None:
    begun, hint = await action_setup.begun("archive"), irreversible_hint("archive")
    now = action_setup.setup.clock.forward(5)
    await action_setup.setup.database.run(
        actions.complete_action(begun.job, begun.id, actions.DoneChange(frozenset({"UNREAD"}), hint), now)
    )
    view = await action_setup.view(begun.id)
    assert (view.state, view.undo_hint, view.executed_at) == ("completed", hint, now)
    assert await action_setup.setup.state(begun.job.id) == "completed"
    message = await action_setup.setup.database.run(mail.load_message(begun.message_id))
    assert message.facts.labels == {"UNREAD"}


async def test_a_message_that_was_deleted_is_known_to_be_gone(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun("delete")
    hint = irreversible_hint("delete")
    await action_setup.setup.database.run(
        actions.complete_action(begun.job, begun.id, actions.DoneChange(None, hint), action_setup.setup.clock())
    )
    assert (await action_setup.setup.database.run(mail.load_message(begun.message_id))).is_gone


async def test_an_action_that_was_ended_meanwhile_is_not_completed_and_neither_is_its_job(
    action_setup: ActionSetup,
) -> None:
    begun = await action_setup.begun()
    await action_setup.setup.database.run(
        actions.fail_action(begun.job, begun.id, "given up", action_setup.setup.clock())
    )
    with pytest.raises(Fatal, match="was ended while it ran"):
        await action_setup.complete(begun)
    assert await action_setup.state(begun.id) == "failed"
    assert await action_setup.setup.state(begun.job.id) == "running"


async def test_an_action_that_is_handed_over_belongs_to_the_next_job(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun("forward")
    sending = action_setup.setup.new()
    await action_setup.setup.database.run(
        actions.hand_over_action(begun.job, begun.id, sending, action_setup.setup.clock())
    )
    assert await action_setup.setup.state(begun.job.id) == "completed"
    job = await action_setup.setup.claim_one()
    assert job.id == sending.id
    await action_setup.begin(begun, job)
    with pytest.raises(Fatal):
        await action_setup.begin(begun, job._replace(id=begun.job.id))


async def test_an_action_that_was_ended_meanwhile_is_not_handed_over(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun("forward")
    await action_setup.setup.database.run(
        actions.fail_action(begun.job, begun.id, "given up", action_setup.setup.clock())
    )
    sending = action_setup.setup.new()
    with pytest.raises(Fatal, match="was ended"):
        await action_setup.setup.database.run(
            actions.hand_over_action(begun.job, begun.id, sending, action_setup.setup.clock())
        )
    assert await action_setup.setup.state(begun.job.id) == "running"
    assert await action_setup.setup.claim() == []


async def test_a_failed_action_says_why(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun()
    await action_setup.fail(begun, "the message is gone")
    view = await action_setup.view(begun.id)
    assert (view.state, view.error) == ("failed", "the message is gone")


async def test_what_is_completed_does_not_fail_afterwards(action_setup: ActionSetup) -> None:
    done = await action_setup.completed()
    job = await action_setup.setup.claimed()
    await action_setup.setup.database.run(actions.fail_action(job, done.id, "too late", action_setup.setup.clock()))
    assert await action_setup.state(done.id) == "completed"


Act = Callable[[ActionSetup, Waiting], Awaitable[object]]
FENCED: dict[str, Act] = {
    "begin_action": lambda action_setup, stale: action_setup.begin(stale),
    "keep_pre_image": lambda action_setup, stale: action_setup.setup.database.run(
        actions.keep_pre_image(stale.job, stale.id, {"labels": sorted(ARRIVED)}, action_setup.setup.clock())
    ),
    "complete_action": lambda action_setup, stale: action_setup.complete(stale),
    "hand_over_action": lambda action_setup, stale: action_setup.setup.database.run(
        actions.hand_over_action(stale.job, stale.id, action_setup.setup.new(), action_setup.setup.clock())
    ),
    "fail_action": lambda action_setup, stale: action_setup.setup.database.run(
        actions.fail_action(stale.job, stale.id, "late", action_setup.setup.clock())
    ),
    "end_woken": lambda action_setup, stale: action_setup.setup.database.run(
        actions.end_woken(stale.job, stale.message_id, ARRIVED, action_setup.setup.clock())
    ),
}


@pytest.mark.parametrize("moment", ["rescued", "taken over", "ended by another"])
async def test_a_worker_that_was_taken_for_dead_changes_nothing_of_its_action(
    action_setup: ActionSetup, moment: str
) -> None:
    stale = await action_setup.begun()
    await action_setup.setup.rescue_all()
    if moment != "rescued":
        current = stale._replace(job=await action_setup.setup.claim_one())
        await action_setup.begin(current)
        if moment == "ended by another":
            await action_setup.complete(current)
    before = await dump(action_setup.setup.database)
    for act in FENCED.values():
        with pytest.raises(LeaseLost):
            await act(action_setup, stale)
    assert await dump(action_setup.setup.database) == before


@pytest.mark.parametrize("name", FENCED)
async def test_the_worker_that_owns_the_job_is_not_refused(action_setup: ActionSetup, name: str) -> None:
    begun = await action_setup.begun()
    action_setup.setup.clock.forward(1)
    before = await dump(action_setup.setup.database)
    await FENCED[name](action_setup, begun)
    assert await dump(action_setup.setup.database) != before


# orphans


async def test_an_action_whose_job_was_canceled_is_canceled(action_setup: ActionSetup) -> None:
    waiting = await action_setup.waiting()
    await action_setup.setup.release(waiting.job)
    await action_setup.setup.cancel(waiting.job.id)
    assert await action_setup.setup.database.run(actions.end_orphans(action_setup.setup.clock())) == 1
    view = await action_setup.view(waiting.id)
    assert (view.state, view.error) == ("canceled", "its job was canceled")
    assert await action_setup.setup.database.run(actions.end_orphans(action_setup.setup.clock())) == 0


async def test_an_action_whose_last_worker_died_fails_and_says_so(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun(max_attempts=1)
    await action_setup.setup.rescue_all()
    assert await action_setup.setup.database.run(actions.end_orphans(action_setup.setup.clock())) == 1
    view = await action_setup.view(begun.id)
    assert (view.state, view.error) == ("failed", "the worker died in attempt 1")


async def test_an_action_is_no_orphan_while_its_job_lives_and_one_that_has_ended_stays_as_it_is(
    action_setup: ActionSetup,
) -> None:
    waiting, begun, parked, done = [
        await make() for make in (action_setup.waiting, action_setup.begun, action_setup.begun, action_setup.begun)
    ]
    await action_setup.setup.park(parked.job)
    await action_setup.complete(done)
    failed = await action_setup.begun()
    await action_setup.fail(failed, "its own reason")
    assert await action_setup.setup.database.run(actions.end_orphans(action_setup.setup.clock())) == 0
    states = [await action_setup.state(each.id) for each in (waiting, begun, parked, done, failed)]
    assert states == ["queued", "executing", "executing", "completed", "failed"]
    assert (await action_setup.view(failed.id)).error == "its own reason"

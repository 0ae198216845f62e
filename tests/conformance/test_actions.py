"""Actions in the store: who may begin one, what is kept of it, how it ends, and who is too late."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from conformance.action_desk import ARRIVED, CAP, OTHERS, ActionDesk, Waiting
from conformance.desk import Desk
from conformance.dump import dump
from conformance.fault_cases_registry import signed
from postroom.core.actions.action import ActionType
from postroom.core.actions.undo import no_way_back
from postroom.core.errors import Canceled, Fatal, LeaseLost, Parked
from postroom.handlers.action_gmail import is_the_end
from postroom.jobs.run import JobRun
from postroom.store import actions, mail, pauses
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.protection import restraints
from support.gates import LASTING

HOUR_S = 3600.0


@pytest.fixture
def office(desk: Desk) -> ActionDesk:
    return ActionDesk(desk)


async def irreversible(office: ActionDesk, waiting: Waiting) -> int:
    found = await office.desk.database.run(restraints(waiting.account_id, office.desk.clock()))
    return found.irreversible_this_hour


# beginning


async def test_an_action_is_begun_by_its_own_job_alone(office: ActionDesk) -> None:
    waiting = await office.waiting()
    with pytest.raises(Fatal, match="belongs to another job"):
        await office.begin(waiting, await office.desk.claimed())
    assert await office.state(waiting.id) == "queued"
    await office.begin(waiting)
    assert await office.state(waiting.id) == "executing"


async def test_an_action_that_is_not_there_is_not_begun(office: ActionDesk) -> None:
    job = await office.desk.claimed()
    with pytest.raises(Fatal, match="not waiting to be carried out"):
        await office.desk.database.run(actions.begin_action(job, new_id(), CAP, office.desk.clock()))


async def test_the_next_attempt_of_a_job_goes_on_with_its_action(office: ActionDesk) -> None:
    begun = await office.begun()
    await office.desk.rescue_all()
    await office.begin(begun, await office.desk.claim_one())
    assert await office.state(begun.id) == "executing"


async def test_an_action_that_failed_is_begun_again_when_its_job_is_retried(office: ActionDesk) -> None:
    begun = await office.begun()
    await office.fail(begun, "refused")
    await office.desk.retry(begun.job.id)
    await office.begin(begun, await office.desk.claim_one())
    view = await office.view(begun.id)
    assert (view.state, view.error) == ("executing", None)


async def test_an_action_that_was_canceled_is_begun_again_when_its_job_is_retried(office: ActionDesk) -> None:
    waiting = await office.waiting()
    await office.desk.cancel_claimed(waiting.job)
    await office.desk.database.run(actions.end_orphans(office.desk.clock()))
    assert await office.state(waiting.id) == "canceled"
    await office.desk.retry(waiting.job.id)
    await office.begin(waiting, await office.desk.claim_one())
    assert await office.state(waiting.id) == "executing"


async def test_a_completed_action_is_not_begun_again_even_by_its_own_job(office: ActionDesk) -> None:
    done = await office.completed()
    job = await office.desk.claimed()
    before = await office.view(done.id)
    with pytest.raises(Fatal):
        await office.begin(done, job._replace(id=done.job.id))
    assert await office.view(done.id) == before


async def test_an_action_of_a_canceled_job_is_not_begun(office: ActionDesk) -> None:
    waiting = await office.waiting()
    await office.desk.cancel(waiting.job.id)
    with pytest.raises(Canceled):
        await office.begin(waiting)
    assert await office.state(waiting.id) == "queued"


async def test_a_job_that_was_canceled_in_its_last_attempt_does_not_fail_its_action(office: ActionDesk) -> None:
    waiting = await office.waiting(max_attempts=1)
    run = JobRun(waiting.job, office.desk.database, office.desk.clock, LASTING)
    assert not is_the_end(run, Canceled("on request"))
    assert not is_the_end(run, Parked("pause:all", "paused"))
    assert is_the_end(run, Fatal("no"))


@pytest.mark.parametrize("scope", ["all", "account"])
async def test_while_a_pause_stands_nothing_begins_and_nothing_that_has_begun_goes_on(
    office: ActionDesk, scope: str
) -> None:
    waiting, begun = await office.waiting(), await office.begun()
    named = pauses.ALL if scope == "all" else str(waiting.account_id)
    await office.desk.database.run(pauses.pause(named, "to look", signed(), office.desk.clock()))
    with pytest.raises(Parked, match="to look") as parked:
        await office.begin(waiting)
    assert parked.value.key == f"pause:{named}"
    assert await office.state(waiting.id) == "queued"
    with pytest.raises(Parked, match="to look"):
        await office.desk.database.run(actions.keep_pre_image(begun.job, begun.id, ARRIVED, office.desk.clock()))


async def test_the_pause_of_one_account_does_not_hold_up_another(office: ActionDesk) -> None:
    waiting, other = await office.waiting(), await office.waiting(endpoint=OTHERS)
    await office.desk.database.run(pauses.pause(str(other.account_id), "", signed(), office.desk.clock()))
    await office.begin(waiting)
    with pytest.raises(Parked):
        await office.begin(other)


# the hourly cap


@pytest.mark.parametrize("kind", ["delete", "forward", "auto_reply"])
async def test_of_what_cannot_be_undone_no_more_begins_in_an_hour_than_the_cap_allows(
    office: ActionDesk, kind: ActionType
) -> None:
    begun = [await office.begun(kind) for _ in range(CAP)]
    one_more, harmless = await office.waiting(kind), await office.waiting("trash")
    with pytest.raises(Parked, match="within the hour") as parked:
        await office.begin(one_more)
    assert parked.value.key == f"cap:{one_more.account_id}"
    assert await office.state(one_more.id) == "queued"
    await office.begin(harmless)
    await office.begin(begun[0])  # what has begun goes on
    other = await office.waiting(kind, endpoint=OTHERS)
    await office.begin(other)
    office.desk.clock.forward(HOUR_S)
    await office.begin(one_more)


async def test_the_hour_counts_from_the_first_attempt(office: ActionDesk) -> None:
    begun = await office.begun("delete")
    office.desk.clock.forward(HOUR_S - 1)
    await office.begin(begun)
    assert await irreversible(office, begun) == 1
    office.desk.clock.forward(1)
    assert await irreversible(office, begun) == 0


async def test_of_two_that_begin_at_once_only_one_is_the_last_that_the_cap_allows(
    office: ActionDesk, second_database: Database
) -> None:
    for _ in range(3):
        for _ in range(CAP - 1):
            await office.begun("delete")
        both = [await office.waiting("delete") for _ in range(2)]
        now = office.desk.clock()
        answers = await asyncio.gather(
            *(
                database.run(actions.begin_action(each.job, each.id, CAP, now))
                for each, database in zip(both, (office.desk.database, second_database), strict=True)
            ),
            return_exceptions=True,
        )
        assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "Parked"]
        assert await irreversible(office, both[0]) == CAP
        office.desk.clock.forward(HOUR_S)


async def test_what_waits_for_the_hour_to_pass_goes_on_when_it_has_passed(office: ActionDesk) -> None:
    for _ in range(CAP):
        await office.begun("delete")
    waiting = await office.waiting("delete")
    await office.desk.park(waiting.job, f"cap:{waiting.account_id}")
    release = office.desk.database.run
    assert await release(actions.release_capped(CAP, office.desk.clock())) == 0
    assert await release(actions.release_capped(CAP + 1, office.desk.clock())) == 1, "the user has raised the cap"
    await office.desk.park(await office.desk.claim_one(), f"cap:{waiting.account_id}")
    office.desk.clock.forward(HOUR_S)
    assert await release(actions.release_capped(CAP, office.desk.clock())) == 1
    await office.begin(waiting, await office.desk.claim_one())


# the pre-image


async def test_the_pre_image_is_that_of_the_first_attempt(office: ActionDesk) -> None:
    begun = await office.begun("snooze")
    keep = office.desk.database.run
    first = await keep(actions.keep_pre_image(begun.job, begun.id, ARRIVED, office.desk.clock(), snooze_until="then"))
    assert first == {"labels": ["INBOX", "UNREAD"], "snooze_until": "then"}
    await office.desk.rescue_all()
    job = await office.desk.claim_one()
    await office.begin(begun, job)
    changed = frozenset({"UNREAD"})
    again = await keep(actions.keep_pre_image(job, begun.id, changed, office.desk.clock(), snooze_until="later"))
    assert again == first
    loaded = await keep(actions.load_action(begun.id))
    assert loaded.pre_image == first


async def test_what_must_come_whatever_becomes_of_the_action_is_enqueued_once_with_the_pre_image(
    office: ActionDesk,
) -> None:
    begun, now = await office.begun("snooze"), office.desk.clock()
    wake, late = office.desk.new(), office.desk.new()
    for follow_up in (wake, late):
        await office.desk.database.run(actions.keep_pre_image(begun.job, begun.id, ARRIVED, now, [follow_up]))
    await office.fail(begun, "Gmail is away")
    assert [job.id for job in await office.desk.claim()] == [wake.id]


async def test_a_job_that_was_canceled_learns_it_before_anything_is_changed(office: ActionDesk) -> None:
    begun = await office.begun()
    await office.desk.cancel(begun.job.id)
    with pytest.raises(Canceled):
        await office.desk.database.run(actions.keep_pre_image(begun.job, begun.id, ARRIVED, office.desk.clock()))


# ending


async def test_an_action_its_message_and_its_job_end_together(office: ActionDesk) -> None:
    begun, hint = await office.begun("archive"), no_way_back("archive")
    now = office.desk.clock.forward(5)
    await office.desk.database.run(actions.complete_action(begun.job, begun.id, frozenset({"UNREAD"}), hint, now))
    view = await office.view(begun.id)
    assert (view.state, view.undo_hint, view.executed_at) == ("completed", hint, now)
    assert await office.desk.state(begun.job.id) == "completed"
    message = await office.desk.database.run(mail.load_message(begun.message_id))
    assert message.subject.labels == {"UNREAD"}


async def test_a_message_that_was_deleted_is_known_to_be_gone(office: ActionDesk) -> None:
    begun = await office.begun("delete")
    hint = no_way_back("delete")
    await office.desk.database.run(actions.complete_action(begun.job, begun.id, None, hint, office.desk.clock()))
    assert (await office.desk.database.run(mail.load_message(begun.message_id))).is_gone


async def test_an_action_that_was_ended_meanwhile_is_not_completed_and_neither_is_its_job(office: ActionDesk) -> None:
    begun = await office.begun()
    await office.desk.database.run(actions.fail_action(begun.job, begun.id, "given up", office.desk.clock()))
    with pytest.raises(Fatal, match="was ended while it was carried out"):
        await office.complete(begun)
    assert await office.state(begun.id) == "failed"
    assert await office.desk.state(begun.job.id) == "running"


async def test_an_action_that_is_handed_over_belongs_to_the_next_job(office: ActionDesk) -> None:
    begun = await office.begun("forward")
    sending = office.desk.new()
    await office.desk.database.run(actions.hand_over_action(begun.job, begun.id, sending, office.desk.clock()))
    assert await office.desk.state(begun.job.id) == "completed"
    job = await office.desk.claim_one()
    assert job.id == sending.id
    await office.begin(begun, job)
    with pytest.raises(Fatal):
        await office.begin(begun, job._replace(id=begun.job.id))


async def test_an_action_that_was_ended_meanwhile_is_not_handed_over(office: ActionDesk) -> None:
    begun = await office.begun("forward")
    await office.desk.database.run(actions.fail_action(begun.job, begun.id, "given up", office.desk.clock()))
    sending = office.desk.new()
    with pytest.raises(Fatal, match="was ended"):
        await office.desk.database.run(actions.hand_over_action(begun.job, begun.id, sending, office.desk.clock()))
    assert await office.desk.state(begun.job.id) == "running"
    assert await office.desk.claim() == []


async def test_a_failed_action_says_why(office: ActionDesk) -> None:
    begun = await office.begun()
    await office.fail(begun, "the message is gone")
    view = await office.view(begun.id)
    assert (view.state, view.error) == ("failed", "the message is gone")


async def test_what_is_completed_does_not_fail_afterwards(office: ActionDesk) -> None:
    done = await office.completed()
    job = await office.desk.claimed()
    await office.desk.database.run(actions.fail_action(job, done.id, "too late", office.desk.clock()))
    assert await office.state(done.id) == "completed"


Act = Callable[[ActionDesk, Waiting], Awaitable[object]]
FENCED: dict[str, Act] = {
    "begin_action": lambda office, stale: office.begin(stale),
    "keep_pre_image": lambda office, stale: office.desk.database.run(
        actions.keep_pre_image(stale.job, stale.id, ARRIVED, office.desk.clock())
    ),
    "complete_action": lambda office, stale: office.complete(stale),
    "hand_over_action": lambda office, stale: office.desk.database.run(
        actions.hand_over_action(stale.job, stale.id, office.desk.new(), office.desk.clock())
    ),
    "fail_action": lambda office, stale: office.desk.database.run(
        actions.fail_action(stale.job, stale.id, "late", office.desk.clock())
    ),
    "end_awakened": lambda office, stale: office.desk.database.run(
        actions.end_awakened(stale.job, stale.message_id, ARRIVED, office.desk.clock())
    ),
}


@pytest.mark.parametrize("moment", ["rescued", "taken over", "ended by another"])
async def test_a_worker_that_was_taken_for_dead_changes_nothing_of_its_action(office: ActionDesk, moment: str) -> None:
    stale = await office.begun()
    await office.desk.rescue_all()
    if moment != "rescued":
        current = stale._replace(job=await office.desk.claim_one())
        await office.begin(current)
        if moment == "ended by another":
            await office.complete(current)
    before = await dump(office.desk.database)
    for act in FENCED.values():
        with pytest.raises(LeaseLost):
            await act(office, stale)
    assert await dump(office.desk.database) == before


@pytest.mark.parametrize("name", FENCED)
async def test_the_worker_that_owns_the_job_is_not_refused(office: ActionDesk, name: str) -> None:
    begun = await office.begun()
    office.desk.clock.forward(1)
    before = await dump(office.desk.database)
    await FENCED[name](office, begun)
    assert await dump(office.desk.database) != before


# orphans


async def test_an_action_whose_job_was_canceled_is_canceled(office: ActionDesk) -> None:
    waiting = await office.waiting()
    await office.desk.release(waiting.job)
    await office.desk.cancel(waiting.job.id)
    assert await office.desk.database.run(actions.end_orphans(office.desk.clock())) == 1
    view = await office.view(waiting.id)
    assert (view.state, view.error) == ("canceled", "its job was canceled")
    assert await office.desk.database.run(actions.end_orphans(office.desk.clock())) == 0


async def test_an_action_whose_last_worker_died_fails_and_says_so(office: ActionDesk) -> None:
    begun = await office.begun(max_attempts=1)
    await office.desk.rescue_all()
    assert await office.desk.database.run(actions.end_orphans(office.desk.clock())) == 1
    view = await office.view(begun.id)
    assert (view.state, view.error) == ("failed", "the worker died in attempt 1")


async def test_an_action_is_no_orphan_while_its_job_lives_and_one_that_has_ended_stays_as_it_is(
    office: ActionDesk,
) -> None:
    waiting, begun, parked, done = [await make() for make in (office.waiting, office.begun, office.begun, office.begun)]
    await office.desk.park(parked.job)
    await office.complete(done)
    failed = await office.begun()
    await office.fail(failed, "its own reason")
    assert await office.desk.database.run(actions.end_orphans(office.desk.clock())) == 0
    states = [await office.state(each.id) for each in (waiting, begun, parked, done, failed)]
    assert states == ["queued", "executing", "executing", "completed", "failed"]
    assert (await office.view(failed.id)).error == "its own reason"

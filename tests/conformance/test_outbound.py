"""Outgoing mail in the store: admitted once, leased by one, ended once, and every change fenced."""

import asyncio
import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from conformance.desk import Desk
from conformance.fault_cases_accounts import connected
from conformance.fault_cases_outbound import (
    DRAFT,
    LEASE,
    NOBODY,
    SENDER,
    admitted,
    doubted,
    lease,
    leased_delivery,
    sending_job,
    stored,
)
from conformance.fault_cases_registry import signed
from postroom.core.errors import Fatal, IllegalMove, LeaseLost, NotFound, Parked
from postroom.core.lifecycle import DELIVERY
from postroom.store import accounts, actions, outbound, outbound_answers, pauses, protection
from postroom.store.audit import list_audit
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.statements import blocks

WEEK = timedelta(days=7)


async def view(desk: Desk) -> outbound.DeliveryView:
    (found,) = await desk.database.run(outbound.list_deliveries(10))
    return found


async def action_of(desk: Desk) -> actions.ActionView:
    return (await desk.database.run(actions.list_actions(1)))[0]


async def test_admission_ends_the_job_and_leaves_the_action_to_the_delivery(desk: Desk) -> None:
    new = await admitted(desk)
    assert (await view(desk)).state == "queued"
    assert (await action_of(desk)).state == "executing"
    assert (await desk.counts()).get("running", 0) == 0
    assert await desk.database.run(outbound.load_mime(new.id)) == new.mime


async def test_a_job_that_was_taken_over_admits_nothing(desk: Desk) -> None:
    job, new = await sending_job(desk)
    await desk.rescue_all()
    with pytest.raises(LeaseLost):
        await desk.database.run(outbound.admit_delivery(job, new, NOBODY, desk.clock()))
    assert await desk.database.run(outbound.list_deliveries(10)) == []


async def test_nothing_is_admitted_while_a_pause_stands(desk: Desk) -> None:
    job, new = await sending_job(desk)
    await desk.database.run(pauses.pause(pauses.ALL, "a look", signed(), desk.clock()))
    with pytest.raises(Parked):
        await desk.database.run(outbound.admit_delivery(job, new, NOBODY, desk.clock()))
    assert await desk.database.run(outbound.list_deliveries(10)) == []


async def test_what_is_protected_by_now_is_canceled_with_the_reason(desk: Desk) -> None:
    job, new = await sending_job(desk)
    await desk.database.run(protection.protect("sender", SENDER, "", signed(), desk.clock()))
    assert await desk.database.run(outbound.admit_delivery(job, new, NOBODY, desk.clock())) is not None
    ended = await action_of(desk)
    assert (ended.state, ended.error) == ("canceled", "the sender is protected")


@pytest.mark.parametrize(("days", "state"), [(6, "canceled"), (8, "executing")])
async def test_a_sender_is_answered_again_only_after_the_period(desk: Desk, days: int, state: str) -> None:
    about = await stored(desk)
    await admitted(desk, about=about)
    now = desk.clock.forward(days * 86_400)
    job, new = await sending_job(desk, about=about)
    await desk.database.run(outbound.admit_delivery(job, new, NOBODY._replace(once_since=now - WEEK), now))
    assert (await action_of(desk)).state == state


async def test_an_answer_that_was_not_sent_does_not_count(desk: Desk) -> None:
    about = await stored(desk)
    await admitted(desk, about=about)
    (leased,) = await lease(desk)
    await desk.database.run(outbound.bounce(leased.hold, "no such address", desk.clock()))
    await admitted(desk, about=about)


@pytest.mark.parametrize("state", ["canceled", "expired"])
async def test_an_answer_that_was_withdrawn_does_not_count(desk: Desk, state: outbound.Withdrawn) -> None:
    about = await stored(desk)
    await admitted(desk, about=about)
    (leased,) = await lease(desk)
    await desk.database.run(outbound.withdraw_delivery(leased.hold, state, "not wanted", desk.clock()))
    await admitted(desk, about=about)


async def test_many_who_answer_one_sender_at_once_are_admitted_once(desk: Desk) -> None:
    about = await stored(desk)
    waiting = [await sending_job(desk, about=about) for _ in range(6)]
    guard = NOBODY._replace(once_since=desk.clock() - WEEK)
    answers = await asyncio.gather(
        *(desk.database.run(outbound.admit_delivery(job, new, guard, desk.clock())) for job, new in waiting)
    )
    assert sum(answer is None for answer in answers) == 1
    await view(desk)


async def test_a_delivery_is_leased_by_one_sender(desk: Desk) -> None:
    about = await stored(desk)
    for number in range(8):
        await admitted(desk, about=about, to=f"b{number}@example.com")
    taken = await asyncio.gather(*(lease(desk, 3) for _ in range(4)))
    ids = [each.id for some in taken for each in some]
    assert len(ids) == len(set(ids)) == 8


async def test_what_a_dead_sender_held_is_leased_again_and_only_the_new_one_may_end_it(desk: Desk) -> None:
    first = await leased_delivery(desk)
    assert await lease(desk) == []
    desk.clock.forward(LEASE.total_seconds() + 1)
    (second,) = await lease(desk)
    assert (second.id, second.attempts) == (first.id, 2)
    stale: list[Transaction[Any]] = [
        outbound.hold_delivery(first.hold, DRAFT, desk.clock(), desk.clock()),
        outbound.renew_delivery(first.hold, None, desk.clock(), desk.clock()),
        outbound.give_back_delivery(first.hold, None, desk.clock()),
        outbound.deliver(first.hold, "18c1", desk.clock()),
        outbound.defer(first.hold, None, desk.clock(), "503", desk.clock()),
        outbound.bounce(first.hold, "refused", desk.clock()),
        outbound.doubt(first.hold, "who knows", desk.clock()),
        outbound.withdraw_delivery(first.hold, "expired", "late", desk.clock()),
    ]
    for each in stale:
        with pytest.raises(LeaseLost):
            await desk.database.run(each)
    assert (await view(desk)).state == "sending"
    await desk.database.run(outbound.deliver(second.hold, "18c1", desk.clock()))


async def test_a_draft_is_remembered_through_whatever_comes(desk: Desk) -> None:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.hold_delivery(leased.hold, DRAFT, desk.clock(), desk.clock() + LEASE))
    await desk.database.run(outbound.defer(leased.hold, None, desk.clock(), "503", desk.clock()))
    (again,) = await lease(desk)
    assert again.draft_id == DRAFT[0]
    assert (await action_of(desk)).error == "503"


async def test_right_before_sending_the_kill_switch_is_read_and_the_draft_kept(desk: Desk) -> None:
    leased = await leased_delivery(desk)
    await desk.database.run(pauses.pause(pauses.ALL, "a look", signed(), desk.clock()))
    with pytest.raises(Parked):
        await desk.database.run(outbound.hold_delivery(leased.hold, DRAFT, desk.clock(), desk.clock() + LEASE))
    await desk.database.run(outbound.give_back_delivery(leased.hold, DRAFT, desk.clock()))
    assert not await desk.database.run(outbound.any_delivery_due(desk.clock()))
    assert await lease(desk) == []
    waiting = await view(desk)
    assert (waiting.state, waiting.draft_id, waiting.paused) == ("queued", DRAFT[0], "a look")
    await desk.database.run(pauses.resume(pauses.ALL, signed(), desk.clock()))
    assert await desk.database.run(outbound.any_delivery_due(desk.clock()))


@pytest.mark.parametrize(("state", "is_leased"), [("paused", False), ("removed", True)])
async def test_mail_of_an_account_that_is_not_used_waits_and_that_of_a_removed_one_is_ended(
    desk: Desk, state: str, is_leased: bool
) -> None:
    about = await stored(desk)
    await admitted(desk, about=about)
    verb = accounts.pause_account if state == "paused" else accounts.remove_account
    await desk.database.run(verb(about.account_id, signed(), desk.clock()))
    leased = await lease(desk)
    assert [each.account_state for each in leased] == (["removed"] if is_leased else [])


async def test_a_removed_account_admits_nothing(desk: Desk) -> None:
    job, new = await sending_job(desk)
    await desk.database.run(accounts.remove_account(new.account_id, signed(), desk.clock()))
    with pytest.raises(Fatal, match="was removed"):
        await desk.database.run(outbound.admit_delivery(job, new, NOBODY, desk.clock()))


async def test_delivery_completes_the_action_with_the_sent_message_and_forgets_the_text(desk: Desk) -> None:
    leased = await leased_delivery(desk, "forward")
    await desk.database.run(outbound.defer(leased.hold, None, desk.clock(), "503", desk.clock()))
    (leased,) = await lease(desk)
    await desk.database.run(outbound.deliver(leased.hold, "18c1", desk.clock()))
    done = await action_of(desk)
    assert (done.state, done.error) == ("completed", None)
    assert done.undo_hint == {
        "action": "forward",
        "inverse_action": "none",
        "irreversible": True,
        "sent_message_id": "18c1",
    }
    with pytest.raises(NotFound):
        await desk.database.run(outbound.load_mime(leased.id))


async def test_what_is_unknown_is_leased_by_nobody_and_settled_by_a_person(desk: Desk) -> None:
    leased = await doubted(desk)
    assert (await action_of(desk)).error, "the action says why it goes on"
    desk.clock.forward(30 * 86_400)
    assert await lease(desk) == []
    with pytest.raises(IllegalMove, match="may have been sent"):
        await desk.database.run(outbound_answers.hasten_delivery(leased.id, signed(), desk.clock()))
    assert (
        await desk.database.run(outbound_answers.resolve_delivery(leased.id, "sent", signed(), desk.clock()))
        == "delivered"
    )
    assert (await action_of(desk)).state == "completed"
    (entry, *_) = await desk.database.run(list_audit(1))
    assert (entry.action, entry.after) == ("outbound.resolve", {"state": "delivered"})
    with pytest.raises(IllegalMove, match="is known"):
        await desk.database.run(outbound_answers.resolve_delivery(leased.id, "not_sent", signed(), desk.clock()))


async def test_what_was_not_sent_after_all_begins_anew_and_remembers_that_it_was_tried(desk: Desk) -> None:
    """By its attempts, and by when it was asked for, the next sender knows to look for it, and how far back."""
    leased = await doubted(desk)
    now = desk.clock.forward(30 * 86_400)
    await desk.database.run(outbound_answers.resolve_delivery(leased.id, "not_sent", signed(), now))
    (again,) = await lease(desk)
    assert (again.draft_id, again.attempts, again.admitted_at) == (None, 2, now)
    assert again.asked_at == leased.asked_at == leased.admitted_at
    assert (await action_of(desk)).error is None


async def test_what_waits_can_be_made_due_and_what_has_ended_cannot(desk: Desk) -> None:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.defer(leased.hold, None, desk.clock() + LEASE, "503", desk.clock()))
    assert await lease(desk) == []
    await desk.database.run(outbound_answers.hasten_delivery(leased.id, signed(), desk.clock()))
    (again,) = await lease(desk)
    await desk.database.run(outbound.bounce(again.hold, "refused", desk.clock()))
    with pytest.raises(IllegalMove, match="is bounced"):
        await desk.database.run(outbound_answers.hasten_delivery(leased.id, signed(), desk.clock()))
    with pytest.raises(NotFound):
        await desk.database.run(outbound.load_delivery(new_id()))


@pytest.mark.parametrize(("state", "action_state"), [("canceled", "canceled"), ("expired", "failed")])
async def test_what_is_withdrawn_ends_its_action(desk: Desk, state: outbound.Withdrawn, action_state: str) -> None:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.withdraw_delivery(leased.hold, state, "too late", desk.clock()))
    ended = await action_of(desk)
    assert ((await view(desk)).state, ended.state, ended.error) == (state, action_state, "too late")
    assert DELIVERY.may("queued", state)


async def test_mail_that_waited_for_an_account_is_due_when_it_is_used_again(desk: Desk) -> None:
    about = await stored(desk)
    await admitted(desk, about=about)
    (leased,) = await lease(desk)
    await desk.database.run(outbound.defer(leased.hold, None, desk.clock() + 24 * LEASE, "no token", desk.clock()))
    await desk.database.run(accounts.pause_account(about.account_id, signed(), desk.clock()))
    assert await lease(desk) == []
    await desk.database.run(accounts.resume_account(about.account_id, signed(), desk.clock()))
    assert [each.id for each in await lease(desk)] == [leased.id]


async def test_mail_of_another_account_waits_on(desk: Desk) -> None:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.defer(leased.hold, None, desk.clock() + LEASE, "503", desk.clock()))
    await connected(desk)
    assert await lease(desk) == []


@pytest.mark.parametrize("name", ["select_leased_deliveries", "delete_auto_reply", "hasten_deliveries"])
def test_what_senders_run_often_looks_through_no_table(migrated_sqlite: Path, name: str) -> None:
    ((text, picks),) = [(each.text, each.picks) for each in blocks("sqlite")[name]]
    count = len(set(re.findall(r"\?(\d+)", text))) if picks is None else len(picks)
    with closing(sqlite3.connect(migrated_sqlite)) as opened:
        plan = [row[3] for row in opened.execute(f"EXPLAIN QUERY PLAN {text}", (None,) * count)]
    assert plan
    assert [step for step in plan if step.startswith("SCAN")] == []

"""Outgoing mail in the store: admitted once, leased by one, ended once, and every change fenced."""

import asyncio
import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import Fatal, IllegalMove, LeaseLost, NotFound, Parked
from postroom.core.lifecycle import DELIVERY
from postroom.store.accounts import accounts
from postroom.store.actions import pauses, protection
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.statements import blocks
from postroom.store.outbound import outbound, outbound_answers, suppressions
from postroom.store.people.audit import list_audit
from support.store.fault_cases_accounts import connected
from support.store.fault_cases_outbound import (
    DRAFT,
    LEASE,
    NOBODY,
    SENDER,
    admitted,
    doubted,
    lease,
    leased_outbound,
    sending_job,
    stored,
)
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.sending import action_of, view

WEEK = timedelta(days=7)


async def test_admission_ends_the_job_and_leaves_the_action_to_the_delivery(setup: JobSetup) -> None:
    new = await admitted(setup)
    assert (await view(setup)).state == "queued"
    assert (await action_of(setup)).state == "executing"
    assert (await setup.counts()).get("running", 0) == 0
    assert await setup.database.run(outbound.load_content(new.id)) == new.content


async def test_a_job_that_was_taken_over_admits_nothing(setup: JobSetup) -> None:
    job, new = await sending_job(setup)
    await setup.rescue_all()
    with pytest.raises(LeaseLost):
        await setup.database.run(outbound.admit_mail(job, new, NOBODY, setup.clock()))
    assert await setup.database.run(outbound.list_mail(10)) == []


async def test_nothing_is_admitted_while_a_pause_stands(setup: JobSetup) -> None:
    job, new = await sending_job(setup)
    await setup.database.run(pauses.pause(pauses.ALL, "a look", signed(), setup.clock()))
    with pytest.raises(Parked):
        await setup.database.run(outbound.admit_mail(job, new, NOBODY, setup.clock()))
    assert await setup.database.run(outbound.list_mail(10)) == []


async def test_what_is_protected_by_now_is_canceled_with_the_reason(setup: JobSetup) -> None:
    job, new = await sending_job(setup)
    await setup.database.run(protection.protect("sender", SENDER, "", signed(), setup.clock()))
    assert await setup.database.run(outbound.admit_mail(job, new, NOBODY, setup.clock())) is not None
    ended = await action_of(setup)
    assert (ended.state, ended.error) == ("canceled", "the sender is protected")


async def test_nothing_is_admitted_to_an_address_that_is_suppressed(setup: JobSetup) -> None:
    job, new = await sending_job(setup)
    await setup.database.run(suppressions.suppress(new.sender.tenant, SENDER.upper(), signed(), setup.clock()))
    await setup.database.run(outbound.admit_mail(job, new, NOBODY, setup.clock()))
    ended = await action_of(setup)
    assert (ended.state, SENDER in str(ended.error)) == ("canceled", True)


@pytest.mark.parametrize(("days", "state"), [(6, "canceled"), (8, "executing")])
async def test_a_sender_is_answered_again_only_after_the_period(setup: JobSetup, days: int, state: str) -> None:
    about = await stored(setup)
    await admitted(setup, about=about)
    now = setup.clock.forward(days * 86_400)
    job, new = await sending_job(setup, about=about)
    await setup.database.run(outbound.admit_mail(job, new, NOBODY._replace(once_since=now - WEEK), now))
    assert (await action_of(setup)).state == state


async def test_an_answer_that_was_not_sent_does_not_count(setup: JobSetup) -> None:
    about = await stored(setup)
    await admitted(setup, about=about)
    (leased,) = await lease(setup)
    await setup.database.run(outbound.bounce(leased.hold, "no such address", setup.clock()))
    await admitted(setup, about=about)


@pytest.mark.parametrize("state", ["canceled", "expired"])
async def test_an_answer_that_was_withdrawn_does_not_count(setup: JobSetup, state: outbound.Withdrawn) -> None:
    about = await stored(setup)
    await admitted(setup, about=about)
    (leased,) = await lease(setup)
    await setup.database.run(outbound.withdraw_mail(leased.hold, state, "not wanted", setup.clock()))
    await admitted(setup, about=about)


async def test_many_who_answer_one_sender_at_once_are_admitted_once(setup: JobSetup) -> None:
    about = await stored(setup)
    waiting = [await sending_job(setup, about=about) for _ in range(6)]
    guard = NOBODY._replace(once_since=setup.clock() - WEEK)
    answers = await asyncio.gather(
        *(setup.database.run(outbound.admit_mail(job, new, guard, setup.clock())) for job, new in waiting)
    )
    assert sum(answer is None for answer in answers) == 1
    await view(setup)


async def test_a_delivery_is_leased_by_one_sender(setup: JobSetup) -> None:
    about = await stored(setup)
    for number in range(8):
        await admitted(setup, about=about, to=f"b{number}@example.com")
    taken = await asyncio.gather(*(lease(setup, 3) for _ in range(4)))
    ids = [each.id for some in taken for each in some]
    assert len(ids) == len(set(ids)) == 8


async def test_what_a_dead_sender_held_is_leased_again_and_only_the_new_one_may_end_it(setup: JobSetup) -> None:
    first = await leased_outbound(setup)
    assert await lease(setup) == []
    setup.clock.forward(LEASE.total_seconds() + 1)
    (second,) = await lease(setup)
    assert (second.id, second.attempts) == (first.id, 2)
    stale: list[Transaction[Any]] = [
        outbound.hold_mail(first.hold, DRAFT, setup.clock(), setup.clock()),
        outbound.renew_mail(first.hold, None, setup.clock(), setup.clock()),
        outbound.give_back_mail(first.hold, None, setup.clock()),
        outbound.deliver(first.hold, "18c1", setup.clock()),
        outbound.defer(first.hold, None, setup.clock(), "503", setup.clock()),
        outbound.bounce(first.hold, "refused", setup.clock()),
        outbound.doubt(first.hold, "who knows", setup.clock()),
        outbound.withdraw_mail(first.hold, "expired", "late", setup.clock()),
    ]
    for each in stale:
        with pytest.raises(LeaseLost):
            await setup.database.run(each)
    assert (await view(setup)).state == "sending"
    await setup.database.run(outbound.deliver(second.hold, "18c1", setup.clock()))


async def test_a_draft_is_remembered_through_whatever_comes(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.hold_mail(leased.hold, DRAFT, setup.clock(), setup.clock() + LEASE))
    await setup.database.run(outbound.defer(leased.hold, None, setup.clock(), "503", setup.clock()))
    (again,) = await lease(setup)
    assert again.draft_id == DRAFT[0]
    assert (await action_of(setup)).error == "503"


async def test_right_before_sending_the_kill_switch_is_read_and_the_draft_kept(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(pauses.pause(pauses.ALL, "a look", signed(), setup.clock()))
    with pytest.raises(Parked):
        await setup.database.run(outbound.hold_mail(leased.hold, DRAFT, setup.clock(), setup.clock() + LEASE))
    await setup.database.run(outbound.give_back_mail(leased.hold, DRAFT, setup.clock()))
    assert not await setup.database.run(outbound.any_mail_due(setup.clock()))
    assert await lease(setup) == []
    waiting = await view(setup)
    assert (waiting.state, waiting.draft_id, waiting.paused) == ("queued", DRAFT[0], "a look")
    await setup.database.run(pauses.resume(pauses.ALL, signed(), setup.clock()))
    assert await setup.database.run(outbound.any_mail_due(setup.clock()))


@pytest.mark.parametrize(("state", "is_leased"), [("paused", False), ("removed", True)])
async def test_mail_of_an_account_that_is_not_used_waits_and_that_of_a_removed_one_is_ended(
    setup: JobSetup, state: str, is_leased: bool
) -> None:
    about = await stored(setup)
    await admitted(setup, about=about)
    verb = accounts.pause_account if state == "paused" else accounts.remove_account
    await setup.database.run(verb(about.account_id, signed(), setup.clock()))
    leased = await lease(setup)
    assert [each.account_state for each in leased] == (["removed"] if is_leased else [])


async def test_a_removed_account_admits_nothing(setup: JobSetup) -> None:
    job, new = await sending_job(setup)
    assert new.account_id is not None
    await setup.database.run(accounts.remove_account(new.account_id, signed(), setup.clock()))
    with pytest.raises(Fatal, match="was removed"):
        await setup.database.run(outbound.admit_mail(job, new, NOBODY, setup.clock()))


async def test_delivery_completes_the_action_with_the_sent_message_and_forgets_the_text(setup: JobSetup) -> None:
    leased = await leased_outbound(setup, "forward")
    await setup.database.run(outbound.defer(leased.hold, None, setup.clock(), "503", setup.clock()))
    (leased,) = await lease(setup)
    await setup.database.run(outbound.deliver(leased.hold, "18c1", setup.clock()))
    done = await action_of(setup)
    assert (done.state, done.error) == ("completed", None)
    assert done.undo_hint == {
        "action": "forward",
        "inverse_action": "none",
        "irreversible": True,
        "sent_message_id": "18c1",
    }
    with pytest.raises(NotFound):
        await setup.database.run(outbound.load_content(leased.id))


async def test_what_is_unknown_is_leased_by_nobody_and_settled_by_a_person(setup: JobSetup) -> None:
    leased = await doubted(setup)
    assert (await action_of(setup)).error, "the action says why it goes on"
    setup.clock.forward(30 * 86_400)
    assert await lease(setup) == []
    with pytest.raises(IllegalMove, match="may have been sent"):
        await setup.database.run(outbound_answers.hasten_mail(leased.id, signed(), setup.clock()))
    assert await setup.database.run(outbound_answers.resolve_mail(leased.id, "sent", signed(), setup.clock())) == "sent"
    assert (await action_of(setup)).state == "completed"
    (entry, *_) = await setup.database.run(list_audit(1))
    assert (entry.action, entry.after) == ("outbound.resolve", {"state": "sent"})
    with pytest.raises(IllegalMove, match="is known"):
        await setup.database.run(outbound_answers.resolve_mail(leased.id, "not_sent", signed(), setup.clock()))


async def test_what_was_not_sent_after_all_begins_again_and_remembers_that_it_was_tried(setup: JobSetup) -> None:
    """By its attempts, and by when it was asked for, the next sender knows to look for it, and how far back."""
    leased = await doubted(setup)
    now = setup.clock.forward(30 * 86_400)
    await setup.database.run(outbound_answers.resolve_mail(leased.id, "not_sent", signed(), now))
    (again,) = await lease(setup)
    assert (again.draft_id, again.attempts, again.admitted_at) == (None, 2, now)
    assert again.asked_at == leased.asked_at == leased.admitted_at
    assert (await action_of(setup)).error is None


async def test_what_waits_can_be_made_due_and_what_has_ended_cannot(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.defer(leased.hold, None, setup.clock() + LEASE, "503", setup.clock()))
    assert await lease(setup) == []
    await setup.database.run(outbound_answers.hasten_mail(leased.id, signed(), setup.clock()))
    (again,) = await lease(setup)
    await setup.database.run(outbound.bounce(again.hold, "refused", setup.clock()))
    with pytest.raises(IllegalMove, match="is bounced"):
        await setup.database.run(outbound_answers.hasten_mail(leased.id, signed(), setup.clock()))
    with pytest.raises(NotFound):
        await setup.database.run(outbound.load_mail(new_id()))


@pytest.mark.parametrize(("state", "action_state"), [("canceled", "canceled"), ("expired", "failed")])
async def test_what_is_withdrawn_ends_its_action(setup: JobSetup, state: outbound.Withdrawn, action_state: str) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.withdraw_mail(leased.hold, state, "too late", setup.clock()))
    ended = await action_of(setup)
    assert ((await view(setup)).state, ended.state, ended.error) == (state, action_state, "too late")
    assert DELIVERY.may("queued", state)


async def test_mail_that_waited_for_an_account_is_due_when_it_is_used_again(setup: JobSetup) -> None:
    about = await stored(setup)
    await admitted(setup, about=about)
    (leased,) = await lease(setup)
    await setup.database.run(outbound.defer(leased.hold, None, setup.clock() + 24 * LEASE, "no token", setup.clock()))
    await setup.database.run(accounts.pause_account(about.account_id, signed(), setup.clock()))
    assert await lease(setup) == []
    await setup.database.run(accounts.resume_account(about.account_id, signed(), setup.clock()))
    assert [each.id for each in await lease(setup)] == [leased.id]


async def test_mail_of_another_account_waits_on(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.defer(leased.hold, None, setup.clock() + LEASE, "503", setup.clock()))
    await connected(setup)
    assert await lease(setup) == []


@pytest.mark.parametrize(
    "name",
    ["select_leased_mail", "lease_recipients", "move_recipients", "delete_auto_reply", "hasten_mail_of_account"],
)
def test_what_senders_run_often_looks_through_no_table(migrated_sqlite: Path, name: str) -> None:
    with closing(sqlite3.connect(migrated_sqlite)) as opened:
        for each in blocks("sqlite")[name]:
            count = len(set(re.findall(r"\?(\d+)", each.text))) if each.picks is None else len(each.picks)
            plan = [row[3] for row in opened.execute(f"EXPLAIN QUERY PLAN {each.text}", (None,) * count)]
            assert plan
            assert [step for step in plan if step.startswith("SCAN")] == []

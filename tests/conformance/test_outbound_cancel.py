"""Mail that a person does not want sent any more: ended at once where that is sure, else by whoever sends."""

from datetime import timedelta

import pytest

from postroom.core.errors import IllegalMove
from postroom.store.outbound import outbound
from postroom.store.outbound.outbound_answers import cancel_mail
from postroom.store.people.audit import list_audit
from support.store.fault_cases_outbound import (
    DRAFT,
    LEASE,
    NOBODY,
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

WHY = "canceled by cli:ada: not to him"


async def canceled(setup: JobSetup) -> str:
    waiting = await view(setup)
    by = signed()._replace(reason="not to him")
    return await setup.database.run(cancel_mail(waiting.id, by, setup.clock()))


async def deferred(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.defer(leased.hold, None, setup.clock() + LEASE, "503", setup.clock()))


@pytest.mark.parametrize("before", ["queued", "deferred"])
async def test_what_waits_without_a_draft_is_canceled_with_its_action_and_audited(setup: JobSetup, before: str) -> None:
    await (admitted(setup) if before == "queued" else deferred(setup))
    assert (await view(setup)).state == before
    assert await canceled(setup) == "canceled"
    ended, action = await view(setup), await action_of(setup)
    assert (ended.state, ended.error) == ("canceled", WHY)
    assert (action.state, action.error) == ("canceled", WHY)
    setup.clock.forward(86_400)
    assert await lease(setup) == []
    (entry, *_) = await setup.database.run(list_audit(1))
    assert (entry.action, entry.object_id, entry.reason) == ("outbound.cancel", str(ended.id), "not to him")
    assert (entry.before, entry.after) == ({"state": before}, {"result": "canceled"})


async def test_an_answer_that_was_canceled_does_not_count(setup: JobSetup) -> None:
    about = await stored(setup)
    await admitted(setup, about=about)
    await canceled(setup)
    await admitted(setup, about=about)


async def test_what_is_unknown_is_canceled_and_says_that_it_may_have_been_sent(setup: JobSetup) -> None:
    await doubted(setup)
    assert await canceled(setup) == "canceled"
    assert ((await view(setup)).state, (await action_of(setup)).state) == ("canceled", "canceled")
    assert (await action_of(setup)).error == f"{WHY}; it may have been sent before"


async def test_an_answer_that_may_have_been_sent_counts_even_when_it_is_canceled(setup: JobSetup) -> None:
    about = await stored(setup)
    await admitted(setup, about=about)
    (leased,) = await lease(setup)
    await setup.database.run(outbound.doubt(leased.hold, "who knows", setup.clock()))
    await canceled(setup)
    job, new = await sending_job(setup, about=about)
    guard = NOBODY._replace(once_since=setup.clock() - timedelta(days=7))
    refused = await setup.database.run(outbound.admit_mail(job, new, guard, setup.clock()))
    assert "was answered on" in (refused or "")


async def test_what_is_being_sent_is_stopped_right_before(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    assert await canceled(setup) == "stopping"
    assert ((await view(setup)).state, (await action_of(setup)).error) == ("sending", WHY)
    now = setup.clock()
    assert await setup.database.run(outbound.hold_mail(leased.hold, DRAFT, now, now + LEASE)) == "ended"


async def test_what_has_a_draft_that_may_have_been_sent_is_left_to_a_sender_at_once(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.defer(leased.hold, DRAFT, setup.clock() + LEASE, "no answer", setup.clock()))
    assert await canceled(setup) == "stopping"
    (again,) = await lease(setup)
    assert again.draft_id == DRAFT[0]


async def test_what_has_ended_cannot_be_canceled(setup: JobSetup) -> None:
    leased = await leased_outbound(setup)
    await setup.database.run(outbound.deliver(leased.hold, "18c1", setup.clock()))
    with pytest.raises(IllegalMove, match="is sent and cannot be canceled"):
        await canceled(setup)
    assert (await action_of(setup)).state == "completed"

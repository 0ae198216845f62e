"""Mail that a person does not want sent any more: ended at once where that is sure, else by whoever sends."""

from datetime import timedelta

import pytest

from conformance.desk import Desk
from conformance.fault_cases_outbound import (
    DRAFT,
    LEASE,
    NOBODY,
    admitted,
    doubted,
    lease,
    leased_delivery,
    sending_job,
    stored,
)
from conformance.fault_cases_registry import signed
from conformance.test_outbound import action_of, view
from postroom.core.errors import IllegalMove
from postroom.store import outbound
from postroom.store.audit import list_audit
from postroom.store.outbound_answers import cancel_delivery

WHY = "canceled by cli:ada: not to him"


async def canceled(desk: Desk) -> str:
    waiting = await view(desk)
    by = signed()._replace(reason="not to him")
    return await desk.database.run(cancel_delivery(waiting.id, by, desk.clock()))


async def deferred(desk: Desk) -> None:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.defer(leased.hold, None, desk.clock() + LEASE, "503", desk.clock()))


@pytest.mark.parametrize("before", ["queued", "deferred"])
async def test_what_waits_without_a_draft_is_canceled_with_its_action_and_audited(desk: Desk, before: str) -> None:
    await (admitted(desk) if before == "queued" else deferred(desk))
    assert (await view(desk)).state == before
    assert await canceled(desk) == "canceled"
    ended, action = await view(desk), await action_of(desk)
    assert (ended.state, ended.error) == ("canceled", WHY)
    assert (action.state, action.error) == ("canceled", WHY)
    desk.clock.forward(86_400)
    assert await lease(desk) == []
    (entry, *_) = await desk.database.run(list_audit(1))
    assert (entry.action, entry.object_id, entry.reason) == ("outbound.cancel", str(ended.id), "not to him")
    assert (entry.before, entry.after) == ({"state": before}, {"result": "canceled"})


async def test_an_answer_that_was_canceled_does_not_count(desk: Desk) -> None:
    about = await stored(desk)
    await admitted(desk, about=about)
    await canceled(desk)
    await admitted(desk, about=about)


async def test_what_is_unknown_is_canceled_and_says_that_it_may_have_been_sent(desk: Desk) -> None:
    await doubted(desk)
    assert await canceled(desk) == "canceled"
    assert ((await view(desk)).state, (await action_of(desk)).state) == ("canceled", "canceled")
    assert (await action_of(desk)).error == f"{WHY}; it may have been sent before"


async def test_an_answer_that_may_have_been_sent_counts_even_when_it_is_canceled(desk: Desk) -> None:
    about = await stored(desk)
    await admitted(desk, about=about)
    (leased,) = await lease(desk)
    await desk.database.run(outbound.doubt(leased.hold, "who knows", desk.clock()))
    await canceled(desk)
    job, new = await sending_job(desk, about=about)
    guard = NOBODY._replace(once_since=desk.clock() - timedelta(days=7))
    refused = await desk.database.run(outbound.admit_delivery(job, new, guard, desk.clock()))
    assert "was answered on" in (refused or "")


async def test_what_is_being_sent_is_stopped_right_before(desk: Desk) -> None:
    leased = await leased_delivery(desk)
    assert await canceled(desk) == "stopping"
    assert ((await view(desk)).state, (await action_of(desk)).error) == ("sending", WHY)
    now = desk.clock()
    assert await desk.database.run(outbound.hold_delivery(leased.hold, DRAFT, now, now + LEASE)) == "ended"


async def test_what_has_a_draft_that_may_have_been_sent_is_left_to_a_sender_at_once(desk: Desk) -> None:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.defer(leased.hold, DRAFT, desk.clock() + LEASE, "no answer", desk.clock()))
    assert await canceled(desk) == "stopping"
    (again,) = await lease(desk)
    assert again.draft_id == DRAFT[0]


async def test_what_has_ended_cannot_be_canceled(desk: Desk) -> None:
    leased = await leased_delivery(desk)
    await desk.database.run(outbound.deliver(leased.hold, "18c1", desk.clock()))
    with pytest.raises(IllegalMove, match="is delivered and cannot be canceled"):
        await canceled(desk)
    assert (await action_of(desk)).state == "completed"

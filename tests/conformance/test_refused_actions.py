"""Actions whose mailbox is not touched after all: mail that was protected meanwhile, waking that comes too early."""

from typing import Any

import pytest

from conformance.action_desk import ARRIVED, CAP, ActionDesk
from conformance.desk import Desk
from conformance.fault_cases_registry import signed
from postroom.act.executor import Executor
from postroom.core.actions.permits import Permit
from postroom.core.errors import Fatal, Retryable
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.mailbox import Mailbox
from postroom.handlers.action_gmail import ActionGmail, may_begin
from postroom.handlers.unsnooze_gmail import UnsnoozeGmail
from postroom.jobs.run import JobRun
from postroom.store import actions, protection
from postroom.store.labels import SeenLabel, sync_labels
from support.gates import LASTING


@pytest.fixture
def office(desk: Desk) -> ActionDesk:
    return ActionDesk(desk)


async def no_mailbox(_permit: Permit) -> Mailbox:
    raise AssertionError("the mailbox is not touched")


async def protect(office: ActionDesk, kind: Any, value: str) -> None:
    await office.desk.database.run(protection.protect(kind, value, "", signed(), office.desk.clock()))


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("sender", "Shop@Example.com", "the sender is protected"),
        ("domain", "example.com", "the sender's domain is protected"),
        ("label", "UNREAD", "the label 'unread' is protected"),
        ("label", "To Read", "the label 'to read' is protected"),
    ],
)
async def test_what_was_protected_since_it_was_decided_is_not_touched(
    office: ActionDesk, kind: str, value: str, reason: str
) -> None:
    waiting = await office.waiting("delete")
    seen = [SeenLabel("UNREAD", "To Read", "system")]
    await office.desk.database.run(sync_labels(waiting.account_id, seen, office.desk.clock()))
    await protect(office, kind, value)
    run = JobRun(waiting.job, office.desk.database, office.desk.clock, LASTING)
    beginning = actions.begin_action(waiting.job, waiting.id, CAP, office.desk.clock())
    assert not await may_begin(run, office.desk.database, beginning)
    assert run.ended
    view = await office.view(waiting.id)
    assert (view.state, view.error) == ("canceled", reason)
    assert await office.desk.state(waiting.job.id) == "completed"
    found = await office.desk.database.run(protection.restraints(waiting.account_id, office.desk.clock()))
    assert found.irreversible_this_hour == 0, "what is not done does not count"


async def test_the_action_of_protected_mail_ends_without_a_mailbox_and_others_go_on(office: ActionDesk) -> None:
    await protect(office, "sender", "someone@else.example")
    waiting = await office.waiting()
    await office.begin(waiting)
    assert await office.state(waiting.id) == "executing"
    await protect(office, "sender", "shop@example.com")
    payload = {"account_id": str(waiting.account_id), "action_id": str(waiting.id)}
    executor = Executor(office.desk.database, CATALOGUE, office.desk.clock)
    job = waiting.job._replace(payload=payload)
    await ActionGmail(executor, no_mailbox, CAP)(JobRun(job, office.desk.database, office.desk.clock, LASTING))
    assert (await office.view(waiting.id)).state == "canceled"


async def test_protected_mail_that_an_earlier_attempt_may_have_changed_says_so(office: ActionDesk) -> None:
    begun = await office.begun()
    await office.desk.database.run(actions.keep_pre_image(begun.job, begun.id, ARRIVED, office.desk.clock()))
    await protect(office, "sender", "shop@example.com")
    await office.begin(begun)
    view = await office.view(begun.id)
    assert view.state == "canceled"
    assert "an earlier attempt may have changed the message" in (view.error or "")


async def test_only_its_own_job_ends_the_action_of_protected_mail(office: ActionDesk) -> None:
    waiting = await office.waiting()
    await protect(office, "sender", "shop@example.com")
    with pytest.raises(Fatal, match="belongs to another job"):
        await office.begin(waiting, await office.desk.claimed())
    assert await office.state(waiting.id) == "queued"


async def test_a_message_is_not_woken_while_it_is_still_being_hidden(office: ActionDesk) -> None:
    begun = await office.begun("snooze")
    named = {"account_id": begun.account_id, "message_id": begun.message_id, "action_id": begun.id}
    job = await office.desk.claimed(payload={name: str(id) for name, id in named.items()})
    handler = UnsnoozeGmail(office.desk.database, no_mailbox, "Snoozed", office.desk.clock)
    with pytest.raises(Retryable, match="still being snoozed"):
        await handler(JobRun(job, office.desk.database, office.desk.clock, LASTING))

"""Actions that do not change the mailbox after all: mail that was protected since, wake-ups that come too early."""

from typing import Any

import pytest

from postroom.core.actions.permits import Permit
from postroom.core.errors import Fatal, Retryable
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.mailbox import Mailbox
from postroom.jobs.run import JobRun
from postroom.store.actions import actions, protection
from postroom.store.mail.labels import SeenLabel, sync_labels
from postroom.triage.act.executor import Executor
from postroom.triage.handlers.action_gmail import ActionGmail, may_begin
from postroom.triage.handlers.unsnooze_gmail import UnsnoozeGmail
from support.gates import LASTING
from support.store.action_setup import ARRIVED, CAP, ActionSetup
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup


@pytest.fixture
def action_setup(setup: JobSetup) -> ActionSetup:
    return ActionSetup(setup)


async def no_mailbox(_permit: Permit) -> Mailbox:
    raise AssertionError("the mailbox is not touched")


async def protect(action_setup: ActionSetup, kind: Any, value: str) -> None:
    await action_setup.setup.database.run(protection.protect(kind, value, "", signed(), action_setup.setup.clock()))


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
    action_setup: ActionSetup, kind: str, value: str, reason: str
) -> None:
    waiting = await action_setup.waiting("delete")
    seen = [SeenLabel("UNREAD", "To Read", "system")]
    await action_setup.setup.database.run(sync_labels(waiting.account_id, seen, action_setup.setup.clock()))
    await protect(action_setup, kind, value)
    run = JobRun(waiting.job, action_setup.setup.database, action_setup.setup.clock, LASTING)
    beginning = actions.begin_action(waiting.job, waiting.id, CAP, action_setup.setup.clock())
    assert not await may_begin(run, action_setup.setup.database, beginning)
    assert run.ended
    view = await action_setup.view(waiting.id)
    assert (view.state, view.error) == ("canceled", reason)
    assert await action_setup.setup.state(waiting.job.id) == "completed"
    found = await action_setup.setup.database.run(protection.restraints(waiting.account_id, action_setup.setup.clock()))
    assert found.irreversible_this_hour == 0, "what is not done does not count"


async def test_the_action_of_protected_mail_ends_without_a_mailbox_and_others_go_on(action_setup: ActionSetup) -> None:
    await protect(action_setup, "sender", "someone@else.example")
    waiting = await action_setup.waiting()
    await action_setup.begin(waiting)
    assert await action_setup.state(waiting.id) == "executing"
    await protect(action_setup, "sender", "shop@example.com")
    payload = {"account_id": str(waiting.account_id), "action_id": str(waiting.id)}
    executor = Executor(action_setup.setup.database, CATALOGUE, action_setup.setup.clock)
    job = waiting.job._replace(payload=payload)
    await ActionGmail(executor, no_mailbox, CAP)(
        JobRun(job, action_setup.setup.database, action_setup.setup.clock, LASTING)
    )
    assert (await action_setup.view(waiting.id)).state == "canceled"


async def test_protected_mail_that_an_earlier_attempt_may_have_changed_says_so(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun()
    await action_setup.setup.database.run(
        actions.keep_pre_image(begun.job, begun.id, {"labels": sorted(ARRIVED)}, action_setup.setup.clock())
    )
    await protect(action_setup, "sender", "shop@example.com")
    await action_setup.begin(begun)
    view = await action_setup.view(begun.id)
    assert view.state == "canceled"
    assert "an earlier attempt may have changed the message" in (view.error or "")


async def test_only_its_own_job_ends_the_action_of_protected_mail(action_setup: ActionSetup) -> None:
    waiting = await action_setup.waiting()
    await protect(action_setup, "sender", "shop@example.com")
    with pytest.raises(Fatal, match="belongs to another job"):
        await action_setup.begin(waiting, await action_setup.setup.claimed())
    assert await action_setup.state(waiting.id) == "queued"


async def test_a_message_is_not_woken_while_it_is_still_being_hidden(action_setup: ActionSetup) -> None:
    begun = await action_setup.begun("snooze")
    named = {"account_id": begun.account_id, "message_id": begun.message_id, "action_id": begun.id}
    job = await action_setup.setup.claimed(payload={name: str(id) for name, id in named.items()})
    handler = UnsnoozeGmail(action_setup.setup.database, no_mailbox, "Snoozed", action_setup.setup.clock)
    with pytest.raises(Retryable, match="still being snoozed"):
        await handler(JobRun(job, action_setup.setup.database, action_setup.setup.clock, LASTING))

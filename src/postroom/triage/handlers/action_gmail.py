"""The `action.gmail` job: carry out one action in a mailbox."""

import contextlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from postroom.core.actions.undo import hint_for_part, labels_left
from postroom.core.errors import Canceled, Fatal, JobError, MailboxError, Parked, ProtectedMail
from postroom.core.mail.mailbox import MailboxUnder, job_error_of
from postroom.jobs.run import JobRun
from postroom.store.actions import actions
from postroom.store.engine.database import Database, Transaction
from postroom.triage.act.executor import Executor
from postroom.triage.handlers.payload import uuid_field
from postroom.triage.handlers.traced_mailbox import traced


class ActionGmail:
    """Load the action, check its account, carry it out, and end it in a terminal state if that fails for good."""

    def __init__(self, executor: Executor, mailbox_of: MailboxUnder, hourly_cap: int) -> None:
        self._executor = executor
        self._mailbox_of = mailbox_of
        self._hourly_cap = hourly_cap

    async def __call__(self, run: JobRun) -> None:
        database, clock = self._executor.database, self._executor.clock
        account_id, action_id = uuid_field(run.job, "account_id"), uuid_field(run.job, "action_id")
        action = await database.run(actions.load_action(action_id))
        if action.account_id != account_id:
            raise Fatal(f"action {action_id} belongs to another account than the job says")
        if not await may_begin(run, database, actions.begin_action(run.job, action_id, self._hourly_cap, clock())):
            return
        try:
            ending = await self._carry_out(run, action)
        except ProtectedMail as error:
            done = await self._done_part(run, action_id)
            ending = actions.refuse_action(run.job, action_id, str(error), clock(), done)
        except JobError as error:
            if is_the_end(run, error):
                done = await self._done_part(run, action_id)
                await database.run(actions.fail_action(run.job, action_id, str(error), clock(), done))
            raise
        await run.complete(ending)

    async def _done_part(self, run: JobRun, action_id: UUID) -> Mapping[str, Any] | None:
        """How to undo the part of several actions that was done, so that an undo leaves alone what the user does from
        now on. None if there is nothing to undo, or the mailbox does not say: then the hint stays a planned one.
        """
        action = await self._executor.database.run(actions.load_action(action_id))
        if action.undo_hint is None:
            return None
        with contextlib.suppress(MailboxError, JobError):
            mailbox = traced(await self._mailbox_of(run.permit(action.account_id, action.id)))
            id, hint, image = action.provider_message_id, action.undo_hint, action.pre_image or {}
            await mailbox.expect(id, image.get("place"), frozenset(hint["pre_labels"]), labels_left(hint))
            part = hint_for_part(hint, await mailbox.labels_of(id))
            place = await mailbox.place_of(id)
            return part if place is None else {**part, "place": place}
        return None

    async def _carry_out(self, run: JobRun, action: actions.Action) -> actions.Ending:
        try:
            mailbox = traced(await self._mailbox_of(run.permit(action.account_id, action.id)))
            return await self._executor.carry_out(mailbox, run.job, action)
        except MailboxError as error:
            raise job_error_of(error, action.action_type, action.account_id) from error


async def may_begin(run: JobRun, database: Database, beginning: Transaction[str | None]) -> bool:
    """Begin the action; return False if something forbids it by now, in which case its job has ended."""
    run.ended = await database.run(beginning) is not None
    return not run.ended


def is_the_end(run: JobRun, error: JobError) -> bool:
    """Return whether the job is not tried again. A parked job only waits, which uses up no attempt, not even the last.

    A canceled job has not failed: its action ends as canceled, too.
    """
    return isinstance(error, Fatal) or (run.job.is_last_attempt and not isinstance(error, Parked | Canceled))

"""The `unsnooze.gmail` job: a snoozed message comes back to the inbox at its time."""

from collections.abc import Callable
from uuid import UUID

from postroom.act.undo import wake
from postroom.core.errors import Fatal, NotFound, Retryable
from postroom.core.mailbox import Mailbox
from postroom.gmail.errors import GmailError, LabelNotFound, job_error_of
from postroom.handlers.payload import uuid_field
from postroom.handlers.traced_mailbox import TracedMailbox
from postroom.jobs.run import JobRun
from postroom.store import actions, mail, pauses
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database


class UnsnoozeGmail:
    """INBOX on, the snooze label off. A message that is gone needs no waking, a label that is gone no removing.

    What was snoozed again is left to the waking of that.
    """

    def __init__(
        self,
        database: Database,
        mailbox_of: Callable[[UUID], Mailbox],
        snooze_label: str,
        clock: Clock = wall_clock,
    ) -> None:
        self._database = database
        self._mailbox_of = mailbox_of
        self._snooze_label = snooze_label
        self._clock = clock

    async def __call__(self, run: JobRun) -> None:
        account_id = uuid_field(run.job, "account_id")
        try:
            message = await self._database.run(mail.load_message(uuid_field(run.job, "message_id")))
        except NotFound as error:
            raise Fatal(str(error)) from None
        await self._database.run(pauses.check_paused(account_id))
        if await self._is_snoozed_anew(run):
            return
        await self._check_hidden(run)
        try:
            mailbox = TracedMailbox(self._mailbox_of(account_id))
            label_ids = await self._label_ids(run, mailbox)
            labels = await wake(mailbox, message.provider_message_id, label_ids, lambda id: _knows(mailbox, id))
        except GmailError as error:
            raise job_error_of(error, "unsnooze", account_id) from error
        await run.complete(actions.end_awakened(run.job, message.id, labels, self._clock()))

    async def _is_snoozed_anew(self, run: JobRun) -> bool:
        if "action_id" not in run.job.payload:
            return False
        return await self._database.run(actions.is_snoozed_anew(uuid_field(run.job, "action_id"), self._clock()))

    async def _check_hidden(self, run: JobRun) -> None:
        """Who wakes a message while it is still being hidden finds nothing to do, and nobody would wake it later."""
        if "action_id" in run.job.payload:
            action = await self._database.run(actions.load_action(uuid_field(run.job, "action_id")))
            if action.state == "executing":
                raise Retryable("the message is still being snoozed; it is woken after that")

    async def _label_ids(self, run: JobRun, mailbox: Mailbox) -> frozenset[str]:
        """The label that was put on then, whatever the setting says now; the setting's where the job names none."""
        named = run.job.payload.get("snooze_label_id")
        if isinstance(named, str) and named:
            return frozenset({named})
        try:
            return frozenset({await mailbox.label_id(self._snooze_label, create=False)})
        except LabelNotFound:
            return frozenset()


async def _knows(mailbox: Mailbox, label_id: str) -> bool:
    try:
        await mailbox.label_id(label_id, create=False)
    except LabelNotFound:
        return False
    return True

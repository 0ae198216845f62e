"""The `unsnooze.gmail` job: bring a snoozed message back to the inbox at its time."""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import Fatal, JobError, LabelMissing, MailboxError, NotFound, Parked, Retryable
from postroom.core.mail.accounts import parking_key
from postroom.core.mail.mailbox import Mailbox, MailboxUnder, job_error_of
from postroom.jobs.run import JobRun
from postroom.store.actions import actions, pauses
from postroom.store.engine.database import Database
from postroom.store.mail import mail
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.act.undo import wake
from postroom.triage.handlers.payload import text_field, uuid_field
from postroom.triage.handlers.traced_mailbox import traced


@dataclass(eq=False, slots=True)
class UnsnoozeGmail:
    """Add INBOX and remove the snooze label, even if someone has removed it already. A deleted message needs no waking,
    and one that the user archived or trashed stays there. If it was snoozed again, that snooze's job wakes it.
    """

    database: Database
    mailbox_of: MailboxUnder
    snooze_label: str
    clock: Clock = wall_clock

    async def __call__(self, run: JobRun) -> None:
        account_id = uuid_field(run.job, "account_id")
        id, gmail_id = await self._message(run, account_id)
        await self.database.run(pauses.check_paused(account_id))
        if await self._is_snoozed_anew(run):
            return
        snooze = await self._snooze_of(run)
        place = None if id is None else await self.database.run(actions.last_place(id))
        try:
            mailbox = traced(await self.mailbox_of(run.permit(account_id, gives_back=True)))
            label_ids = await self._label_ids(run, mailbox)
            placed = await wake(
                mailbox, gmail_id, label_ids, snooze.hidden_at, was_hidden=snooze.was_hidden, place=place
            )
        except MailboxError as error:
            raise _kept_trying(job_error_of(error, "unsnooze", account_id)) from error
        except Fatal as error:  # the account was removed: if it is connected again, its mail still has to come back
            raise Parked(parking_key(account_id), str(error)) from error
        labels, moved_to = (None, None) if placed is None else (placed.labels, placed.moved_from(gmail_id))
        await run.complete(actions.end_woken(run.job, id, labels, self.clock(), moved_to))

    async def _message(self, run: JobRun, account_id: UUID) -> tuple[UUID | None, str]:
        """Return its id and Gmail's. A message that a sweep found in the mailbox need not be stored."""
        if "gmail_id" in run.job.payload:
            gmail_id = text_field(run.job, "gmail_id")
            return await self.database.run(mail.find_message_id(account_id, gmail_id)), gmail_id
        try:
            message = await self.database.run(mail.load_message(uuid_field(run.job, "message_id")))
        except NotFound as error:
            raise Fatal(str(error)) from None
        return message.id, message.provider_message_id

    async def _is_snoozed_anew(self, run: JobRun) -> bool:
        if "action_id" not in run.job.payload:
            return False
        return await self.database.run(actions.is_snoozed_again(uuid_field(run.job, "action_id"), self.clock()))

    async def _snooze_of(self, run: JobRun) -> "_Snooze":
        """Look up how the snooze ended. A message that is woken while it is still being hidden would stay hidden, so
        waking waits for that."""
        if "action_id" not in run.job.payload:
            return _Snooze(None, was_hidden="gmail_id" not in run.job.payload)
        action = await self.database.run(actions.load_action(uuid_field(run.job, "action_id")))
        if action.state == "executing":
            raise Retryable("the message is still being snoozed; it is woken after that")
        found = (action.undo_hint or {}).get("snooze_history_id")
        return _Snooze(found if isinstance(found, int) else None, was_hidden=action.state != "canceled")

    async def _label_ids(self, run: JobRun, mailbox: Mailbox) -> frozenset[str]:
        """Return the label that was added then, whatever the setting says now; the setting's if the job names none."""
        named = run.job.payload.get("snooze_label_id")
        if isinstance(named, str) and named:
            return frozenset({named})
        try:
            return frozenset({await mailbox.label_id(self.snooze_label, create=False)})
        except LabelMissing:
            return frozenset()


class _Snooze(NamedTuple):
    """`hidden_at`, if it was recorded, is the position in the mailbox's history after which changes of the message are
    not ours. An interrupted snooze may have hidden the message or not; without a record, nobody knows."""

    hidden_at: int | None
    was_hidden: bool = True


def _kept_trying(error: JobError) -> JobError:
    """Retry even a refusal: it may concern a label that was deleted since we looked, and the next attempt looks again.
    Nothing else would bring the mail back, so only running out of attempts ends this."""
    return Retryable(str(error)) if isinstance(error, Fatal) else error

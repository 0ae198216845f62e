"""The `undo.action` job: reverse one action, and then, if it says so, older ones on the same message."""

from uuid import UUID

from postroom.core.errors import Fatal, JobError, MailboxError
from postroom.core.jobs.job import Job
from postroom.core.mail.mailbox import MailboxUnder, job_error_of
from postroom.jobs.run import JobRun
from postroom.store.actions import actions, undos
from postroom.store.engine.ids import new_id
from postroom.triage.act.undo import UndoService
from postroom.triage.handlers.action_gmail import is_the_end
from postroom.triage.handlers.payload import uuid_field
from postroom.triage.handlers.traced_mailbox import traced


class UndoAction:
    """Record the undo first, then change the mailbox, then end both; a failed undo can be requested again."""

    def __init__(self, undoing: UndoService, mailbox_of: MailboxUnder) -> None:
        self._undoing = undoing
        self._mailbox_of = mailbox_of

    async def __call__(self, run: JobRun) -> None:
        database, clock = self._undoing.database, self._undoing.clock
        account_id, original_id = uuid_field(run.job, "account_id"), uuid_field(run.job, "original_action_id")
        following = self._undoing.following(run.job, account_id, _then(run.job))
        try:
            undo = await database.run(undos.begin_undo(run.job, original_id, account_id, new_id(), clock()))
        except Fatal:
            await self._go_on(original_id, following)
            raise
        if undo is None:
            await self._go_on(original_id, following)
            return
        try:
            ending = await self._put_back(run, undo, following)
        except JobError as error:
            if is_the_end(run, error):
                await self._go_on(original_id, following)
                await database.run(actions.fail_action(run.job, undo.id, str(error), clock()))
            raise
        await run.complete(ending)

    async def _go_on(self, original_id: UUID, following: undos.UndoChain | None) -> None:
        """Continue with the message's other undos, although this action is already undone or must not be."""
        await self._undoing.database.run(undos.continue_undos(original_id, following, self._undoing.clock()))

    async def _put_back(self, run: JobRun, undo: undos.Undo, then: undos.UndoChain | None) -> actions.Ending:
        account_id = undo.original.account_id
        try:
            permit = run.permit(account_id, undo.id, gives_back=True)
            mailbox = traced(await self._mailbox_of(permit))
            return await self._undoing.put_back(mailbox, run.job, undo, then)
        except MailboxError as error:
            raise job_error_of(error, "undo", account_id) from error


def _then(job: Job) -> tuple[UUID, ...]:
    try:
        return tuple(UUID(str(each)) for each in job.payload.get("then", []))
    except (TypeError, ValueError):
        raise Fatal(
            "the payload of undo.action has a `then` that is not a list of ids; it was enqueued wrongly"
        ) from None

"""The `action.gmail` job: carries out one action in Gmail (seed 004, section 5.7)."""

from collections.abc import Callable, Collection
from uuid import UUID

from postroom.act.executor import carry_out
from postroom.core.errors import Fatal, JobError, Parked
from postroom.core.mailbox import Mailbox
from postroom.gmail.errors import GmailError, job_error
from postroom.handlers.payload import uuid_field
from postroom.jobs.run import JobRun
from postroom.store import actions
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database
from postroom.tracing import span


class ActionGmail:
    """Loads the action, checks whose it is, carries it out, and leaves it in a terminal state when it cannot be."""

    def __init__(self, database: Database, mailbox_of: Callable[[UUID], Mailbox], clock: Clock = wall_clock) -> None:
        self._database = database
        self._mailbox_of = mailbox_of
        self._clock = clock

    async def __call__(self, run: JobRun) -> None:
        account_id, action_id = uuid_field(run.job, "account_id"), uuid_field(run.job, "action_id")
        action = await self._database.run(actions.load_action(action_id))
        if action.account_id != account_id:
            raise Fatal(f"action {action_id} belongs to another account than the job says")
        await self._database.run(actions.begin_action(run.job, action_id, self._clock()))
        try:
            ending = await self._carry_out(run, action)
        except JobError as error:
            # A parked job only waits, and its action with it: that uses up no attempt, not even the last.
            if isinstance(error, Fatal) or (run.job.is_last_attempt and not isinstance(error, Parked)):
                await self._database.run(actions.fail_action(run.job, action_id, str(error), self._clock()))
            raise
        await run.complete(ending)

    async def _carry_out(self, run: JobRun, action: actions.Action) -> actions.Ending:
        try:
            mailbox = TracedMailbox(self._mailbox_of(action.account_id))
            return await carry_out(self._database, mailbox, run.job, action, self._clock)
        except GmailError as error:
            raise job_error(action.action_type, error) from error


class TracedMailbox:
    """A mailbox whose every use is a span. The span says what was asked for, not of which message or label."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    async def labels_of(self, message_id: str) -> frozenset[str]:
        with span("gmail labels_of"):
            return await self._mailbox.labels_of(message_id)

    async def modify(self, message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> frozenset[str]:
        with span("gmail modify"):
            return await self._mailbox.modify(message_id, add, remove)

    async def label_id(self, name: str, create: bool = True) -> str:
        with span("gmail label_id"):
            return await self._mailbox.label_id(name, create)

"""The jobs that drive the Gmail connector in this process: `history.sync.gmail` and `ingest.gmail`.

As a process of its own the connector drives itself; here its rounds are jobs, so that they are retried, parked when
consent is lost, and shown like all other work.
"""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from postroom.core.errors import Fatal, IntakeRefused, Retryable, SwitchboardUnavailable
from postroom.gmail.errors import GmailError, job_error_of
from postroom.handlers.payload import uuid_field
from postroom.jobs.run import JobRun


class MailboxSync(Protocol):
    """One mailbox's connector, as far as jobs drive it."""

    async def sync(self) -> int:
        """Hands in everything new; returns how many messages were."""
        ...

    async def ingest(self, message_id: str) -> bool:
        """Hands in one message; False when it is gone from the mailbox."""
        ...


class HistorySyncGmail:
    """One round: everything since the last."""

    def __init__(self, connector_of: Callable[[UUID], MailboxSync]) -> None:
        self._connector_of = connector_of

    async def __call__(self, run: JobRun) -> None:
        account_id = uuid_field(run.job, "account_id")
        try:
            await self._connector_of(account_id).sync()
        except (GmailError, IntakeRefused, SwitchboardUnavailable) as error:
            raise _for_the_job(error, account_id) from error


class IngestGmail:
    """One message, asked for by its id."""

    def __init__(self, connector_of: Callable[[UUID], MailboxSync]) -> None:
        self._connector_of = connector_of

    async def __call__(self, run: JobRun) -> None:
        account_id = uuid_field(run.job, "account_id")
        message_id = run.job.payload.get("message_id")
        if not isinstance(message_id, str) or not message_id:
            raise Fatal("the payload of ingest.gmail needs message_id, Gmail's id of the message")
        try:
            await self._connector_of(account_id).ingest(message_id)
        except (GmailError, IntakeRefused, SwitchboardUnavailable) as error:
            raise _for_the_job(error, account_id) from error


def _for_the_job(error: GmailError | IntakeRefused | SwitchboardUnavailable, account_id: UUID) -> Exception:
    match error:
        case GmailError():
            return job_error_of(error, "sync", account_id)
        case IntakeRefused():
            return Retryable(str(error), error.retry_after)
        case SwitchboardUnavailable():
            return Retryable(str(error))

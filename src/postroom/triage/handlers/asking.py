"""Ask an account's connector, wherever it runs, to do something for a job: wait, and end as its answer says.

If a person has to fix something first, the job is parked, like all others of the account.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from postroom.core.errors import Fatal, NotFound, Parked, Retryable, TooManyRequests
from postroom.core.mail.account_repair import connect_command, parked_words, reactivate_command
from postroom.core.mail.accounts import parking_key
from postroom.core.mail.mailbox_requests import RequestKind
from postroom.jobs.run import JobRun
from postroom.mailboxes.accounts.mailbox_requests import EXPIRES, ConnectorRequests
from postroom.store.accounts import accounts
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock
from postroom.triage.handlers.payload import uuid_field

PATIENCE = timedelta(seconds=60)
POLL_S = 1.0


class AskingConnector:
    """The way from a job to a connector."""

    def __init__(self, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE) -> None:
        self._database = database
        self._requests = ConnectorRequests(database, clock, poll_s=POLL_S)
        self._patience = patience

    async def ask(self, account_id: UUID, kind: RequestKind, arguments: dict[str, object]) -> dict[str, Any]:
        """Return the connector's answer. Raise Parked, Fatal or Retryable if there is none."""
        account = await self._usable(account_id)
        try:
            answer = await self._requests.ask(account.endpoint_identity, kind, arguments, self._patience)
        except TooManyRequests as error:
            # By then the waiting requests are answered or expired: asking sooner only uses up attempts.
            raise Retryable(f"the connector of {account.email} {error.problem}", after=EXPIRES) from None
        if answer.state == "answered":
            return answer.result or {}
        # Consent may have been lost during the attempt: then no retry helps before the user has acted.
        await self._usable(account_id)
        if answer.state == "failed":
            raise Retryable(f"the connector of {account.email} could not do it: {answer.error}")
        raise Retryable(f"no connector of {account.email} answered; see `postroom connector list`")

    async def _usable(self, account_id: UUID) -> accounts.AccountView:
        try:
            account = await self._database.run(accounts.load_account(account_id))
        except NotFound as error:
            raise Fatal(str(error)) from None
        if account.state in ("paused", "needs_consent"):
            level = None if account.consent is None else account.consent.level
            why = (
                account.state_reason
                or f"run `{reactivate_command(account.state, account.email, level, account.provider)}`"
            )
            raise Parked(parking_key(account.id), parked_words(account.email, account.state, why))
        if account.state != "active":
            raise Fatal(
                f"{account.email} was removed; connect it with `{connect_command(account.provider, account.email)}`"
            )
        return account


class AskConnector:
    """A job that asks the connector of its account for one thing, and waits for the answer.

    The connector looks for mail, and works on backfills, by itself. `history.sync.gmail` lets it look at once, with a
    result that is known, and `backfill.gmail` lets it begin at once.
    """

    def __init__(
        self, kind: RequestKind, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE
    ) -> None:
        self._kind: RequestKind = kind
        self._asking = AskingConnector(database, clock, patience)

    async def __call__(self, run: JobRun) -> None:
        await self._asking.ask(uuid_field(run.job, "account_id"), self._kind, {})

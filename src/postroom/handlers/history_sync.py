"""The `history.sync.gmail` job: has the connector of an account look at its mailbox now, wherever that connector runs.

The connector looks by itself every few seconds; this is for those who want a look at once and want to know what came
of it: it is retried, parked when consent is lost, and shown like all other work.
"""

import asyncio
from datetime import timedelta
from uuid import UUID

from postroom.core.errors import Fatal, NotFound, Retryable
from postroom.handlers.payload import uuid_field
from postroom.jobs.run import JobRun
from postroom.store import accounts
from postroom.store import connector_requests as requests
from postroom.store.clock import Clock, wall_clock
from postroom.store.database import Database
from postroom.store.ids import new_id
from postroom.store.listeners import signalled

PATIENCE = timedelta(seconds=60)
POLL_S = 1.0


class HistorySyncGmail:
    """Asks, and waits for the answer."""

    def __init__(self, database: Database, clock: Clock = wall_clock, patience: timedelta = PATIENCE) -> None:
        self._database = database
        self._clock = clock
        self._patience = patience

    async def __call__(self, run: JobRun) -> None:
        try:
            account = await self._database.run(accounts.load_account(uuid_field(run.job, "account_id")))
        except NotFound as error:
            raise Fatal(str(error)) from None
        now = self._clock()
        asked = requests.NewRequest(new_id(), account.endpoint_identity, "sync_now", {}, now + self._patience)
        answer = await self._answer(await self._database.run(requests.ask_connector(asked, now)))
        if answer is None or answer.state == "expired":
            raise Retryable(f"no connector of {account.email} answered; see `postroom connector list`")
        if answer.state == "failed":
            raise Retryable(f"the connector could not look: {answer.error}")

    async def _answer(self, request_id: UUID) -> requests.RequestView | None:
        """The request when it has ended; None when it has not within our patience."""
        ended = asyncio.Event()
        subscription = self._database.subscribe(requests.ENDED, lambda _message: ended.set())
        deadline = asyncio.get_running_loop().time() + self._patience.total_seconds()
        try:
            while True:
                ended.clear()
                found = await self._database.run(requests.load_request(request_id))
                left = deadline - asyncio.get_running_loop().time()
                if found.ended or left <= 0:
                    return found if found.ended else None
                await signalled(ended, min(left, POLL_S))
        finally:
            subscription.close()

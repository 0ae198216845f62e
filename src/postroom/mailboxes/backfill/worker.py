"""Works on the backfills of one connector: asks for one, walks it to its end, and asks again.

    call ──► ask ──► walk ──► its end, or told to stop ──► ask …
              └─ nothing to do: wait for a call, or for the next time to ask

The loop is the same in every process. A connector in its own process also asks by itself, at intervals. One inside the
switchboard's process asks when it is called, and at its start if it had a backfill before: so a mailbox without any
costs nothing. The switchboard is asked no more often than every minute, whatever happens.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

import structlog

from postroom.core.errors import BadInput, PostroomError
from postroom.mailboxes.backfill.lease import KeptLease
from postroom.mailboxes.backfill.walk import JobStopped, Walk
from postroom.sources.switchboard_client import BackfillAssignment, BackfillProgress, BackfillSource
from postroom.vault.masking import masked_urls

log = structlog.get_logger()

SHORTEST_POLL_S = 60.0
AFTER_ERROR_S = 60.0
FLUSH_S = 2.0


class CallAnswer(NamedTuple):
    """Whether a backfill is being worked on; if not, in how many seconds the switchboard is asked for one."""

    status: Literal["active", "idle"]
    asks_in_s: float | None = None


class BackfillWorker:
    """The backfills of one endpoint, one at a time. `begin` makes the walk of an assignment.

    `polls` are the times of the last poll for each endpoint. A process keeps them, so that a connector that is
    restarted does not poll sooner. `lease` is that of the process before, if the connector is alone on its folder.
    `refresh` fetches what a job has to begin with; if that fails, the job is asked for again.
    """

    def __init__(
        self,
        switchboard: BackfillSource,
        connector_type: str,
        endpoint_identity: str,
        begin: Callable[[BackfillAssignment], Walk],
        *,
        clock: Callable[[], float],
        polls: dict[str, float] | None = None,
        lease: KeptLease | None = None,
        refresh: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._switchboard = switchboard
        self._connector_type = connector_type
        self._endpoint_identity = endpoint_identity
        self._begin = begin
        self._clock = clock
        self._polls = {} if polls is None else polls
        self._lease = lease or KeptLease()
        self._refresh = refresh
        self._walk: Walk | None = None
        self._called = asyncio.Event()

    def call(self) -> CallAnswer:
        """Ask for a backfill as soon as that is allowed, unless one is being worked on."""
        self._called.set()
        return CallAnswer("idle", self._poll_in_s()) if self._walk is None else CallAnswer("active")

    async def run(self, ask_every_s: float | None = None) -> None:
        """Work until canceled. Errors make it wait, but never end it. When there is nothing to do, ask again after this
        long; without a time, only when called.
        """
        try:
            if ask_every_s is None and self._lease.token is None:
                await self._rest(None)
            while True:
                try:
                    if await self.work() == "idle":
                        await self._rest(ask_every_s)
                except Exception as error:
                    log.warning("backfill.stopped", error=_reason(error))
                    await asyncio.sleep(AFTER_ERROR_S)
        finally:
            await self._flush()

    async def work(self) -> str:
        """Work on one backfill until it ends, or has to stop; return its status then, `idle` if there was none. One
        that an error interrupted is continued.
        """
        if self._walk is None:
            await asyncio.sleep(self._poll_in_s())
            self._called.clear()
            self._walk = await self._poll()
        if self._walk is None:
            return "idle"
        try:
            await self._walk.work()
        except JobStopped as stopped:
            self._walk = None
            if stopped.status != "lost":
                self._lease.keep(None)
            log.info("backfill.job_stopped", status=stopped.status, reason=str(stopped))
            return stopped.status

    async def _rest(self, seconds: float | None) -> None:
        """Wait for a call, at most this long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._called.wait()

    async def _poll(self) -> Walk | None:
        self._polls[self._endpoint_identity] = self._clock()
        assignment = await self._ask_for_work()
        if assignment is None:
            return None
        self._lease.keep(assignment.lease_token)
        if self._refresh is not None:
            await self._refresh()
        try:
            return self._begin(assignment)
        except BadInput as error:
            await self._refuse(assignment, error)
            return None

    async def _ask_for_work(self) -> BackfillAssignment | None:
        asked = self._connector_type, self._endpoint_identity
        try:
            return await self._switchboard.poll_backfill(*asked, self._lease.token)
        except BadInput:
            # The file may be damaged, or the switchboard older than this.
            self._lease.keep(None)
            raise

    async def _refuse(self, assignment: BackfillAssignment, error: BadInput) -> None:
        """Report that this connector cannot do the job, which may be for a newer version."""
        seq, cursor = assignment.batch_seq + 1, assignment.cursor
        progress = BackfillProgress(
            assignment.job_id, assignment.lease_token, seq, cursor, status="error", error=str(error)
        )
        await self._switchboard.report_backfill(progress)

    def _poll_in_s(self) -> float:
        """How long to wait before the next poll."""
        last = self._polls.get(self._endpoint_identity)
        return 0.0 if last is None else max(0.0, last + SHORTEST_POLL_S - self._clock())

    async def _flush(self) -> None:
        """Report what was done before the process ends."""
        if self._walk is not None:
            with contextlib.suppress(PostroomError, OSError, TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._walk.flush()


def _reason(error: Exception) -> str:
    """Only our own errors are quoted: others may contain mail."""
    name = type(error).__name__
    return masked_urls(f"{name}: {error}") if isinstance(error, PostroomError | OSError) else name

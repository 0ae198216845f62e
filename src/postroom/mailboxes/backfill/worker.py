"""Works on the backfill jobs of one connector: asks for one, walks it, and keeps it between slices.

Two drivers: a connector in its own process works by itself (`run`); one inside the switchboard's process works a slice
whenever a job asks for it (`work_for`). The switchboard is polled no more often than every minute, whoever drives.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NamedTuple

import structlog

from postroom.core.errors import BadInput, PostroomError
from postroom.mailboxes.backfill.lease import KeptLease
from postroom.mailboxes.backfill.walk import JobStopped, Walk
from postroom.sources.runtime import pause
from postroom.sources.switchboard_client import BackfillAssignment, BackfillProgress, BackfillSource
from postroom.vault.masking import masked_urls

log = structlog.get_logger()

SHORTEST_POLL_S = 60.0
FLUSH_S = 2.0
# A slice stops reading this long before its end, so that it can finish its last batch and report.
MARGIN_S = 5.0
AGAIN_IF_BUSY_S = 30.0
AGAIN_IF_RUNNING_S = 300.0


class SliceResult(NamedTuple):
    """The outcome of a slice: the state of the job (`idle` without one), what was done, and when to go on; None if
    there is nothing to do.
    """

    status: str
    processed: int = 0
    skipped: int = 0
    again_in_s: float | None = None


class BackfillWorker:
    """The backfill jobs of one endpoint, one at a time. `begin` makes the walk of an assignment.

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
        poll_interval_s: float,
        clock: Callable[[], float],
        polls: dict[str, float] | None = None,
        lease: KeptLease | None = None,
        refresh: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._switchboard = switchboard
        self._connector_type = connector_type
        self._endpoint_identity = endpoint_identity
        self._begin = begin
        self._poll_interval_s = max(SHORTEST_POLL_S, poll_interval_s)
        self._clock = clock
        self._polls = {} if polls is None else polls
        self._lease = lease or KeptLease()
        self._refresh = refresh
        self._walk: Walk | None = None
        self._one_at_a_time = asyncio.Lock()
        self._runs = False

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` or cancellation. Errors make it wait, but never end it."""
        self._runs = True
        try:
            while not stop.is_set():
                wait_s: float | None = self._poll_interval_s
                try:
                    wait_s = (await self._work(None)).again_in_s
                except (PostroomError, OSError) as error:
                    log.warning("backfill.stopped", error=masked_urls(f"{type(error).__name__}: {error}"))
                await pause(stop, timedelta(seconds=self._poll_in_s() if wait_s is None else wait_s))
        finally:
            self._runs = False
            await self._flush()

    async def work_for(self, seconds: float) -> SliceResult:
        """Work one slice of at most this long."""
        if self._runs:
            return SliceResult("idle") if self._walk is None else SliceResult("active", again_in_s=AGAIN_IF_RUNNING_S)
        if self._one_at_a_time.locked():
            return SliceResult("active", again_in_s=AGAIN_IF_BUSY_S)
        before = self._counted()
        try:
            async with asyncio.timeout(seconds):
                return await self._work(self._clock() + max(0.0, seconds - MARGIN_S))
        except TimeoutError:
            return SliceResult("active", *self._since(before), again_in_s=0.0)

    async def _work(self, until: float | None) -> SliceResult:
        async with self._one_at_a_time:
            if self._walk is None:
                if (wait_s := self._poll_in_s()) > 0:
                    return SliceResult("idle", again_in_s=wait_s)
                self._walk = await self._poll()
            if (walk := self._walk) is None:
                return SliceResult("idle")
            before = self._counted()
            try:
                wait_s = await walk.work(until)
            except JobStopped as stopped:
                self._walk = None
                log.info("backfill.job_stopped", status=stopped.status, reason=str(stopped))
                done = walk.processed - before[0], walk.skipped - before[1]
                return SliceResult(stopped.status, *done, again_in_s=self._poll_in_s())
            return SliceResult("active", *self._since(before), again_in_s=wait_s)

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
        return 0.0 if last is None else max(0.0, last + self._poll_interval_s - self._clock())

    def _counted(self) -> tuple[int, int]:
        return (0, 0) if self._walk is None else (self._walk.processed, self._walk.skipped)

    def _since(self, before: tuple[int, int]) -> tuple[int, int]:
        processed, skipped = self._counted()
        return processed - before[0], skipped - before[1]

    async def _flush(self) -> None:
        """Report what was done before the process ends."""
        if self._walk is not None:
            with contextlib.suppress(PostroomError, OSError, TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._walk.flush()

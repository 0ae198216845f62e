"""The walk of a backfill job: backward through its window, span by span, until it is done or told to stop.

**Blind, it stops.** Nothing is read or ingested unless the switchboard has answered a report within the last 30 s and
said that the job is active. A report that fails is repeated until it gets through.

**Live mail first.** When the messages of a span have been listed, live mail is brought up to date before any of them is
ingested. So a message that has just come is ingested as live mail, and the walk finds it ingested already.

**Only where mail is.** After a span without mail, the walk looks whether anything is older. So a window from 1970 on
does not cost hundreds of searches in the years before the first message.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Literal, NoReturn, Protocol, TypeVar

import structlog

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.window import Window
from postroom.core.errors import (
    AccountUnusable,
    BadInput,
    IntakeRefused,
    LeaseLost,
    MailboxLater,
    MailboxRefused,
    NeedsPerson,
    NotAllowed,
    NotFound,
    PostroomError,
    Refused,
    SwitchboardUnavailable,
)
from postroom.mailboxes.backfill.archive import Archive
from postroom.mailboxes.backfill.delivery import BackfillDelivery
from postroom.mailboxes.backfill.pace import Pace
from postroom.mailboxes.backfill.reporting import Reporting
from postroom.mailboxes.backfill.selection import Batch, Selection
from postroom.sources.switchboard_client import BackfillAssignment

log = structlog.get_logger()

T = TypeVar("T")
# Errors that waiting does not fix: the user or the operator must act.
NEEDS_A_PERSON = (Refused, AccountUnusable, NeedsPerson, NotAllowed)
LONGEST_PAUSE_S = 60.0


class JobStopped(PostroomError):
    """The switchboard says that the job is not active, or not this connector's: nothing more is done for it."""

    def __init__(self, status: str, message: str = "") -> None:
        super().__init__(message or f"the backfill job is {status}")
        self.status = status


class LiveMail(Protocol):
    """The live side of the same connector."""

    async def sync(self) -> int:
        """Ingest everything that is new."""
        ...

    async def idle(self) -> None:
        """Wait until live mail is not being ingested."""
        ...


class Walk:
    """One assignment, from its cursor on. The clock is monotonic, in seconds."""

    def __init__(
        self,
        assignment: BackfillAssignment,
        archive: Archive,
        selection: Selection,
        delivery: BackfillDelivery,
        reporting: Reporting,
        live: LiveMail,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._assignment = assignment
        self._window = assignment.window
        self._cursor = assignment.cursor
        self._archive = archive
        self._selection = selection
        self._delivery = delivery
        self._reporting = reporting
        self._live = live
        self._pace = Pace(assignment.rate_limit_per_hour, clock, assignment.wait_s)
        self._ids: deque[str] | None = None
        """The messages of the span that are left; None before it was listed."""
        self._batch: Batch | None = None
        """Messages that were read and are not all ingested yet."""

    async def work(self) -> NoReturn:
        """Work until the job has ended or has to stop, and raise JobStopped. An error that needs a person is raised
        too, and the job stays as it is: it is continued by working again.
        """
        try:
            if not self._reporting.is_current:
                await self._report()
            while not self._cursor.at_end(self._window):
                await self._walk_span()
            await self._report("completed")
        except NEEDS_A_PERSON:
            await self.flush()
            raise
        raise JobStopped("lost", "the switchboard does not accept that the job is completed")

    async def flush(self) -> None:
        """Report what was done. If that fails, it is repeated before anything else is done."""
        if self._reporting.has_news:
            await self._try_to_report()

    async def _walk_span(self) -> None:
        span = self._cursor.span(self._window)
        if self._ids is None:
            self._ids = await self._patiently(lambda: self._list(span))
            if not self._ids and await self._patiently(self._is_last):
                self._cursor = BackfillCursor.end(self._window)
                return
        while self._ids or self._batch:
            if self._batch is None:
                ids = [self._ids[place] for place in range(min(await self._turn(), len(self._ids)))]
                self._pace.take(len(ids))
                self._batch = await self._patiently(lambda ids=ids: self._read(ids, span))
            await self._deliver(self._batch)
            self._settle(self._batch)
            if self._reporting.is_full() or self._assignment.in_background:
                await self._report()
        self._cursor, self._ids = self._cursor.next_span(self._window), None

    async def _list(self, span: Window) -> deque[str]:
        left = self._cursor.left(await self._archive.ids(span))
        if left:
            await self._live.sync()
        return deque(left)

    async def _is_last(self) -> bool:
        """Whether nothing is older than the span."""
        before = self._cursor.next_span(self._window)
        if before.at_end(self._window):
            return True
        return not await self._archive.has_mail(Window(self._window.date_from, before.day, self._window.zone))

    async def _read(self, ids: list[str], span: Window) -> Batch:
        return self._selection.of(ids, await self._archive.read(ids), span)

    async def _turn(self) -> int:
        """Wait until messages may be read; return how many."""
        while True:
            if not self._reporting.is_current or (self._affordable() <= 0 and self._reporting.has_news):
                await self._report()
            if self._assignment.in_background:
                await self._meanwhile(self._live.idle)
            wait_s = self._wait_s()
            if not wait_s:
                return min(self._pace.at_once, self._reporting.room(), self._affordable())
            await self._wait(wait_s)

    def _wait_s(self) -> float:
        """How long to wait before the next messages; until the next report if only its answer can end the wait."""
        is_behind_live = self._assignment.in_background and self._reporting.status.live_backlog
        if is_behind_live or self._affordable() <= 0:
            return self._reporting.due_in_s()
        return self._pace.wait_s()

    def _affordable(self) -> int:
        """How many messages the rest of the day's cap allows: the last of them may exceed it."""
        left, cost = self._reporting.status.left_today_micros, self._assignment.message_cost_micros
        if left is None or cost <= 0:
            return self._pace.at_once
        return -(-(left - self._reporting.done.spent_micros) // cost)

    async def _deliver(self, batch: Batch) -> None:
        """Ingest the batch. If the intake refuses it, keep what it accepted before, and stop."""
        failures = 0
        while True:
            try:
                trouble = await self._delivery.send(batch)
            except PostroomError as error:
                trouble = error
            if trouble is None:
                return
            if isinstance(trouble, NEEDS_A_PERSON):
                self._settle(batch)
                await self._report()
                raise trouble
            failures += 1
            await self._report()
            await self._wait(_pause_after(trouble, failures))

    def _settle(self, batch: Batch) -> None:
        """Count the messages that have an outcome, up to the first that has none; that and the rest are done again."""
        ids = self._ids or deque()
        for id in batch.ids:
            if (end := batch.ends.get(id)) is None:
                break
            self._reporting.done.add(id, end)
            self._cursor = self._cursor.done(id)
            ids.popleft()
        self._batch = None

    async def _report(self, status: Literal["active", "completed", "error"] = "active", error: str = "") -> None:
        """Report, until it gets through. Raises JobStopped, unless the job is active."""
        failures = 0
        while (trouble := await self._try_to_report(status, error)) is not None:
            failures += 1
            await asyncio.sleep(_pause_after(trouble, failures))

    async def _try_to_report(
        self, status: Literal["active", "completed", "error"] = "active", error: str = ""
    ) -> PostroomError | None:
        """Report once; return why it did not get through. Raises JobStopped."""
        try:
            answer = await self._reporting.send(self._cursor, status, error or None)
        except (SwitchboardUnavailable, IntakeRefused) as trouble:
            log.warning("backfill.not_reported", error=type(trouble).__name__)
            return trouble
        except (LeaseLost, Refused, NotFound, BadInput) as trouble:
            raise JobStopped("lost", f"{type(trouble).__name__}: {trouble}") from trouble
        self._pace.hold(answer.wait_s)
        if answer.status != "active":
            raise JobStopped(answer.status)
        return None

    async def _wait(self, seconds: float) -> None:
        await self._meanwhile(lambda: asyncio.sleep(seconds))

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something at the mailbox. If the mailbox fails, wait and try again."""
        failures = 0
        while True:
            try:
                return await self._meanwhile(work)
            except (JobStopped, *NEEDS_A_PERSON):
                raise
            except MailboxRefused as error:
                await self._report("error", f"the mailbox refuses the search ({type(error).__name__}: {error})")
                raise JobStopped("lost", "the switchboard does not accept that the job has failed") from error
            except (PostroomError, OSError) as error:
                failures += 1
                pause_s = _pause_after(error, failures)
                log.warning("backfill.waiting", error=type(error).__name__, seconds=pause_s)
                await self._wait(pause_s)

    async def _meanwhile(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await the work, and report meanwhile when that is due. Abandon it when told to stop; if a report fails, begin
        it again when one has got through.
        """
        while True:
            task = asyncio.ensure_future(work())
            try:
                while not task.done():
                    await asyncio.wait({task}, timeout=self._reporting.due_in_s())
                    if not task.done() and await self._try_to_report() is not None:
                        break
                else:
                    return task.result()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await self._report()


def _pause_after(error: Exception, failures: int) -> float:
    if isinstance(error, IntakeRefused | MailboxLater) and error.retry_after is not None:
        return max(0.0, error.retry_after / timedelta(seconds=1))
    return min(LONGEST_PAUSE_S, 2.0 ** min(failures, 10))

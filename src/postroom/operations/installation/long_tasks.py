"""Long work of this process that somebody waits for on a page: it reports progress, and it can be canceled.

Few may run at once, and only the newest few are remembered. Work that changes nothing is canceled when nobody has
looked at it for a while, so that closing the page is enough. Nothing is stored here, and a restart forgets them all:
work that changes something records by itself how far it came.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import structlog

from postroom.core.errors import BadInput, MailboxError, NotFound, Refused
from postroom.system.wall_clock import Clock, wall_clock

log = structlog.stdlib.get_logger(__name__)

MOST_RUNNING = 2
MOST_REMEMBERED = 20
UNWATCHED_S = 120.0

About = TypeVar("About")
T = TypeVar("T")
Report = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""
TaskState = Literal["running", "done", "failed", "canceled"]


class FromPage(NamedTuple):
    """The title of a task that was started on a page, and the address of that page."""

    title: str
    back: str


@dataclass(slots=True)
class LongTask(Generic[About, T]):
    """One piece of work. `result` is there when it is done; `problem` says why it failed."""

    id: str
    about: About
    started_at: datetime
    looked_at: float
    state: TaskState = "running"
    done: int = 0
    total: int = 0
    result: T | None = None
    problem: str = ""


class LongTasks(Generic[About, T]):
    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        most_running: int = MOST_RUNNING,
        unwatched_s: float | None = UNWATCHED_S,
        *,
        most_remembered: int = MOST_REMEMBERED,
        now: Clock = wall_clock,
    ) -> None:
        """`unwatched_s` is None for work that goes on when nobody looks."""
        self._clock = clock
        self._now = now
        self._most_running = most_running
        self._most_remembered = most_remembered
        self._unwatched_s = unwatched_s
        self._tasks: dict[str, LongTask[About, T]] = {}
        self._running: dict[str, asyncio.Task[TaskState]] = {}
        self._news = asyncio.Event()

    def start(
        self, about: About, work: Callable[[Report], Coroutine[Any, Any, T]], id: str | None = None
    ) -> LongTask[About, T]:
        """Start the work, in place of earlier work of this id that has ended. Raises Refused if enough is running."""
        self.cancel_unwatched()
        if (count := len(self._running)) >= self._most_running:
            others = "another one is" if count == 1 else f"{count} others are"
            raise Refused(f"cannot start: {others} running; wait for it to end, or cancel it")
        task = LongTask[About, T](id or secrets.token_urlsafe(9), about, self._now(), self._clock())
        self._tasks.pop(task.id, None)
        self._tasks[task.id] = task
        self._forget_oldest()
        running = asyncio.create_task(self._run(task, work), name="long-task")
        self._running[task.id] = running
        running.add_done_callback(lambda ended: self._end(task, ended))
        self._announce()
        return task

    def look(self, id: str) -> LongTask[About, T]:
        """Return the task as it is now, for somebody who looks at it. Raises NotFound if it was forgotten."""
        task = self.find(id)
        if task is None:
            raise NotFound("this work is over and forgotten, or Postroom was restarted; start it again")
        return task

    def find(self, id: str) -> LongTask[About, T] | None:
        """Return the task as it is now, for somebody who looks at it; None if it was forgotten.

        The answer stays as it is: while a page is drawn the work goes on, and the page must not show two moments.
        """
        self.cancel_unwatched()
        task = self._tasks.get(id)
        if task is None:
            return None
        task.looked_at = self._clock()
        return replace(task)

    async def wait(self, id: str, patience_s: float) -> LongTask[About, T]:
        """Return the task when it has ended, or after the given time."""
        if (running := self._running.get(id)) is not None:
            await asyncio.wait([running], timeout=patience_s)
        return self.look(id)

    async def cancel(self, id: str) -> bool:
        """Cancel the task and wait for its end. False if it had ended before, or nothing is known of it."""
        if (running := self._running.get(id)) is None:
            return False
        running.cancel()
        await asyncio.wait([running])
        return True

    def cancel_unwatched(self) -> None:
        """Cancel what nobody has looked at for a while."""
        for id, running in self._running.items():
            if self._unwatched_s is not None and self._clock() - self._tasks[id].looked_at > self._unwatched_s:
                running.cancel()

    def close(self) -> None:
        for running in self._running.values():
            running.cancel()

    async def changes(self) -> AsyncIterator[None]:
        """Yield at once, and then whenever any of the tasks made progress or ended."""
        while True:
            news = self._news
            yield
            await news.wait()

    async def _run(self, task: LongTask[About, T], work: Callable[[Report], Coroutine[Any, Any, T]]) -> TaskState:
        def report(done: int, total: int) -> None:
            task.done, task.total = done, total
            self.cancel_unwatched()
            self._announce()

        try:
            task.result = await work(report)
        except (BadInput, MailboxError, NotFound, Refused) as error:
            task.problem = str(error)
            return "failed"
        except Exception as error:
            # Only the type: the text of an unexpected error may contain mail, and the title names a rule.
            log.warning("long_task.failed", error=type(error).__name__)
            task.problem = "it could not be finished; the log has the cause"
            return "failed"
        return "done"

    def _end(self, task: LongTask[About, T], ended: asyncio.Task[TaskState]) -> None:
        self._running.pop(task.id, None)
        task.state = "canceled" if ended.cancelled() else ended.result()
        self._announce()

    def _forget_oldest(self) -> None:
        for id in list(self._tasks)[: max(0, len(self._tasks) - self._most_remembered)]:
            if id not in self._running:
                del self._tasks[id]

    def _announce(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

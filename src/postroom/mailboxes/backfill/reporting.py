"""Reports the progress of a backfill: what was done since the last report, numbered, so that each counts once.

A report whose answer was lost is repeated unchanged, under the same number, before anything else is reported.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, assert_never

from postroom.core.backfill.cursor import BackfillCursor
from postroom.sources.switchboard_client import (
    BackfillAssignment,
    BackfillProgress,
    BackfillSource,
    BackfillStatus,
    FailedMessage,
)

AT_LEAST_EVERY_S = 30.0
MOST_FAILED = 50
"""Beyond this many failures a report is due. With those of one batch they stay below the limit of 100."""
LONGEST_ERROR = 500


class End(NamedTuple):
    """The outcome of one message. `outside` is not in the window, and is not counted."""

    kind: Literal["processed", "skipped", "failed", "outside"]
    reason: str = ""
    categories: Sequence[str] = ()
    cost_micros: int = 0


@dataclass(slots=True)
class WorkSinceReport:
    """The work done since the last report."""

    processed: int = 0
    skipped: int = 0
    spent_micros: int = 0
    failed: list[FailedMessage] = field(default_factory=list[FailedMessage])
    categories: Counter[str] = field(default_factory=Counter[str])

    @property
    def messages(self) -> int:
        return self.processed + self.skipped

    def add(self, id: str, end: End) -> None:
        match end.kind:
            case "processed":
                self.processed += 1
                self.spent_micros += end.cost_micros
                self.categories.update(end.categories)
            case "skipped":
                self.skipped += 1
            case "failed":
                self.skipped += 1
                self.failed.append(FailedMessage(id, end.reason))
            case "outside":
                pass
            case _:
                assert_never(end.kind)


class Reporting:
    """The reports about one assignment. The clock is monotonic, in seconds."""

    def __init__(
        self,
        switchboard: BackfillSource,
        assignment: BackfillAssignment,
        interval: int,
        clock: Callable[[], float],
    ) -> None:
        self._switchboard = switchboard
        self._assignment = assignment
        self._interval = interval
        self._clock = clock
        self._seq = assignment.batch_seq
        self._unanswered: BackfillProgress | None = None
        self._answered_at: float | None = None
        self.done = WorkSinceReport()
        self.status = BackfillStatus("active")
        """The last answer."""

    @property
    def is_current(self) -> bool:
        """Whether the last report got through, and is recent enough to go on."""
        return self._unanswered is None and self.due_in_s() > 0

    @property
    def has_news(self) -> bool:
        return self.done.messages > 0

    def room(self) -> int:
        """How many more messages may be done before a report is due."""
        return self._interval - self.done.messages

    def is_full(self) -> bool:
        return self.room() <= 0 or len(self.done.failed) >= MOST_FAILED

    def due_in_s(self) -> float:
        if self._answered_at is None:
            return 0.0
        return max(0.0, self._answered_at + AT_LEAST_EVERY_S - self._clock())

    async def send(
        self,
        cursor: BackfillCursor,
        status: Literal["active", "completed", "error"] = "active",
        error: str | None = None,
    ) -> BackfillStatus:
        """Send what was done. If this raises, calling it again repeats the same report."""
        if self._unanswered is not None:
            answer = await self._exchange(self._unanswered)
            if answer.status != "active" or (status == "active" and not self.has_news):
                return answer
        done, self.done = self.done, WorkSinceReport()
        self._unanswered = BackfillProgress(
            self._assignment.job_id,
            self._assignment.lease_token,
            self._seq + 1,
            cursor,
            done.processed,
            done.skipped,
            done.spent_micros,
            tuple(done.failed),
            dict(done.categories),
            status,
            None if error is None else error[:LONGEST_ERROR],
        )
        return await self._exchange(self._unanswered)

    async def _exchange(self, progress: BackfillProgress) -> BackfillStatus:
        self.status = await self._switchboard.report_backfill(progress)
        self._unanswered, self._seq, self._answered_at = None, progress.batch_seq, self._clock()
        return self.status

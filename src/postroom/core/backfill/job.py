"""A backfill job: its window, its limits, and the progress that connectors report."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.window import Window
from postroom.core.errors import BadInput
from postroom.core.lifecycle import BackfillStatus
from postroom.core.mail.categories import CATEGORIES
from postroom.core.money import MICROS_PER_CENT
from postroom.core.views import Internal, Shown, Untrusted

BackfillMode = Literal["batch", "background"]
ReportedStatus = Literal["active", "completed", "error"]

MOST_OPEN = 100
MOST_FAILED = 100
HIGHEST_RATE = 1_000_000
HIGHEST_CAP = 10_000_000
# More in one report is no progress but nonsense; a connector reports every fifty messages or so.
MOST_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class NewBackfill:
    """A backfill as it is asked for. `resume_daily`: after a day that ended at the cap, it continues by itself.

    `acts`: decisions about its mail are carried out; otherwise they are only recorded.
    """

    connector_type: str
    endpoint_identity: str
    target_categories: tuple[str, ...]
    date_from: date
    date_to: date
    rate_limit_per_hour: int = 100
    daily_cost_cap_cents: int = 500
    consent: bool = False
    mode: BackfillMode = "batch"
    resume_daily: bool = False
    acts: bool = False
    estimate_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class BackfillJob:
    """A backfill job as it is stored. `messages_waiting` arrived and wait for a decision that may cost something.

    In millionths of a dollar, `spent_micros` is the cost so far, and `expected_micros` the probable cost of the waiting
    messages.
    """

    id: UUID
    connector_type: str
    endpoint_identity: str
    target_categories: tuple[str, ...]
    date_from: date
    date_to: date
    rate_limit_per_hour: int
    daily_cost_cap_cents: int
    status: BackfillStatus
    cursor: Internal[Mapping[str, Any] | None]
    rows_processed: int
    rows_skipped: int
    cost_spent_cents: Internal[int]
    error: Untrusted[str | None]
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime
    mode: BackfillMode
    resume_daily: bool
    acts: bool
    message_cost_micros: Internal[int]
    estimate_id: UUID | None
    lease_token: Internal[UUID | None]
    lease_until: Internal[datetime | None]
    lease_holder: Internal[str | None]
    batch_seq: Internal[int]
    paced_until: Internal[datetime | None]
    accepted: Internal[int]
    accepted_new: Internal[int]
    covered: Internal[int]
    rows_failed: int
    spent_micros: int
    categories: Internal[dict[str, int]]
    capped_on: Internal[str | None]
    spent_today_micros: int
    messages_waiting: int

    @property
    def expected_micros(self) -> Shown[int]:
        """The expected cost of the messages that wait for a decision."""
        return self.messages_waiting * self.message_cost_micros

    @property
    def left_today_micros(self) -> Shown[int]:
        """The rest of today's cap; work in progress counts as spent."""
        cap = self.daily_cost_cap_cents * MICROS_PER_CENT
        return max(0, cap - self.spent_today_micros - self.expected_micros)

    def window(self, zone: ZoneInfo) -> Window:
        return Window(self.date_from, self.date_to, zone)


class FoundMail(NamedTuple):
    """How many messages of a category and a year (UTC) a backfill has brought in."""

    category: str
    year: int
    messages: int


class FailedMessage(NamedTuple):
    """A message that could not be read, or was refused, and why."""

    message_id: Untrusted[str]
    reason: Untrusted[str]


@dataclass(frozen=True, slots=True)
class Progress:
    """The work of a connector since its last report. A message that failed is also skipped."""

    rows_processed: int = 0
    rows_skipped: int = 0
    cost_micros: int = 0
    cursor: BackfillCursor | None = None
    status: ReportedStatus = "active"
    error: str | None = None
    failed: tuple[FailedMessage, ...] = ()
    categories: Mapping[str, int] = field(default_factory=dict[str, int])
    batch_seq: int | None = None
    lease_token: UUID | None = None


def check_limits(new: NewBackfill) -> None:
    """Check rate, cap and consent. Raises BadInput."""
    if not 1 <= new.rate_limit_per_hour <= HIGHEST_RATE:
        raise BadInput("rate_limit_per_hour", f"is {new.rate_limit_per_hour}", f"use 1 to {HIGHEST_RATE:,}")
    if not 1 <= new.daily_cost_cap_cents <= HIGHEST_CAP:
        raise BadInput("daily_cost_cap_cents", f"is {new.daily_cost_cap_cents}", f"use 1 to {HIGHEST_CAP:,}")
    if not new.consent:
        raise BadInput(
            "consent", "is missing", "a backfill reads old mail and may cost money: give true if its owner agrees"
        )


def check_progress(progress: Progress, job: BackfillJob, window: Window) -> None:
    """Check a report against the stored job: a connector is not trusted. Raises BadInput."""
    for name in ("rows_processed", "rows_skipped", "cost_micros"):
        value = getattr(progress, name)
        if not 0 <= value <= MOST_ROWS * MICROS_PER_CENT:
            raise BadInput(name, f"is {value}", "report the progress since the last report, 0 or more")
    for name, count in progress.categories.items():
        if name not in CATEGORIES:
            raise BadInput("categories", f"{name[:80]!r} is unknown", f"use {', '.join(CATEGORIES)}")
        if not 0 <= count <= progress.rows_processed:
            problem = f"has {count} messages in {name}, but {progress.rows_processed} were ingested"
            raise BadInput("categories", problem, "count each message that was ingested once in each of its categories")
    if len(progress.failed) > progress.rows_skipped:
        raise BadInput("failed", f"names {len(progress.failed)} messages", "count them in rows_skipped as well")
    if job.rows_processed + progress.rows_processed > job.accepted:
        problem = (
            f"would be {job.rows_processed + progress.rows_processed}, but only {job.accepted} messages arrived for it"
        )
        remedy = "send each message with control.backfill_job_id, and count it after the switchboard has accepted it"
        raise BadInput("rows_processed", problem, remedy)
    before = BackfillCursor.stored(job.cursor)
    if progress.cursor is not None and before is not None and progress.cursor.is_behind(before):
        raise BadInput("cursor", "goes back to mail that is done", "continue where the last report ended")
    reached = progress.cursor or before
    if progress.status == "completed" and (reached is None or not reached.at_end(window)):
        raise BadInput(
            "status", "cannot be completed: the cursor has not reached date_from", "walk on, or report error"
        )

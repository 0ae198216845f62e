"""Backfills as connectors work on them, over MCP: they poll for one, and report their progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Annotated, Any
from uuid import UUID

from postroom.core.access import CONNECTORS
from postroom.core.backfill.cursor import parse_cursor
from postroom.core.backfill.job import (
    MOST_FAILED,
    MOST_ROWS,
    BackfillJob,
    BackfillMode,
    FailedMessage,
    Progress,
    ReportedStatus,
)
from postroom.core.backfill.window import Window
from postroom.core.bounds import not_its_identity, own_identity
from postroom.core.lifecycle import BackfillStatus
from postroom.core.money import MICROS_PER_CENT
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.backfill.backfill_work import BackfillWork
from postroom.operations.caller import Caller
from postroom.operations.nouns import BACKFILL
from postroom.operations.operation import ADDS, Argument, Spread, tool
from postroom.store.backfill.backfill_work import LEASE

HELD = "The lease that this connector had before it was started again: it gets the job back."
INGESTED = "How many messages were ingested since the last report, each with control.backfill_job_id."
LEASED = "The lease that `backfill.poll` gave; without it, the token must be the one that polled."

Count = Annotated[int, Argument("", 0, MOST_ROWS)]


@dataclass(frozen=True, slots=True)
class ParamsForm:
    """Days are inclusive, and those of `time_zone`. `message_cost_micros`: report it for each new full message."""

    target_categories: Sequence[str]
    date_from: date
    date_to: date
    time_zone: str
    rate_limit_per_hour: int
    daily_cost_cap_cents: int
    message_cost_micros: int
    mode: BackfillMode


@dataclass(frozen=True, slots=True)
class AssignedBackfill:
    """Without work, `job_id` is null; each message of the job carries it in its envelope, as `control.backfill_job_id`.
    The job is the caller's for `lease_s` seconds after each report.
    """

    job_id: UUID | None = None
    params: ParamsForm | None = None
    cursor: Mapping[str, Any] | None = None
    lease_token: UUID | None = None
    lease: timedelta = LEASE
    batch_seq: int = 0
    wait: timedelta = timedelta(0)


@BACKFILL.operation(CONNECTORS, tool("backfill.poll", "Ask for a backfill to work on", ADDS))
async def poll_backfill(
    by: Caller,
    backfills: Backfills,
    work: BackfillWork,
    /,
    connector_type: Annotated[str, Argument("The kind of this connector.", most=80)],
    endpoint_identity: Annotated[str, Argument("The mailbox that this token is bound to.")],
    lease_token: Annotated[UUID | None, Argument(HELD)] = None,
) -> AssignedBackfill:
    """Hands out the backfill of this connector's mailbox that has waited longest, or one whose connector stopped
    reporting, with the cursor at which to continue. Wait wait_s seconds before the first message. Ingest each message
    with job_id as control.backfill_job_id: only such messages count for the job. Report with backfill.progress at least
    every 30 seconds, each report numbered one above batch_seq. Ask at most once a minute.
    """
    if endpoint_identity != own_identity(by.program):
        raise not_its_identity(by.program, "endpoint_identity")
    found = await work.poll(connector_type, endpoint_identity, by.signature, lease_token)
    if found is None:
        return AssignedBackfill()
    job = found.job
    params = ParamsForm(
        target_categories=job.target_categories,
        date_from=job.date_from,
        date_to=job.date_to,
        time_zone=str(backfills.zone),
        rate_limit_per_hour=job.rate_limit_per_hour,
        daily_cost_cap_cents=job.daily_cost_cap_cents,
        message_cost_micros=job.message_cost_micros,
        mode=job.mode,
    )
    return AssignedBackfill(job.id, params, job.cursor, job.lease_token, LEASE, job.batch_seq, found.wait)


@dataclass(frozen=True, slots=True)
class FailedForm:
    """A message that could not be read, as its connector reports it."""

    message_id: Annotated[str, Argument("The message, by the provider's id.", most=512)]
    reason: Annotated[str, Argument("Why, in a few words, without mail content.", most=2000)]


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """The work of a connector since its last report, as it sends it."""

    rows_processed: Annotated[int, Argument(INGESTED, 0, MOST_ROWS)]
    rows_skipped: Annotated[int, Argument("How many were read and not ingested since the last report.", 0, MOST_ROWS)]
    cost_spent_cents: Annotated[
        int, Argument("What this will cost, in US cents; 0 if cost_spent_micros is given.", 0, MOST_ROWS)
    ]
    cursor: Annotated[
        Mapping[Annotated[str, Argument("", 0, 0)], Any] | None,
        Argument("How far the walk has come: day, since, id."),
    ] = None
    status: Annotated[ReportedStatus | None, Argument("completed, or error; by default it continues.")] = None
    error: Annotated[str | None, Argument("What went wrong, with the status error.", 0, 2000)] = None
    lease_token: Annotated[UUID | None, Argument(LEASED)] = None
    batch_seq: Annotated[
        int | None, Argument("The number of this report; the same number twice counts once.", 1, 2**53)
    ] = None
    cost_spent_micros: Annotated[
        int | None, Argument("The same cost in millionths of a dollar.", 0, MOST_ROWS * MICROS_PER_CENT)
    ] = None
    failed: Annotated[Sequence[FailedForm], Argument("Those of the skipped that failed.", most=MOST_FAILED)] = field(
        default_factory=list[FailedForm]
    )
    categories: Annotated[
        Mapping[Annotated[str, Argument("", 1, 80)], Count],
        Argument("How many of the ingested are in each category.", most=20),
    ] = field(default_factory=dict[str, int])

    def within(self, window: Window) -> Progress:
        """The progress of a job with this window."""
        micros = self.cost_spent_micros
        return Progress(
            rows_processed=self.rows_processed,
            rows_skipped=self.rows_skipped,
            cost_micros=self.cost_spent_cents * MICROS_PER_CENT if micros is None else micros,
            cursor=None if self.cursor is None else parse_cursor(self.cursor, window),
            status=self.status or "active",
            error=self.error,
            failed=tuple(FailedMessage(each.message_id, each.reason) for each in self.failed),
            categories=self.categories,
            batch_seq=self.batch_seq,
            lease_token=self.lease_token,
        )


@dataclass(frozen=True, slots=True)
class RecordedProgress:
    """If `status` is not active, stop at once. With `live_backlog`, a background job waits."""

    status: BackfillStatus
    batch_seq: int
    live_backlog: bool
    left_today_micros: int
    wait: timedelta


@BACKFILL.operation(CONNECTORS, tool("backfill.progress", "Report the progress of a backfill", ADDS))
async def report_progress(
    by: Caller,
    backfills: Backfills,
    work: BackfillWork,
    /,
    job_id: Annotated[UUID, Argument("The backfill, as `backfill.poll` named it.")],
    report: Annotated[ProgressReport, Spread()],
) -> RecordedProgress:
    """Records what was done since the last report, and keeps the job leased to this connector. The status that is
    returned counts: unless it is active, stop at once. The error lease_lost means that the job is no longer this
    connector's; no_room that this is more than its rate allows: repeat the report after retry_after_s.
    """
    job = await _own(by, backfills, job_id)
    state = await work.progress(job.id, report.within(job.window(backfills.zone)), by.signature)
    now = state.job
    return RecordedProgress(now.status, now.batch_seq, state.live_backlog, now.left_today_micros, state.wait)


async def _own(by: Caller, backfills: Backfills, id: UUID) -> BackfillJob:
    """The backfill with this id, if it is one of the caller's mailbox."""
    job = await backfills.load(id)
    if job.endpoint_identity != own_identity(by.program):
        raise not_its_identity(by.program, "job_id")
    return job

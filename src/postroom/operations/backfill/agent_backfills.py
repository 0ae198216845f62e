"""Backfills as programs ask for them over MCP: estimate one, create it, follow it, pause, resume and cancel it.

These tools answer in less than the API does, since a model pays for each word that it reads. They also wait: there is
no run of an estimate to ask for, and a backfill is created at once, with its owner's consent instead of the agreed sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Strict

from postroom.core.access import READ, STEER
from postroom.core.backfill.job import HIGHEST_CAP, HIGHEST_RATE, BackfillJob, BackfillMode, NewBackfill
from postroom.core.errors import MailboxLater
from postroom.core.lifecycle import BackfillStatus
from postroom.core.views import Untrusted
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.backfill.backfill_estimate import BackfillEstimates, EstimateForm, MadeEstimate, SampleFailed
from postroom.operations.caller import Caller
from postroom.operations.nouns import BACKFILL
from postroom.operations.operation import ADDS, ADDS_ONCE, ENDS, READS, Argument, Spread, tool
from postroom.settings.mailboxes import BackfillSettings
from postroom.store.engine.cursors import Cursor, read_cursor

MOST_LISTED = 50
MOST_CATEGORIES = 20
CATEGORIES = "Which mail to fetch: finance, health, relationship, travel, newsletters."
MODE = "`background` works only while no live mail waits; `batch` works at its rate."
RESUMES = "Whether it continues by itself on the day after one that ended at the cap."
ACTS = "Whether decisions about its mail are carried out; by default they are only recorded."

JobId = Annotated[UUID, Argument("The backfill, as `create_backfill_job` or `backfill.list` named it.")]


@dataclass(frozen=True, slots=True)
class RequestedBackfill:
    """The mail of a mailbox to fetch, and the limits; those of the settings where none are given."""

    connector_type: Annotated[str, Argument("The kind of connector, such as `gmail`.", most=80)]
    endpoint_identity: Annotated[str, Argument("The mailbox, as `connector.list` shows it.")]
    target_categories: Annotated[Sequence[Annotated[str, Argument(most=80)]], Argument(CATEGORIES, 1, MOST_CATEGORIES)]
    date_from: Annotated[date, Argument("The first day, such as 2019-01-01; inclusive.")]
    date_to: Annotated[date, Argument("The last day; inclusive, and not in the future.")]
    rate_limit_per_hour: Annotated[
        int | None, Argument("How many messages to read per hour; default: the setting.", 1, HIGHEST_RATE)
    ] = None
    daily_cost_cap_cents: Annotated[
        int | None, Argument("What a day may cost, in US cents; default: the setting.", 1, HIGHEST_CAP)
    ] = None

    def with_defaults(
        self,
        usual: BackfillSettings,
        *,
        consent: bool = False,
        mode: BackfillMode = "batch",
        resume_daily: bool = False,
        acts: bool = False,
        estimate_id: UUID | None = None,
    ) -> NewBackfill:
        """The backfill that is asked for."""
        return NewBackfill(
            connector_type=self.connector_type,
            endpoint_identity=self.endpoint_identity,
            target_categories=tuple(self.target_categories),
            date_from=self.date_from,
            date_to=self.date_to,
            rate_limit_per_hour=self.rate_limit_per_hour or usual.rate_limit_per_hour,
            daily_cost_cap_cents=self.daily_cost_cap_cents or usual.daily_cost_cap_cents,
            consent=consent,
            mode=mode,
            resume_daily=resume_daily,
            acts=acts,
            estimate_id=estimate_id,
        )


@dataclass(frozen=True, slots=True)
class EstimateAnswer(EstimateForm):
    """Pass `estimate_id` to create_backfill_job, so that the estimate can be compared with what it then cost."""

    estimate_id: UUID

    @classmethod
    def of(cls, made: MadeEstimate) -> Self:
        return cls(**{each.name: getattr(made.form, each.name) for each in fields(made.form)}, estimate_id=made.id)


@dataclass(frozen=True, slots=True)
class CreatedJob:
    """`overlaps` are other backfills of the mailbox that cover some of the same; each message is ingested once."""

    job_id: UUID
    status: BackfillStatus
    overlaps: Sequence[UUID]


# No docstring: a status needs no words in a schema.
@dataclass(frozen=True, slots=True)
class JobStatus:
    status: BackfillStatus


@dataclass(frozen=True, slots=True)
class BackfillForm:
    """`reached` is the day down to which it has come. In millionths of a dollar, `spent_micros` is what it has cost,
    `spent_today_micros` what today cost, and `expected_micros` what the messages that wait for a decision will probably
    cost. `cost_spent_cents` is both together, in cents, rounded up.
    """

    job_id: UUID
    connector_type: str
    endpoint_identity: str
    target_categories: Sequence[str]
    date_from: date
    date_to: date
    rate_limit_per_hour: int
    daily_cost_cap_cents: int
    status: BackfillStatus
    reached: str | None
    rows_processed: int
    rows_skipped: int
    rows_failed: int
    cost_spent_cents: int
    spent_micros: int
    expected_micros: int
    spent_today_micros: int
    messages_waiting: int
    categories: Mapping[str, int]
    mode: BackfillMode
    resume_daily: bool
    acts: bool
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime
    error: Untrusted[str | None]

    @classmethod
    def of(cls, job: BackfillJob) -> Self:
        same = {each.name: getattr(job, each.name) for each in fields(cls) if hasattr(job, each.name)}
        return cls(job_id=job.id, reached=None if job.cursor is None else str(job.cursor["day"]), **same)


# No docstring: the tool says what it lists.
@dataclass(frozen=True, slots=True)
class BackfillPage:
    backfills: Sequence[BackfillForm]
    next_before: str | None


@BACKFILL.operation(STEER, tool("create_backfill_job", "Create a backfill", ADDS))
async def create_consented(
    by: Caller,
    backfills: Backfills,
    /,
    wanted: Annotated[RequestedBackfill, Spread()],
    consent: Annotated[
        Annotated[bool, Strict()], Argument("True if the owner of the mailbox has agreed to read this old mail.")
    ],
    mode: Annotated[BackfillMode, Argument(MODE)] = "batch",
    resume_daily: Annotated[bool, Argument(RESUMES)] = False,
    acts: Annotated[bool, Argument(ACTS)] = False,
    estimate_id: Annotated[UUID | None, Argument("The estimate that was shown, from `backfill.estimate`.")] = None,
) -> CreatedJob:
    """Creates a backfill: a connector fetches the old mail of some categories between two days, under a limit per hour
    and a cap on what a day may cost. Ask for the consent of the mailbox's owner first, with the numbers of
    backfill.estimate.
    """
    new = wanted.with_defaults(
        backfills.settings, consent=consent, mode=mode, resume_daily=resume_daily, acts=acts, estimate_id=estimate_id
    )
    created = await backfills.create(new, by.signature)
    return CreatedJob(created.job.id, created.job.status, created.overlaps)


@BACKFILL.operation(STEER, tool("backfill.estimate", "Estimate a backfill", ADDS))
async def wait_for_estimate(
    by: Caller,
    backfills: Backfills,
    estimates: BackfillEstimates,
    /,
    wanted: Annotated[RequestedBackfill, Spread()],
) -> EstimateAnswer:
    """Estimates what a backfill would find, cost and take: its connector counts the messages and reads a sample of up
    to 200. Takes up to a minute and ingests nothing. Show the result to the owner of the mailbox before asking for
    consent.
    """
    try:
        made = await estimates.estimate(wanted.with_defaults(backfills.settings), by.signature)
    except SampleFailed:
        raise MailboxLater("the connector could not count; connector.list shows its state") from None
    return EstimateAnswer.of(made)


@BACKFILL.operation(STEER, tool("backfill.pause", "Pause a backfill", ADDS_ONCE))
async def pause_backfill_job(by: Caller, backfills: Backfills, /, job_id: JobId) -> JobStatus:
    """Pauses a backfill until backfill.resume. Its connector stops with its next report, within half a minute. Safe to
    repeat.
    """
    return JobStatus((await backfills.pause(job_id, by.signature)).status)


@BACKFILL.operation(STEER, tool("backfill.cancel", "Cancel a backfill", ENDS))
async def cancel_backfill_job(by: Caller, backfills: Backfills, /, job_id: JobId) -> JobStatus:
    """Cancels a backfill for good. What it brought in stays; no model is asked about the rest of it. Safe to repeat."""
    return JobStatus((await backfills.cancel(job_id, by.signature)).status)


@BACKFILL.operation(STEER, tool("backfill.resume", "Resume a backfill", ADDS_ONCE))
async def resume_backfill_job(by: Caller, backfills: Backfills, /, job_id: JobId) -> JobStatus:
    """Lets a backfill that was paused, reached its cap or failed continue where it stopped. Safe to repeat."""
    return JobStatus((await backfills.resume(job_id, by.signature)).status)


@BACKFILL.operation(READ, tool("backfill.list", "List the backfills", READS))
async def list_backfill_jobs(
    backfills: Backfills,
    /,
    connector_type: Annotated[str | None, Argument("Only those of this kind of connector.", 0, 80)] = None,
    endpoint_identity: Annotated[str | None, Argument("Only those of this mailbox.")] = None,
    status: Annotated[BackfillStatus | None, Argument("Only those in this state.")] = None,
    limit: Annotated[int, Argument(f"How many at most, 1 to {MOST_LISTED}.", 1, MOST_LISTED)] = MOST_LISTED,
    before: Annotated[str | None, Argument("Continue a list: its `next_before`.", 0, 200)] = None,
) -> BackfillPage:
    """Lists backfills, newest first, with their progress and what they cost."""
    found = await backfills.list_jobs(
        limit,
        connector_type=connector_type,
        endpoint_identity=endpoint_identity,
        status=status,
        before=None if before is None else read_cursor(before),
    )
    last = found[-1] if len(found) == limit else None
    following = None if last is None else str(Cursor(last.created_at, last.id))
    return BackfillPage([BackfillForm.of(each) for each in found], following)

"""The tools for backfills: people create and control them, connectors work on them."""

from dataclasses import replace
from datetime import date
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, StrictBool, StringConstraints
from typing_extensions import TypedDict

from postroom.core.access import READ, STEER
from postroom.core.backfill.cursor import parse_cursor
from postroom.core.backfill.job import (
    HIGHEST_CAP,
    HIGHEST_RATE,
    MOST_FAILED,
    MOST_ROWS,
    BackfillJob,
    BackfillMode,
    FailedMessage,
    NewBackfill,
    Progress,
    ReportedStatus,
)
from postroom.core.bounds import not_its_identity, own_identity
from postroom.core.lifecycle import BackfillStatus
from postroom.core.money import MICROS_PER_CENT
from postroom.core.roles import Role
from postroom.interfaces.http.mcp.tool import ADDS, ADDS_ONCE, ENDS, MOST_LISTED, READS, Arguments, Call, Text, tool
from postroom.operations.backfill.backfill_work import BackfillState
from postroom.settings.mailboxes import BackfillSettings
from postroom.store.backfill.backfill_work import LEASE
from postroom.store.engine.codecs import time_text
from postroom.store.engine.cursors import Cursor, read_cursor

Identity = Annotated[Text, StringConstraints(min_length=1, max_length=500)]
Category = Annotated[Text, StringConstraints(min_length=1, max_length=80)]
Count = Annotated[int, Field(ge=0, le=MOST_ROWS)]


class BackfillArguments(Arguments):
    connector_type: Text = Field(min_length=1, max_length=80, description="The kind of connector, such as `gmail`.")
    endpoint_identity: Identity = Field(description="The mailbox, as `connector.list` shows it.")
    target_categories: list[Category] = Field(
        min_length=1,
        max_length=20,
        description="Which mail to fetch: finance, health, relationship, travel, newsletters.",
    )
    date_from: date = Field(description="The first day, such as 2019-01-01; inclusive.")
    date_to: date = Field(description="The last day; inclusive, and not in the future.")
    rate_limit_per_hour: int | None = Field(
        None, ge=1, le=HIGHEST_RATE, description="How many messages to read per hour; default: the setting."
    )
    daily_cost_cap_cents: int | None = Field(
        None, ge=1, le=HIGHEST_CAP, description="What a day may cost, in US cents; default: the setting."
    )

    def wanted(self, defaults: BackfillSettings) -> NewBackfill:
        """The backfill that is meant, with the settings where nothing was said."""
        return NewBackfill(
            connector_type=self.connector_type,
            endpoint_identity=self.endpoint_identity,
            target_categories=tuple(self.target_categories),
            date_from=self.date_from,
            date_to=self.date_to,
            rate_limit_per_hour=self.rate_limit_per_hour or defaults.rate_limit_per_hour,
            daily_cost_cap_cents=self.daily_cost_cap_cents or defaults.daily_cost_cap_cents,
        )


class CreateArguments(BackfillArguments):
    consent: StrictBool = Field(description="True if the owner of the mailbox has agreed to read this old mail.")
    mode: BackfillMode = Field(
        "batch", description="`background` works only while no live mail waits; `batch` works at its rate."
    )
    resume_daily: bool = Field(
        False, description="Whether it continues by itself on the day after one that ended at the cap."
    )
    acts: bool = Field(
        False, description="Whether decisions about its mail are carried out; by default they are only recorded."
    )
    estimate_id: UUID | None = Field(None, description="The estimate that was shown, from `backfill.estimate`.")


class CreateAnswer(TypedDict):
    """`overlaps` are other backfills of the mailbox that cover some of the same; each message is ingested once."""

    job_id: str
    status: BackfillStatus
    overlaps: list[str]


@tool("create_backfill_job", "Create a backfill", ADDS, roles=STEER.tokens)
async def create(call: Call, arguments: CreateArguments) -> CreateAnswer:
    """Creates a backfill: a connector fetches the old mail of some categories between two days, under a limit per hour
    and a cap on what a day may cost. Ask for the consent of the mailbox's owner first, with the numbers of
    backfill.estimate.
    """
    new = replace(
        arguments.wanted(call.services.parts.backfills.settings),
        consent=arguments.consent,
        mode=arguments.mode,
        resume_daily=arguments.resume_daily,
        acts=arguments.acts,
        estimate_id=arguments.estimate_id,
    )
    created = await call.services.parts.backfills.create(new, call.signed())
    return {
        "job_id": str(created.job.id),
        "status": created.job.status,
        "overlaps": [str(each) for each in created.overlaps],
    }


class JobArguments(Arguments):
    job_id: UUID = Field(description="The backfill, as `create_backfill_job` or `backfill.list` named it.")


class StatusAnswer(TypedDict):
    status: BackfillStatus


@tool("backfill.pause", "Pause a backfill", ADDS_ONCE, roles=STEER.tokens)
async def pause(call: Call, arguments: JobArguments) -> StatusAnswer:
    """Pauses a backfill until backfill.resume. Its connector stops with its next report, within half a minute. Safe to
    repeat.
    """
    return {"status": (await call.services.parts.backfills.pause(arguments.job_id, call.signed())).status}


@tool("backfill.cancel", "Cancel a backfill", ENDS, roles=STEER.tokens)
async def cancel(call: Call, arguments: JobArguments) -> StatusAnswer:
    """Cancels a backfill for good. What it brought in stays; no model is asked about the rest of it. Safe to repeat."""
    return {"status": (await call.services.parts.backfills.cancel(arguments.job_id, call.signed())).status}


@tool("backfill.resume", "Resume a backfill", ADDS_ONCE, roles=STEER.tokens)
async def resume(call: Call, arguments: JobArguments) -> StatusAnswer:
    """Lets a backfill that was paused, reached its cap or failed continue where it stopped. Safe to repeat."""
    return {"status": (await call.services.parts.backfills.resume(arguments.job_id, call.signed())).status}


class ListArguments(Arguments):
    connector_type: Text | None = Field(None, max_length=80, description="Only those of this kind of connector.")
    endpoint_identity: Identity | None = Field(None, description="Only those of this mailbox.")
    status: BackfillStatus | None = Field(None, description="Only those in this state.")
    limit: int = Field(MOST_LISTED, ge=1, le=MOST_LISTED, description=f"How many at most, 1 to {MOST_LISTED}.")
    before: Text | None = Field(None, max_length=200, description="Continue a list: its `next_before`.")


class UntrustedError(TypedDict):
    error: str | None


class BackfillForm(TypedDict):
    """`reached` is the day down to which it has come. In millionths of a dollar, `spent_micros` is what it has cost,
    `spent_today_micros` what today cost, and `expected_micros` what the messages that wait for a decision will probably
    cost. `cost_spent_cents` is both together, in cents, rounded up.
    """

    job_id: str
    connector_type: str
    endpoint_identity: str
    target_categories: list[str]
    date_from: str
    date_to: str
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
    categories: dict[str, int]
    mode: BackfillMode
    resume_daily: bool
    acts: bool
    created_at: str
    started_at: str | None
    completed_at: str | None
    updated_at: str
    untrusted: UntrustedError


class ListAnswer(TypedDict):
    backfills: list[BackfillForm]
    next_before: str | None


@tool("backfill.list", "List the backfills", READS, roles=READ.tokens)
async def list_jobs(call: Call, arguments: ListArguments) -> ListAnswer:
    """Lists backfills, newest first, with their progress and what they cost."""
    found = await call.services.parts.backfills.list_jobs(
        arguments.limit,
        connector_type=arguments.connector_type,
        endpoint_identity=arguments.endpoint_identity,
        status=arguments.status,
        before=None if arguments.before is None else read_cursor(arguments.before),
    )
    last = found[-1] if len(found) == arguments.limit else None
    return {
        "backfills": [_form(each) for each in found],
        "next_before": None if last is None else str(Cursor(last.created_at, last.id)),
    }


def _form(job: BackfillJob) -> BackfillForm:
    return {
        "job_id": str(job.id),
        "connector_type": job.connector_type,
        "endpoint_identity": job.endpoint_identity,
        "target_categories": list(job.target_categories),
        "date_from": job.date_from.isoformat(),
        "date_to": job.date_to.isoformat(),
        "rate_limit_per_hour": job.rate_limit_per_hour,
        "daily_cost_cap_cents": job.daily_cost_cap_cents,
        "status": job.status,
        "reached": None if job.cursor is None else str(job.cursor["day"]),
        "rows_processed": job.rows_processed,
        "rows_skipped": job.rows_skipped,
        "rows_failed": job.rows_failed,
        "cost_spent_cents": job.cost_spent_cents,
        "spent_micros": job.spent_micros,
        "expected_micros": job.expected_micros,
        "spent_today_micros": job.spent_today_micros,
        "messages_waiting": job.messages_waiting,
        "categories": job.categories,
        "mode": job.mode,
        "resume_daily": job.resume_daily,
        "acts": job.acts,
        "created_at": time_text(job.created_at),
        "started_at": None if job.started_at is None else time_text(job.started_at),
        "completed_at": None if job.completed_at is None else time_text(job.completed_at),
        "updated_at": time_text(job.updated_at),
        "untrusted": {"error": job.error},
    }


class PollArguments(Arguments):
    connector_type: Text = Field(min_length=1, max_length=80, description="The kind of this connector.")
    endpoint_identity: Identity = Field(description="The mailbox that this token is bound to.")
    lease_token: UUID | None = Field(
        None, description="The lease that this connector had before it was started again: it gets the job back."
    )


class ParamsForm(TypedDict):
    """Days are inclusive, and those of `time_zone`. `message_cost_micros`: report it for each new full message."""

    target_categories: list[str]
    date_from: str
    date_to: str
    time_zone: str
    rate_limit_per_hour: int
    daily_cost_cap_cents: int
    message_cost_micros: int
    mode: BackfillMode


class PollAnswer(TypedDict):
    """Without work, `job_id` is null; each message of the job carries it in its envelope, as `control.backfill_job_id`.
    The job is the caller's for `lease_s` seconds after each report.
    """

    job_id: str | None
    params: ParamsForm | None
    cursor: dict[str, Any] | None
    lease_token: str | None
    lease_s: float
    batch_seq: int
    wait_s: float


@tool("backfill.poll", "Ask for a backfill to work on", ADDS, roles={Role.CONNECTOR})
async def poll(call: Call, arguments: PollArguments) -> PollAnswer:
    """Hands out the backfill of this connector's mailbox that has waited longest, or one whose connector stopped
    reporting, with the cursor at which to continue. Wait wait_s seconds before the first message. Ingest each message
    with job_id as control.backfill_job_id: only such messages count for the job. Report with backfill.progress at least
    every 30 seconds, each report numbered one above batch_seq. Ask at most once a minute.
    """
    if arguments.endpoint_identity != own_identity(call.principal):
        raise not_its_identity(call.principal, "endpoint_identity")
    found = await call.services.parts.backfill_work.poll(
        arguments.connector_type, arguments.endpoint_identity, call.principal, arguments.lease_token
    )
    nothing: PollAnswer = {
        "job_id": None,
        "params": None,
        "cursor": None,
        "lease_token": None,
        "lease_s": LEASE.total_seconds(),
        "batch_seq": 0,
        "wait_s": 0.0,
    }
    return nothing if found is None else _assigned(call, found)


def _assigned(call: Call, state: BackfillState) -> PollAnswer:
    job = state.job
    return {
        "job_id": str(job.id),
        "params": {
            "target_categories": list(job.target_categories),
            "date_from": job.date_from.isoformat(),
            "date_to": job.date_to.isoformat(),
            "time_zone": str(call.services.parts.backfills.zone),
            "rate_limit_per_hour": job.rate_limit_per_hour,
            "daily_cost_cap_cents": job.daily_cost_cap_cents,
            "message_cost_micros": job.message_cost_micros,
            "mode": job.mode,
        },
        "cursor": None if job.cursor is None else dict(job.cursor),
        "lease_token": None if job.lease_token is None else str(job.lease_token),
        "lease_s": LEASE.total_seconds(),
        "batch_seq": job.batch_seq,
        "wait_s": state.wait.total_seconds(),
    }


class FailedForm(Arguments):
    message_id: Text = Field(min_length=1, max_length=512, description="The message, by the provider's id.")
    reason: Text = Field(min_length=1, max_length=2000, description="Why, in a few words, without mail content.")


class ProgressArguments(Arguments):
    job_id: UUID = Field(description="The backfill, as `backfill.poll` named it.")
    rows_processed: Count = Field(
        description="How many messages were ingested since the last report, each with control.backfill_job_id."
    )
    rows_skipped: Count = Field(description="How many were read and not ingested since the last report.")
    cost_spent_cents: Count = Field(description="What this will cost, in US cents; 0 if cost_spent_micros is given.")
    cursor: dict[Text, Any] | None = Field(None, description="How far the walk has come: day, since, id.")
    status: ReportedStatus | None = Field(None, description="completed, or error; by default it continues.")
    error: Text | None = Field(None, max_length=2000, description="What went wrong, with the status error.")
    lease_token: UUID | None = Field(
        None, description="The lease that `backfill.poll` gave; without it, the token must be the one that polled."
    )
    batch_seq: int | None = Field(
        None, ge=1, le=2**53, description="The number of this report; the same number twice counts once."
    )
    cost_spent_micros: int | None = Field(
        None, ge=0, le=MOST_ROWS * MICROS_PER_CENT, description="The same cost in millionths of a dollar."
    )
    failed: list[FailedForm] = Field(
        default_factory=list[FailedForm], max_length=MOST_FAILED, description="Those of the skipped that failed."
    )
    categories: dict[Category, Count] = Field(
        default_factory=dict[str, int], max_length=20, description="How many of the ingested are in each category."
    )


class ProgressAnswer(TypedDict):
    """If `status` is not active, stop at once. With `live_backlog`, a background job waits."""

    status: BackfillStatus
    batch_seq: int
    live_backlog: bool
    left_today_micros: int
    wait_s: float


@tool("backfill.progress", "Report the progress of a backfill", ADDS, roles={Role.CONNECTOR})
async def progress(call: Call, arguments: ProgressArguments) -> ProgressAnswer:
    """Records what was done since the last report, and keeps the job leased to this connector. The status that is
    returned counts: unless it is active, stop at once. The error lease_lost means that the job is no longer this
    connector's; no_room that this is more than its rate allows: repeat the report after retry_after_s.
    """
    job = await call.services.parts.backfills.load(arguments.job_id)
    if job.endpoint_identity != own_identity(call.principal):
        raise not_its_identity(call.principal, "job_id")
    state = await call.services.parts.backfill_work.progress(job.id, _progress(call, arguments, job), call.principal)
    return {
        "status": state.job.status,
        "batch_seq": state.job.batch_seq,
        "live_backlog": state.live_backlog,
        "left_today_micros": state.job.left_today_micros,
        "wait_s": state.wait.total_seconds(),
    }


def _progress(call: Call, arguments: ProgressArguments, job: BackfillJob) -> Progress:
    window, micros = job.window(call.services.parts.backfills.zone), arguments.cost_spent_micros
    return Progress(
        rows_processed=arguments.rows_processed,
        rows_skipped=arguments.rows_skipped,
        cost_micros=arguments.cost_spent_cents * MICROS_PER_CENT if micros is None else micros,
        cursor=None if arguments.cursor is None else parse_cursor(arguments.cursor, window),
        status=arguments.status or "active",
        error=arguments.error,
        failed=tuple(FailedMessage(each.message_id, each.reason) for each in arguments.failed),
        categories=arguments.categories,
        batch_seq=arguments.batch_seq,
        lease_token=arguments.lease_token,
    )


TOOLS = (create, pause, cancel, resume, list_jobs, poll, progress)

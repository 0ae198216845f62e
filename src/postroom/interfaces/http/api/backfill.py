"""Backfills: estimate one, agree to its cost, follow it, pause, resume and cancel it."""

from datetime import date, datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import Field

from postroom.core.access import STEER
from postroom.core.backfill.job import HIGHEST_CAP, HIGHEST_RATE, NewBackfill
from postroom.core.lifecycle import BackfillStatus
from postroom.interfaces.http.api.audit import AuditEntryForm
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.cursors import opened, sealed
from postroom.interfaces.http.api.forms import Answer, Arguments, Filter, Json, Nothing, Page, Paged, Reason, Seconds
from postroom.interfaces.http.api.operation import Noun
from postroom.operations.backfill.estimate_runs import Agreement, EstimateRun, create_agreed

BACKFILL = Noun("Backfills")
LIST = "backfill"


class BackfillPath(Arguments):
    job: UUID = Field(description="The id of the backfill.")


class RunPath(Arguments):
    run: UUID = Field(description="The id of the run.")


class EstimatePath(Arguments):
    estimate: UUID = Field(description="The id of the estimate.")


class EstimateBody(Arguments):
    endpoint_identity: Filter = Field(description="The mailbox, such as gmail:user:ada@example.org.")
    categories: list[Filter] = Field(min_length=1, max_length=50, description="The kinds of mail.")
    date_from: date
    date_to: date
    rate_limit_per_hour: int = Field(100, ge=1, le=HIGHEST_RATE)
    daily_cost_cap_cents: int = Field(500, ge=1, le=HIGHEST_CAP)


class AgreementBody(Arguments):
    estimate: UUID = Field(description="The id of the estimate that is agreed to.")
    agreed_micros: int = Field(
        ge=0, le=2**53, description="Its expected cost, `cost_micros.expected`, which says that it was read."
    )
    mode: Literal["batch", "background"] = "batch"
    resume_daily: bool = Field(False, description="Go on by itself on the day after its cap was reached.")
    acts: bool = Field(False, description="Let rules act on the mail; otherwise decisions are only recorded.")


class UntrustedBackfill(Answer):
    error: str | None


class BackfillForm(Answer):
    """In millionths of a dollar, `spent_micros` is what it has cost, and `expected_micros` what the messages that wait
    for a decision will probably cost."""

    id: UUID
    connector_type: str
    endpoint_identity: str
    target_categories: list[str]
    date_from: date
    date_to: date
    rate_limit_per_hour: int
    daily_cost_cap_cents: int
    status: BackfillStatus
    rows_processed: int
    rows_skipped: int
    rows_failed: int
    spent_micros: int
    expected_micros: int
    spent_today_micros: int
    left_today_micros: int
    messages_waiting: int
    mode: str
    resume_daily: bool
    acts: bool
    estimate_id: UUID | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    updated_at: datetime
    untrusted: UntrustedBackfill


class StandingForm(Answer):
    """How many messages were read, how many are expected, and the share that is done, from 0 to 1."""

    read: int
    expected: int | None
    share: float
    per_hour: float


class BackfillLineForm(Answer):
    """A backfill and where it stands. `left_s` is null if nobody can say."""

    job: BackfillForm
    standing: StandingForm
    expected_micros: int | None
    at_day: date | None
    left_s: Seconds | None = Field(validation_alias="left")
    may_pause: bool
    may_resume: bool
    may_cancel: bool


class BackfillPage(Page):
    """The newest first."""

    backfills: list[BackfillLineForm]


class OpenBackfillsAnswer(Answer):
    """Those that have not ended, the ones at work first."""

    backfills: list[BackfillLineForm]


class OutcomeForm(Answer):
    rows_processed: int
    spent_micros: int
    read_by_model: int
    waiting: int
    is_final: bool


class SpentDayForm(Answer):
    day: str
    micros: int


class UntrustedFailure(Answer):
    message_id: str
    reason: str


class FailureForm(Answer):
    untrusted: UntrustedFailure


class FoundForm(Answer):
    """How many messages of a category and a year (UTC) it has brought in."""

    category: str
    year: int
    messages: int


class BackfillAnswer(Answer):
    line: BackfillLineForm
    outcome: OutcomeForm
    days: list[SpentDayForm]
    found: list[FoundForm]
    failures: list[FailureForm]
    audit: list[AuditEntryForm]


class EstimateRunForm(Answer):
    """An estimate in progress: when it is `done`, `estimate_id` is set."""

    id: UUID
    state: Literal["running", "done", "canceled", "failed"]
    started_at: datetime
    estimate_id: UUID | None
    error: str

    @classmethod
    def of_run(cls, run: EstimateRun) -> Self:
        made = None if run.result is None else run.result.id
        return cls(id=UUID(run.id), state=run.state, started_at=run.started_at, estimate_id=made, error=run.problem)


class EstimateForm(Answer):
    """An estimate as it was made: `result` has the counts, the cost and what they are based on (reference/mcp.md,
    `backfill.estimate`)."""

    id: UUID
    endpoint_identity: str
    request: Json
    result: Json
    created_by: str
    created_at: datetime


class CanceledRunAnswer(Answer):
    """False if it had ended before."""

    canceled: bool


class CreatedAnswer(Answer):
    """The new backfill, and those of the same mailbox that overlap with it: each message is read once all the same."""

    job: BackfillForm
    overlaps: list[UUID]


@BACKFILL.get("/backfill")
async def read_backfills(call: Call, query: Paged) -> BackfillPage:
    """All backfills, the newest first."""
    page = await call.parts.backfills.history(opened(LIST, query.next), query.limit)
    return BackfillPage(
        backfills=[BackfillLineForm.of(each) for each in page.lines], next=sealed(LIST, page.next_before)
    )


@BACKFILL.post("/backfill", STEER, status=201, once=True)
async def create_backfill(call: Call, body: AgreementBody) -> CreatedAnswer:
    """Create the backfill of an estimate, by agreeing to its cost."""
    services = call.parts.services
    agreement = Agreement(body.estimate, body.agreed_micros, body.mode, body.resume_daily, body.acts)
    return CreatedAnswer.of(await create_agreed(services.backfills, services.estimates, agreement, call.signed()))


@BACKFILL.get("/backfill/open")
async def read_open_backfills(call: Call) -> OpenBackfillsAnswer:
    """The backfills that have not ended, those at work first."""
    return OpenBackfillsAnswer(backfills=[BackfillLineForm.of(each) for each in await call.parts.backfills.open_jobs()])


@BACKFILL.post("/backfill/estimates", STEER, status=202)
async def begin_estimate(call: Call, body: EstimateBody) -> EstimateRunForm:
    """Ask the connector to count and read a sample. Nothing is kept or spent. It takes up to a minute: ask for the run
    until it is done."""
    wanted = NewBackfill(
        connector_type=body.endpoint_identity.partition(":")[0],
        endpoint_identity=body.endpoint_identity,
        target_categories=tuple(body.categories),
        date_from=body.date_from,
        date_to=body.date_to,
        rate_limit_per_hour=body.rate_limit_per_hour,
        daily_cost_cap_cents=body.daily_cost_cap_cents,
    )
    return EstimateRunForm.of_run(await call.parts.estimate_runs.start(wanted, call.signed()))


@BACKFILL.get("/backfill/estimates/runs/{run}")
async def read_estimate_run(call: Call, path: RunPath) -> EstimateRunForm:
    """An estimate in progress, or one that has ended."""
    return EstimateRunForm.of_run(call.parts.estimate_runs.find(path.run))


@BACKFILL.post("/backfill/estimates/runs/{run}/cancel", STEER)
async def cancel_estimate_run(call: Call, path: RunPath, body: Nothing) -> CanceledRunAnswer:
    """Wait no longer for an estimate. Safe to repeat."""
    return CanceledRunAnswer(canceled=await call.parts.estimate_runs.cancel(path.run))


@BACKFILL.get("/backfill/estimates/{estimate}")
async def read_estimate(call: Call, path: EstimatePath) -> EstimateForm:
    """A stored estimate."""
    return EstimateForm.of(await call.parts.services.estimates.load(path.estimate))


@BACKFILL.get("/backfill/{job}")
async def read_backfill(call: Call, path: BackfillPath) -> BackfillAnswer:
    """One backfill: its outcome, its days, its failures, and who did what to it."""
    return BackfillAnswer.of(await call.parts.backfills.detail(path.job))


@BACKFILL.post("/backfill/{job}/pause", STEER)
async def pause_backfill(call: Call, path: BackfillPath, body: Reason) -> BackfillForm:
    """Pause a backfill: its connector stops within half a minute. Safe to repeat."""
    return BackfillForm.of(await call.parts.services.backfills.pause(path.job, call.signed(body.reason)))


@BACKFILL.post("/backfill/{job}/resume", STEER)
async def resume_backfill(call: Call, path: BackfillPath, body: Reason) -> BackfillForm:
    """Let a backfill go on where it stopped. Safe to repeat."""
    return BackfillForm.of(await call.parts.services.backfills.resume(path.job, call.signed(body.reason)))


@BACKFILL.post("/backfill/{job}/cancel", STEER)
async def cancel_backfill(call: Call, path: BackfillPath, body: Reason) -> BackfillForm:
    """Cancel a backfill for good. What it brought in stays. Safe to repeat."""
    return BackfillForm.of(await call.parts.services.backfills.cancel(path.job, call.signed(body.reason)))

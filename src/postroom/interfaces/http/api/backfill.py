"""Backfills: estimate one, agree to its cost, follow it, pause, resume and cancel it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import Field

from postroom.core.access import STEER
from postroom.core.backfill.job import HIGHEST_CAP, HIGHEST_RATE, BackfillJob, NewBackfill
from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Arguments, Filter, Nothing, Paged, Reason
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened, sealed
from postroom.operations.backfill.backfill import CreatedBackfill
from postroom.operations.backfill.backfill_estimate import StoredEstimate
from postroom.operations.backfill.backfill_progress import BackfillDetail, BackfillLine
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


@dataclass(frozen=True, slots=True)
class OpenBackfills:
    lines: Sequence[BackfillLine]


@dataclass(frozen=True, slots=True)
class EstimateRunView:
    """An estimate in progress: when it is `done`, `estimate_id` is set."""

    id: UUID
    state: Literal["running", "done", "canceled", "failed"]
    started_at: datetime
    estimate_id: UUID | None
    error: str

    @classmethod
    def of(cls, run: EstimateRun) -> Self:
        made = None if run.result is None else run.result.id
        return cls(UUID(run.id), run.state, run.started_at, made, run.problem)


@dataclass(frozen=True, slots=True)
class CanceledRun:
    """False if it had ended before."""

    canceled: bool


@BACKFILL.get("/backfill")
async def read_backfills(call: Call, query: Paged) -> Page[BackfillLine]:
    """All backfills, the newest first."""
    page = await call.parts.backfills.history(opened(LIST, query.next), query.limit)
    return Page(page.lines, sealed(LIST, page.next))


@BACKFILL.post("/backfill", STEER, status=201, once=True)
async def create_backfill(call: Call, body: AgreementBody) -> CreatedBackfill:
    """Create the backfill of an estimate, by agreeing to its cost."""
    services = call.parts.services
    agreement = Agreement(body.estimate, body.agreed_micros, body.mode, body.resume_daily, body.acts)
    return await create_agreed(services.parts.backfills, services.parts.estimates, agreement, call.signed())


@BACKFILL.get("/backfill/open")
async def read_open_backfills(call: Call) -> OpenBackfills:
    """The backfills that have not ended, those at work first."""
    return OpenBackfills(await call.parts.backfills.open_jobs())


@BACKFILL.post("/backfill/estimates", STEER, status=202)
async def begin_estimate(call: Call, body: EstimateBody) -> EstimateRunView:
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
    return EstimateRunView.of(await call.parts.estimate_runs.start(wanted, call.signed()))


@BACKFILL.get("/backfill/estimates/runs/{run}")
async def read_estimate_run(call: Call, path: RunPath) -> EstimateRunView:
    """An estimate in progress, or one that has ended."""
    return EstimateRunView.of(call.parts.estimate_runs.find(path.run))


@BACKFILL.post("/backfill/estimates/runs/{run}/cancel", STEER)
async def cancel_estimate_run(call: Call, path: RunPath, body: Nothing) -> CanceledRun:
    """Wait no longer for an estimate. Safe to repeat."""
    return CanceledRun(await call.parts.estimate_runs.cancel(path.run))


@BACKFILL.get("/backfill/estimates/{estimate}")
async def read_estimate(call: Call, path: EstimatePath) -> StoredEstimate:
    """A stored estimate."""
    return await call.parts.services.parts.estimates.load(path.estimate)


@BACKFILL.get("/backfill/{job}")
async def read_backfill(call: Call, path: BackfillPath) -> BackfillDetail:
    """One backfill: its outcome, its days, its failures, and who did what to it."""
    return await call.parts.backfills.detail(path.job)


@BACKFILL.post("/backfill/{job}/pause", STEER)
async def pause_backfill(call: Call, path: BackfillPath, body: Reason) -> BackfillJob:
    """Pause a backfill: its connector stops within half a minute. Safe to repeat."""
    return await call.parts.services.parts.backfills.pause(path.job, call.signed(body.reason))


@BACKFILL.post("/backfill/{job}/resume", STEER)
async def resume_backfill(call: Call, path: BackfillPath, body: Reason) -> BackfillJob:
    """Let a backfill go on where it stopped. Safe to repeat."""
    return await call.parts.services.parts.backfills.resume(path.job, call.signed(body.reason))


@BACKFILL.post("/backfill/{job}/cancel", STEER)
async def cancel_backfill(call: Call, path: BackfillPath, body: Reason) -> BackfillJob:
    """Cancel a backfill for good. What it brought in stays. Safe to repeat."""
    return await call.parts.services.parts.backfills.cancel(path.job, call.signed(body.reason))

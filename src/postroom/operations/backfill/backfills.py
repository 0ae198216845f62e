"""Backfills, as callers ask for them: estimate one, agree to its cost, follow it, pause, resume and cancel it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from postroom.core.access import READ, STEER
from postroom.core.backfill.job import HIGHEST_CAP, HIGHEST_RATE, BackfillJob, BackfillMode, NewBackfill
from postroom.core.views import Page
from postroom.operations.backfill.backfill import Backfills, CreatedBackfill
from postroom.operations.backfill.backfill_estimate import BackfillEstimates, StoredEstimate
from postroom.operations.backfill.backfill_progress import BackfillDetail, BackfillLine, BackfillReader
from postroom.operations.backfill.estimate_runs import Agreement, EstimateRun, EstimateRuns, create_agreed
from postroom.operations.caller import Caller
from postroom.operations.nouns import BACKFILL
from postroom.operations.operation import Argument, Limit, Next, get, post

MOST_CATEGORIES = 50
HIGHEST_COST = 2**53
JobId = Annotated[UUID, Argument("The id of the backfill.")]
RunId = Annotated[UUID, Argument("The id of the run.")]


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


@BACKFILL.operation(READ, get("/backfill"))
async def list_backfills(reader: BackfillReader, /, limit: Limit = 50, next: Next = None) -> Page[BackfillLine]:
    """List all backfills, the newest first."""
    return await reader.history(next, limit)


@BACKFILL.operation(STEER, post("/backfill", status=201, once=True))
async def create_backfill(
    by: Caller,
    backfills: Backfills,
    estimates: BackfillEstimates,
    /,
    estimate: Annotated[UUID, Argument("The id of the estimate that is agreed to.")],
    agreed_micros: Annotated[
        int, Argument("Its expected cost, `cost_micros.expected`, which says that it was read.", 0, HIGHEST_COST)
    ],
    mode: BackfillMode = "batch",
    resume_daily: Annotated[bool, Argument("Go on by itself on the day after its cap was reached.")] = False,
    acts: Annotated[bool, Argument("Let rules act on the mail; otherwise decisions are only recorded.")] = False,
) -> CreatedBackfill:
    """Create the backfill of an estimate, by agreeing to its cost."""
    agreement = Agreement(estimate, agreed_micros, mode, resume_daily, acts)
    return await create_agreed(backfills, estimates, agreement, by.signature)


@BACKFILL.operation(READ, get("/backfill/open"))
async def list_open_backfills(reader: BackfillReader, /) -> list[BackfillLine]:
    """List the backfills that have not ended, those at work first."""
    return list(await reader.open_jobs())


@BACKFILL.operation(STEER, post("/backfill/estimates", status=202))
async def begin_estimate(
    by: Caller,
    runs: EstimateRuns,
    /,
    endpoint_identity: Annotated[str, Argument("The mailbox, such as gmail:user:ada@example.org.")],
    categories: Annotated[Sequence[Annotated[str, Argument()]], Argument("The kinds of mail.", 1, MOST_CATEGORIES)],
    date_from: date,
    date_to: date,
    rate_limit_per_hour: Annotated[int, Argument("", 1, HIGHEST_RATE)] = 100,
    daily_cost_cap_cents: Annotated[int, Argument("", 1, HIGHEST_CAP)] = 500,
) -> EstimateRunView:
    """Ask the connector to count and read a sample. Nothing is kept or spent. It takes up to a minute: ask for the run
    until it is done.
    """
    wanted = NewBackfill(
        connector_type=endpoint_identity.partition(":")[0],
        endpoint_identity=endpoint_identity,
        target_categories=tuple(categories),
        date_from=date_from,
        date_to=date_to,
        rate_limit_per_hour=rate_limit_per_hour,
        daily_cost_cap_cents=daily_cost_cap_cents,
    )
    return EstimateRunView.of(await runs.start(wanted, by.signature))


@BACKFILL.operation(READ, get("/backfill/estimates/runs/{run}"))
async def load_estimate_run(runs: EstimateRuns, /, run: RunId) -> EstimateRunView:
    """Load an estimate in progress, or one that has ended."""
    return EstimateRunView.of(runs.find(run))


@BACKFILL.operation(STEER, post("/backfill/estimates/runs/{run}/cancel"))
async def cancel_estimate_run(runs: EstimateRuns, /, run: RunId) -> CanceledRun:
    """Wait no longer for an estimate. Safe to repeat."""
    return CanceledRun(await runs.cancel(run))


@BACKFILL.operation(READ, get("/backfill/estimates/{estimate}"))
async def load_estimate(
    estimates: BackfillEstimates, /, estimate: Annotated[UUID, Argument("The id of the estimate.")]
) -> StoredEstimate:
    """Load a stored estimate."""
    return await estimates.load(estimate)


@BACKFILL.operation(READ, get("/backfill/{job}"))
async def load_backfill(reader: BackfillReader, /, job: JobId) -> BackfillDetail:
    """Load one backfill: its outcome, its days, its failures, and who did what to it."""
    return await reader.detail(job)


@BACKFILL.operation(STEER, post("/backfill/{job}/pause"), signs=True)
async def pause_backfill(by: Caller, backfills: Backfills, /, job: JobId) -> BackfillJob:
    """Pause a backfill: its connector stops within half a minute. Safe to repeat."""
    return await backfills.pause(job, by.signature)


@BACKFILL.operation(STEER, post("/backfill/{job}/resume"), signs=True)
async def resume_backfill(by: Caller, backfills: Backfills, /, job: JobId) -> BackfillJob:
    """Let a backfill go on where it stopped. Safe to repeat."""
    return await backfills.resume(job, by.signature)


@BACKFILL.operation(STEER, post("/backfill/{job}/cancel"), signs=True)
async def cancel_backfill(by: Caller, backfills: Backfills, /, job: JobId) -> BackfillJob:
    """Cancel a backfill for good. What it brought in stays. Safe to repeat."""
    return await backfills.cancel(job, by.signature)

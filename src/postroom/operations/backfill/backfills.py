"""Backfills, as callers ask for them: estimate one, agree to its cost, follow it, pause, resume and cancel it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from postroom.core.access import READ, STEER
from postroom.core.backfill.job import HIGHEST_CAP, HIGHEST_RATE, BackfillJob, BackfillMode, NewBackfill
from postroom.core.lifecycle import BackfillStatus
from postroom.core.views import Page
from postroom.operations.accounts.accounts import account_for
from postroom.operations.backfill.backfill import Backfills, CreatedBackfill
from postroom.operations.backfill.backfill_estimate import BackfillEstimates, MadeEstimate
from postroom.operations.backfill.backfill_progress import BackfillDetail, BackfillLine, BackfillReader
from postroom.operations.backfill.estimate_runs import Agreement, EstimateRun, EstimateRuns, create_agreed
from postroom.operations.caller import Caller
from postroom.operations.nouns import BACKFILL
from postroom.operations.operation import Argument, Limit, Next, command, dialogue, flow, form, get, post
from postroom.operations.short_ids import found_by_id
from postroom.settings.reading import Settings
from postroom.store.backfill.backfill_estimates import StoredEstimate
from postroom.store.engine.database import Database
from postroom.words.backfill import dollars

MOST_CATEGORIES = 50
HIGHEST_COST = 2**53
ONE_BACKFILL = found_by_id("backfill", "postroom backfill list", "backfills")
JobId = Annotated[UUID, Argument("The id of the backfill."), ONE_BACKFILL]
RunId = Annotated[UUID, Argument("The id of the run.")]
STATUS = ("id", "{0.status}")
LISTED = ("id", "status", "categories", "from", "to", "processed", "skipped", "spent", "expected", "mailbox")


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


def job_row(job: BackfillJob) -> dict[str, Any]:
    """A job for programs that run commands."""
    row = asdict(job) | {"expected_micros": job.expected_micros}
    del row["lease_token"]
    return row


def _row(line: BackfillLine) -> Mapping[str, object]:
    return job_row(line.job)


def _cells(line: BackfillLine) -> Mapping[str, object]:
    job = line.job
    return {
        "id": job.id,
        "status": job.status,
        "categories": job.target_categories,
        "from": job.date_from,
        "to": job.date_to,
        "processed": f"{job.rows_processed:,}",
        "skipped": f"{job.rows_skipped:,}",
        "spent": dollars(job.spent_micros),
        "expected": dollars(job.expected_micros),
        "mailbox": job.endpoint_identity,
    }


@BACKFILL.operation(READ, get("/backfill"), command("backfill list", *LISTED, row=_row, cells=_cells))
async def list_backfills(
    database: Database,
    reader: BackfillReader,
    /,
    account: Annotated[str | None, Argument("Only those of this mailbox.", typed_as="--account ADDRESS")] = None,
    status: Annotated[BackfillStatus | None, Argument("Only those in this state.")] = None,
    limit: Limit = 50,
    next: Next = None,
) -> Page[BackfillLine]:
    """List backfills, the newest first."""
    identity = None if account is None else (await account_for(database, account)).endpoint_identity
    return await reader.history(next, limit, endpoint_identity=identity, status=status)


@BACKFILL.operation(
    STEER, post("/backfill", status=201, once=True), flow("/backfill/create"), dialogue("backfill create")
)
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


@BACKFILL.operation(STEER, post("/backfill/estimates", status=202), flow("/backfill/estimate"))
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


@BACKFILL.operation(STEER, dialogue("backfill estimate"))
async def make_estimate(
    by: Caller,
    estimates: BackfillEstimates,
    settings: Settings,
    /,
    account: str | None,
    categories: Sequence[str],
    date_from: date,
    date_to: date,
    rate_limit_per_hour: int | None = None,
    daily_cost_cap_cents: int | None = None,
) -> MadeEstimate:
    """Wait for an estimate, at the rate and with the cap of the settings unless others are given."""
    mailbox, usual = await account_for(by.database, account), settings.backfill
    wanted = NewBackfill(
        connector_type=mailbox.provider,
        endpoint_identity=mailbox.endpoint_identity,
        target_categories=tuple(categories),
        date_from=date_from,
        date_to=date_to,
        rate_limit_per_hour=usual.rate_limit_per_hour if rate_limit_per_hour is None else rate_limit_per_hour,
        daily_cost_cap_cents=usual.daily_cost_cap_cents if daily_cost_cap_cents is None else daily_cost_cap_cents,
    )
    return await estimates.estimate(wanted, by.signature)


@BACKFILL.operation(READ, get("/backfill/estimates/runs/{run}"))
async def load_estimate_run(runs: EstimateRuns, /, run: RunId) -> EstimateRunView:
    """Load an estimate in progress, or one that has ended."""
    return EstimateRunView.of(runs.find(run))


def _describe_cancel(run: CanceledRun, _given: Mapping[str, Any]) -> str:
    return "No longer waiting for the estimate." if run.canceled else "It had ended before."


@BACKFILL.operation(
    STEER, post("/backfill/estimates/runs/{run}/cancel"), form("/backfill/estimate/cancel", _describe_cancel)
)
async def cancel_estimate_run(runs: EstimateRuns, /, run: RunId) -> CanceledRun:
    """Wait no longer for an estimate. Safe to repeat."""
    return CanceledRun(await runs.cancel(run))


@BACKFILL.operation(READ, get("/backfill/estimates/{estimate}"))
async def load_estimate(
    estimates: BackfillEstimates, /, estimate: Annotated[UUID, Argument("The id of the estimate.")]
) -> StoredEstimate:
    """Load a stored estimate."""
    return await estimates.load(estimate)


@BACKFILL.operation(READ, get("/backfill/{job}"), command("backfill show {job}"))
async def load_backfill(reader: BackfillReader, /, job: JobId) -> BackfillDetail:
    """Show one backfill: its progress and cost beside the estimate, its days, its failures, what it found, and who did
    what to it."""
    return await reader.detail(job)


@BACKFILL.operation(
    STEER,
    post("/backfill/{job}/pause"),
    form(
        "/backfill/{job}/pause", "Paused: its connector stops within half a minute, and decisions about its mail wait."
    ),
    command("backfill pause {job}", outcome=STATUS),
    signs=True,
)
async def pause_backfill(by: Caller, backfills: Backfills, /, job: JobId) -> BackfillJob:
    """Pause a backfill: its connector stops within half a minute, and decisions about its mail wait. Safe to repeat."""
    return await backfills.pause(job, by.signature)


@BACKFILL.operation(
    STEER,
    post("/backfill/{job}/resume"),
    form("/backfill/{job}/resume", "It goes on where it stopped."),
    command("backfill resume {job}", outcome=STATUS),
    signs=True,
)
async def resume_backfill(by: Caller, backfills: Backfills, /, job: JobId) -> BackfillJob:
    """Continue a backfill that was paused, reached its cap or failed, where it stopped. Safe to repeat."""
    return await backfills.resume(job, by.signature)


@BACKFILL.operation(
    STEER,
    post("/backfill/{job}/cancel"),
    form("/backfill/{job}/cancel", "Canceled for good. What it brought in stays."),
    command("backfill cancel {job}", outcome=STATUS),
    signs=True,
)
async def cancel_backfill(by: Caller, backfills: Backfills, /, job: JobId) -> BackfillJob:
    """Cancel a backfill for good. What it brought in stays; no model is asked about the rest of it. Safe to repeat."""
    return await backfills.cancel(job, by.signature)

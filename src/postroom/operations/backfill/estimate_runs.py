"""Estimates of backfills in progress, for people who wait for them on a page, and the backfill that follows from one.

The connector counts and samples for up to a minute. The wait can be canceled; a finished estimate is stored, and shown
again under its id.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal
from uuid import UUID

import structlog

from postroom.core.backfill.job import BackfillMode, NewBackfill, check_limits
from postroom.core.errors import BadInput, MailboxError, NotFound, Refused
from postroom.operations.backfill.backfill import Backfills, CreatedBackfill
from postroom.operations.backfill.backfill_estimate import PATIENCE, BackfillEstimates, StoredEstimate
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature

log = structlog.stdlib.get_logger(__name__)

MOST_RUNNING = 4
KEPT = 32
LONGEST_WAIT = PATIENCE

RunState = Literal["running", "done", "canceled", "failed"]


@dataclass(frozen=True, slots=True)
class EstimateRun:
    """An estimate that somebody waits for, or waited for."""

    id: UUID
    wanted: NewBackfill
    state: RunState
    started_at: datetime
    estimate_id: UUID | None = None
    error: str = ""


class EstimateRuns:
    """The runs of one server, for its pages and its API. What is running ends with it; what was made is stored."""

    def __init__(self, backfills: Backfills, estimates: BackfillEstimates, clock: Clock = wall_clock) -> None:
        self.backfills = backfills
        self.estimates = estimates
        self._clock = clock
        self._runs: dict[UUID, EstimateRun] = {}
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()

    def find(self, id: UUID) -> EstimateRun:
        """Raises NotFound."""
        found = self._runs.get(id)
        if found is None:
            raise NotFound("this estimate is not in progress any more; ask for it again")
        return found

    async def start(self, wanted: NewBackfill, signed: Signature) -> UUID:
        """Check what is wanted, and begin to estimate it. Raises BadInput, and Refused while too many run."""
        checked = await self.backfills.checked(wanted)
        check_limits(replace(checked, consent=True))
        if len(self._tasks) >= MOST_RUNNING:
            raise Refused("several estimates are in progress: wait for one of them, or cancel it")
        run = EstimateRun(new_id(), checked, "running", self._clock())
        self._keep(run)
        self._tasks[run.id] = asyncio.create_task(self._estimate(run, signed), name="backfill-estimate")
        await asyncio.sleep(0)  # it has begun, so that it hears of its end
        return run.id

    async def cancel(self, id: UUID) -> bool:
        """Wait no longer. False if it had ended before."""
        task = self._tasks.get(self.find(id).id)
        if task is None:
            return False
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        return True

    async def changes(self) -> AsyncIterator[None]:
        """Yield at once, and then after each change of a run."""
        while True:
            changed = self._changed
            yield
            await changed.wait()

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _estimate(self, run: EstimateRun, signed: Signature) -> None:
        try:
            made = await self.estimates.estimate(run.wanted, signed)
            self._keep(replace(run, state="done", estimate_id=made.id))
        except asyncio.CancelledError:
            self._keep(replace(run, state="canceled"))
            raise
        except (BadInput, MailboxError, NotFound) as error:
            self._keep(replace(run, state="failed", error=str(error)))
        except Exception as error:
            log.warning("backfill.estimate_failed", error=type(error).__name__)
            self._keep(replace(run, state="failed", error="it could not be made; the log has the cause"))
        finally:
            self._tasks.pop(run.id, None)

    def _keep(self, run: EstimateRun) -> None:
        self._runs[run.id] = run
        ended = [each.id for each in self._runs.values() if each.state != "running"]
        for id in ended[: max(0, len(self._runs) - KEPT)]:
            self._runs.pop(id)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


@dataclass(frozen=True, slots=True)
class Agreement:
    """An agreement: an estimate, by its id and its sum, and how the backfill is to run."""

    estimate_id: UUID
    agreed_micros: int | None
    """The expected cost that the person ticked; None without a tick."""
    mode: BackfillMode = "batch"
    resume_daily: bool = False
    acts: bool = False


async def create_agreed(
    backfills: Backfills, estimates: BackfillEstimates, agreement: Agreement, signed: Signature
) -> CreatedBackfill:
    """Create the backfill of an estimate to which somebody has agreed. Raises BadInput and NotFound."""
    shown = await estimates.load(agreement.estimate_id)
    if agreement.agreed_micros != int(shown.result["cost_micros"]["expected"]):
        problem = "is missing" if agreement.agreed_micros is None else "is for another sum"
        raise BadInput("consent", problem, "tick the box that names the cost, if you agree to it")
    wanted = replace(
        wanted_of(shown),
        consent=True,
        mode=agreement.mode,
        resume_daily=agreement.resume_daily,
        acts=agreement.acts,
        estimate_id=shown.id,
    )
    return await backfills.create(wanted, signed)


def wanted_of(shown: StoredEstimate) -> NewBackfill:
    """The backfill that an estimate is for."""
    asked = shown.request
    return NewBackfill(
        connector_type=shown.endpoint_identity.partition(":")[0],
        endpoint_identity=shown.endpoint_identity,
        target_categories=tuple(asked["categories"]),
        date_from=date.fromisoformat(asked["date_from"]),
        date_to=date.fromisoformat(asked["date_to"]),
        rate_limit_per_hour=asked["rate_limit_per_hour"],
        daily_cost_cap_cents=asked["daily_cost_cap_cents"],
    )

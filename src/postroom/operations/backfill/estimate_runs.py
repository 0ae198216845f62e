"""Estimates of backfills in progress, for people who wait for them on a page, and the backfill that follows from one.

The connector counts and samples for up to a minute. The wait can be canceled; a finished estimate is stored, and shown
again under its id.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import date
from uuid import UUID

from postroom.core.backfill.job import BackfillMode, NewBackfill, check_limits
from postroom.core.errors import BadInput
from postroom.operations.backfill.backfill import Backfills, CreatedBackfill
from postroom.operations.backfill.backfill_estimate import PATIENCE, BackfillEstimates, MadeEstimate
from postroom.operations.installation.long_tasks import LongTask, LongTasks, Report
from postroom.store.backfill.backfill_estimates import StoredEstimate
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import Clock, wall_clock

MOST_RUNNING = 4
KEPT = 32
LONGEST_WAIT = PATIENCE

EstimateRun = LongTask[NewBackfill, MadeEstimate]


class EstimateRuns:
    """The runs of one server, for its pages and its API. What is running ends with it; what was made is stored."""

    def __init__(self, backfills: Backfills, estimates: BackfillEstimates, clock: Clock = wall_clock) -> None:
        self.backfills = backfills
        self.estimates = estimates
        self._tasks = LongTasks[NewBackfill, MadeEstimate](
            most_running=MOST_RUNNING, unwatched_s=None, most_remembered=KEPT, now=clock
        )

    def find(self, id: UUID) -> EstimateRun:
        """Raises NotFound."""
        return self._tasks.look(str(id))

    async def start(self, wanted: NewBackfill, signed: Signature) -> EstimateRun:
        """Check what is wanted, and begin to estimate it. Raises BadInput, and Refused while too many run."""
        checked = await self.backfills.checked(wanted)
        check_limits(replace(checked, consent=True))

        async def work(_report: Report) -> MadeEstimate:
            return await self.estimates.estimate(checked, signed)

        return self._tasks.start(checked, work, str(new_id()))

    async def cancel(self, id: UUID) -> bool:
        """Wait no longer. False if it had ended before."""
        return await self._tasks.cancel(self.find(id).id)

    def changes(self) -> AsyncIterator[None]:
        return self._tasks.changes()

    def close(self) -> None:
        self._tasks.close()


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

"""Jobs in trouble, grouped by type and cause, each group with what solves it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from postroom.core.access import READ
from postroom.core.jobs.causes import cause_of
from postroom.core.views import Internal, Shown, Untrusted
from postroom.operations.nouns import JOBS
from postroom.operations.operation import get
from postroom.store.engine.database import Database
from postroom.store.jobs.job_lists import JobLine, JobQuestion, Stage, list_by_stage
from postroom.store.jobs.jobs import PAUSE

TROUBLED: tuple[Stage, ...] = ("failed", "retrying", "parked")
# How many jobs of each stage are looked at.
SAMPLE = 500


@dataclass(frozen=True, slots=True)
class Remedy:
    """A page on which the cause is solved."""

    text: str
    address: str


@dataclass(frozen=True, slots=True)
class JobCause:
    """Jobs of one type that stand in the same stage for the same reason."""

    key: str
    stage: Stage
    type: str
    cause: Untrusted[str]
    ids: Internal[Sequence[UUID]]
    """Newest first."""
    first_at: datetime
    last_at: datetime
    next_try_at: datetime | None
    remedy: Remedy | None

    @property
    def count(self) -> Shown[int]:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class JobCauses:
    """The groups, the largest first within each stage, and whether there were more jobs than the `sample` of each stage
    that was looked at."""

    groups: Sequence[JobCause]
    is_partial: bool
    sample: int = SAMPLE

    @property
    def jobs(self) -> int:
        return sum(each.count for each in self.groups)


@JOBS.operation(READ, get("/jobs/causes"))
async def job_causes(database: Database, /) -> JobCauses:
    """The jobs in trouble, grouped by type and cause."""
    groups: list[JobCause] = []
    is_partial = False
    for stage in TROUBLED:
        listed = await database.run(list_by_stage(JobQuestion(stage), None, SAMPLE))
        is_partial = is_partial or listed.before is not None
        found = [_group(stage, key, each) for key, each in _alike(listed.jobs).items()]
        groups += sorted(found, key=lambda each: (-each.count, each.type, each.cause))
    return JobCauses(groups, is_partial)


def _alike(found: Sequence[JobLine]) -> dict[tuple[str, str, str], list[JobLine]]:
    alike: defaultdict[tuple[str, str, str], list[JobLine]] = defaultdict(list)
    for each in found:
        alike[each.type, cause_of(each.last_error), each.parked_by or ""].append(each)
    return alike


def _group(stage: Stage, key: tuple[str, str, str], found: Sequence[JobLine]) -> JobCause:
    type, cause, parked_by = key
    times = [each.finished_at or each.created_at for each in found]
    again = [each.not_before for each in found if each.not_before is not None]
    return JobCause(
        sha256("\x1f".join((stage, *key)).encode()).hexdigest()[:16],
        stage,
        type,
        cause,
        [each.id for each in found],
        min(times),
        max(times),
        min(again, default=None) if stage == "retrying" else None,
        _remedy(cause.lower(), parked_by),
    )


def _remedy(cause: str, parked_by: str) -> Remedy | None:
    """Return where the cause is solved; None if another attempt is all there is to do."""
    if parked_by == f"{PAUSE}tenant":
        return Remedy("Look at the tenant", "/outbound")
    if parked_by.startswith(PAUSE):
        return Remedy("Resume on the overview", "/")
    if parked_by.startswith("cap:") or "hourly_cap" in cause:
        return Remedy("Look at the limits", "/settings")
    if "consent" in cause or parked_by.startswith("account:"):
        return Remedy("Repair the account", "/connectors")
    if "budget" in cause or "api key" in cause or "model" in cause:
        return Remedy("Look at the model", "/settings")
    return None

"""The jobs as a page shows them: how many are in which stage, how fast they end, lists by filter, and who works."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from postroom.core.access import READ
from postroom.core.errors import BadInput
from postroom.core.jobs.types import CATALOGUE
from postroom.core.views import Internal, Page, Shown
from postroom.operations.accounts.accounts import account_for
from postroom.operations.nouns import JOBS
from postroom.operations.operation import Argument, Limit, Next, get
from postroom.operations.overview.volumes import quantile
from postroom.operations.overview.windows import DEFAULT_WINDOW, Window, WindowArgument, window_of
from postroom.store.engine.database import Database
from postroom.store.installation.rollups import by_span
from postroom.store.jobs import job_figures, job_lists, jobs
from postroom.store.jobs.job_lists import JobLine, JobQuestion, Stage, WorkerView
from postroom.store.jobs.leaders import leader
from postroom.system.wall_clock import Clock

CHANNELS = (jobs.CHANNEL, "job_ends", "scheduler")
STAGES = job_lists.STAGES
MOST_COUNTED = 10_000
PAGE = 50
MOST_AT_ONCE = 500
JobStage = Annotated[Stage, Argument("The stage of the jobs.")]
JobType = Annotated[str | None, Argument("Only jobs of this type.")]
JobAccount = Annotated[str | None, Argument("Only jobs of this account, by address or id.")]
JobError = Annotated[str | None, Argument("Only jobs with this text in their last error.")]


@dataclass(frozen=True, slots=True)
class JobFilters:
    """Jobs by stage, type, account and a part of their last error; all that is given must match."""

    stage: Stage | None = None
    type: str | None = None
    account: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StageCount:
    stage: Stage
    count: int
    is_more: Annotated[bool, "Whether there are more than were counted."]


@dataclass(frozen=True, slots=True)
class SelectedJobs:
    """The jobs that a bulk act would touch, the newest first, how many of each type, and the key to begin at."""

    jobs: Internal[Sequence[JobLine]]
    by_type: Mapping[str, int]
    is_more: bool
    begin: str

    @property
    def count(self) -> Shown[int]:
        return len(self.jobs)


@dataclass(frozen=True, slots=True)
class TypeFigures:
    """How jobs of one type ended in a window. Times are rounded up to a power of two in ms."""

    type: str
    ended: int
    failed: int
    median: timedelta
    p95: timedelta
    rate: Annotated[Sequence[int], "How many ended in each span of the window."]


@dataclass(frozen=True, slots=True)
class JobFigures:
    window: Window
    counted_until: datetime | None
    by_state: Mapping[str, Sequence[int]]
    p95_ms: Sequence[float]
    types: Sequence[TypeFigures]

    @property
    def ended(self) -> int:
        return sum(sum(counts) for counts in self.by_state.values())


@dataclass(frozen=True, slots=True)
class Workforce:
    """The worker processes, and the one that leads."""

    workers: Sequence[WorkerView]
    leader: str | None
    leads_until: datetime | None
    read_at: datetime

    @property
    def alive(self) -> Shown[int]:
        return sum(each.lease_until >= self.read_at for each in self.workers)


@JOBS.operation(READ, get("/jobs"))
async def read_jobs(
    database: Database,
    /,
    stage: Annotated[Stage | None, Argument("Only jobs in this stage.")] = None,
    type: JobType = None,
    account: JobAccount = None,
    error: JobError = None,
    limit: Limit = PAGE,
    next: Next = None,
) -> Page[JobLine]:
    """The jobs that match, the newest first."""
    return await list_page(database, JobFilters(stage, type, account, error), next, limit)


@JOBS.operation(READ, get("/jobs/stages"))
async def count_stages(database: Database, /) -> list[StageCount]:
    """How many jobs are in each stage, counted up to ten thousand. Completed ones are counted by hour instead."""
    found = await database.run(job_lists.count_stages(MOST_COUNTED + 1))
    return [
        StageCount(stage, min(found.get(stage, 0), MOST_COUNTED), found.get(stage, 0) > MOST_COUNTED)
        for stage in STAGES
        if stage != "completed"
    ]


async def list_page(database: Database, filters: JobFilters, before: str | None, most: int = PAGE) -> Page[JobLine]:
    """List the jobs that match, newest first, from a key on. Few are listed if few of those looked at match."""
    asked = await _question(database, filters)
    listed = await database.run(job_lists.list_by_stage(asked, _check_key(asked.stage, before), most))
    return Page(listed.jobs, listed.before)


@JOBS.operation(READ, get("/jobs/selection"))
async def select_jobs(
    database: Database,
    /,
    stage: JobStage,
    type: JobType = None,
    account: JobAccount = None,
    error: JobError = None,
) -> SelectedJobs:
    """The jobs that a bulk act would touch: the newest that match, up to 500."""
    return await select_page_jobs(database, JobFilters(stage, type, account, error))


async def select_page_jobs(database: Database, filters: JobFilters, begin: str | None = None) -> SelectedJobs:
    """Find the jobs that a bulk act would touch: the newest that match, from a key on, at most MOST_AT_ONCE."""
    asked = await _question(database, filters)
    if asked.stage is None or asked.stage == "completed":
        raise BadInput("stage", "is missing", "choose a stage whose jobs have not completed")
    listed = await database.run(job_lists.list_by_stage(asked, _check_key(asked.stage, begin), MOST_AT_ONCE))
    by_type = Counter(each.type for each in listed.jobs)
    first = listed.jobs[0] if listed.jobs else None
    return SelectedJobs(listed.jobs, by_type, listed.before is not None, _key_above(asked.stage, first))


def _key_above(stage: Stage, first: JobLine | None) -> str:
    if first is None:
        return ""
    if stage in ("failed", "canceled"):
        return f"{first.finished_at:%Y-%m-%dT%H:%M:%S.%fZ}_{first.seq + 1}"
    return str(first.seq + 1)


async def _question(database: Database, filters: JobFilters) -> JobQuestion:
    if filters.type is not None:
        CATALOGUE[filters.type]
    account = None if filters.account is None else (await account_for(database, filters.account)).id
    return JobQuestion(filters.stage, filters.type, account, filters.error)


def _check_key(stage: Stage | None, before: str | None) -> str | None:
    if before is not None and not job_lists.is_key(stage, before):
        raise BadInput("before", "is no place in this list", "open the list again from its beginning")
    return before


@JOBS.operation(READ, get("/jobs/figures"))
async def read_figures(database: Database, clock: Clock, /, window: WindowArgument = DEFAULT_WINDOW) -> JobFigures:
    """How many jobs ended in the window, how, and after how long."""
    return await _figures(database, window_of(window, clock()))


async def _figures(database: Database, window: Window) -> JobFigures:
    """Read the figures from the counts by hour."""
    found = await database.run(by_span("job", window.since, window.end, window.step))
    spans = len(window.moments)
    by_state = {state: [0] * spans for state in ("completed", "failed", "canceled")}
    rates: defaultdict[str, list[int]] = defaultdict(lambda: [0] * spans)
    buckets: defaultdict[str, Counter[int]] = defaultdict(Counter)
    times: list[Counter[int]] = [Counter() for _ in range(spans)]
    failed: Counter[str] = Counter()
    for each in found:
        place = window.place(each.hour)
        by_state[each.queue][place] += each.count
        rates[each.name][place] += each.count
        if each.queue == "failed":
            failed[each.name] += each.count
        if each.queue == "completed":
            buckets[each.name][each.bucket] += each.count
            times[place][each.bucket] += each.count
    types = [
        TypeFigures(name, sum(rate), failed[name], quantile(buckets[name], 0.5), quantile(buckets[name], 0.95), rate)
        for name, rate in sorted(rates.items(), key=lambda item: (-sum(item[1]), item[0]))
    ]
    latencies = [quantile(each, 0.95) / timedelta(milliseconds=1) for each in times]
    return JobFigures(window, await database.run(job_figures.counted_until()), by_state, latencies, types)


@JOBS.operation(READ, get("/jobs/workers"))
async def load_workforce(database: Database, clock: Clock, /) -> Workforce:
    """The worker processes, and the one that leads."""
    workers = await database.run(job_lists.list_workers())
    holder, until, _ = await database.run(leader("jobs")) or (None, None, 0)
    now = clock()
    return Workforce(workers, holder if until is not None and until >= now else None, until, now)

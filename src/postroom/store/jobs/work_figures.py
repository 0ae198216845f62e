"""How much work there is: jobs, actions, calls of the model and the size of the database, in bounded time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from postroom.store.actions.model_calls import day_of, spend_of
from postroom.store.engine.codecs import as_optional_time
from postroom.store.engine.database import Script, query, sql

MOST_COUNTED = 10_000
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WorkFigures:
    """Counts at one moment. Jobs are by type and stage, actions and calls by state."""

    jobs: dict[tuple[str, str], int]
    actions: dict[str, int]
    oldest_approval: datetime | None
    model_micros: int
    model_calls: dict[str, int]
    database_bytes: int


@query
def load_work_figures(now: datetime, zone: tzinfo = UTC) -> Script[WorkFigures]:
    """Count what waits, runs and fails, up to a limit for each stage. `zone` is that of the owner's day."""
    jobs = {(type, stage): count for type, stage, count in (yield sql("count_jobs_by_type", MOST_COUNTED))}
    actions = {state: count for state, count in (yield sql("count_live_actions"))}  # noqa: C416
    failed = yield sql("count_failed", now - DAY, MOST_COUNTED)
    oldest = yield sql("select_oldest_approval")
    spend = yield from spend_of.script(day_of(now, zone))
    calls = {state: count for state, count in (yield sql("count_model_calls", day_of(now, zone)))}  # noqa: C416
    size = yield sql("select_database_size")
    return WorkFigures(
        jobs, actions | {"failed": failed[0][0]}, as_optional_time(oldest[0][0]), spend.micros, calls, size[0][0]
    )

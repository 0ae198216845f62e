"""How fast one worker process works off a queue of jobs that do nothing."""

from functools import partial

from ..order import Database
from ..rounds import Run, Turn
from ..subjects import Subject
from ..table import Line, ahead_of

# How many times as fast as each peer is claimed; where nothing more is claimed, being ahead is the goal.
AHEAD = 1.0
OF_PGQUEUER = 2.5
OF_RAW = 0.5
OF_HUEY = 10.0


def postgres(run: Run) -> list[Line]:
    field, sizes = run.field, run.sizes
    rivals = [
        (field.procrastinate, sizes.drain_procrastinate, AHEAD),
        (field.pgqueuer, sizes.drain_pgqueuer, OF_PGQUEUER),
        (field.graphile_worker, sizes.drain, AHEAD),
        (field.raw_postgres, sizes.drain, OF_RAW),
    ]
    return _compare(run, "postgres", "drain no-op jobs, PostgreSQL", rivals)


def sqlite(run: Run) -> list[Line]:
    return _compare(run, "sqlite", "drain no-op jobs, SQLite", [(run.field.huey, run.sizes.drain_huey, OF_HUEY)])


def _compare(run: Run, kind: Database, work: str, rivals: list[tuple[Subject, int, float]]) -> list[Line]:
    ours = Line(work, run.field.ours.name)
    turns = [_turn(run, kind, run.field.ours, ours, run.sizes.drain)]
    for rival, count, at_least in rivals:
        line = Line(work, rival.name)
        line.comparison = ahead_of(ours, line, at_least)
        turns.append(_turn(run, kind, rival, line, count))
    return run.alternate(turns)


def _turn(run: Run, kind: Database, subject: Subject, line: Line, count: int) -> Turn:
    return Turn(subject, line, partial(_measure, run, kind, subject, line, count))


def _measure(run: Run, kind: Database, subject: Subject, line: Line, count: int) -> None:
    line.samples.append(run.drain_rate(subject, kind, count))

"""How fast concurrent producers get jobs accepted when each call returns only once its job is durable."""

from functools import partial

from ..order import Database
from ..rounds import Run, Turn
from ..subjects import Subject
from ..table import Line, ahead_of

AHEAD = 1.0
OF_RAW = 0.6


def postgres(run: Run) -> list[Line]:
    field = run.field
    return _compare(run, "postgres", "PostgreSQL", field.raw_postgres, [field.procrastinate, field.pgqueuer])


def sqlite(run: Run) -> list[Line]:
    return _compare(run, "sqlite", "SQLite", run.field.raw_sqlite, [run.field.huey])


def _compare(run: Run, kind: Database, name: str, probe: Subject, one_by_one: list[Subject]) -> list[Line]:
    lines: list[Line] = []
    for producers, count in run.sizes.enqueue.items():
        work = f"durable enqueue, {name}, {producers} producers"
        ours = Line(work, run.field.ours.name)
        turns = [Turn(run.field.ours, ours, partial(_measure, run, kind, run.field.ours, ours, producers, count))]
        rivals = [(peer, run.sizes.enqueue_one_by_one, AHEAD) for peer in one_by_one]
        for rival, calls, at_least in [*rivals, (probe, count, OF_RAW)]:
            line = Line(work, rival.name)
            line.comparison = ahead_of(ours, line, at_least)
            turns.append(Turn(rival, line, partial(_measure, run, kind, rival, line, producers, calls)))
        lines += run.alternate(turns)
    return lines


def _measure(run: Run, kind: Database, subject: Subject, line: Line, producers: int, count: int) -> None:
    outcome = run.enqueue_burst(subject, kind, producers=producers, count=count)
    line.samples.append(count / outcome.seconds)
    line.add_latencies(outcome.latencies)

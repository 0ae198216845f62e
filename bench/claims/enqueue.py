"""How fast concurrent producers get jobs accepted when each call returns only once its job is durable."""

from functools import partial

from ..bench_run import BenchRun, Turn
from ..order import Database
from ..subjects import Subject
from ..table import Comparison, Line

AHEAD = 1.0
OF_RAW = 0.6


def postgres(run: BenchRun) -> list[Line]:
    field = run.field
    return _compare(run, "postgres", "PostgreSQL", field.raw_postgres, [field.procrastinate, field.pgqueuer])


def sqlite(run: BenchRun) -> list[Line]:
    return _compare(run, "sqlite", "SQLite", run.field.raw_sqlite, [run.field.huey])


def _compare(run: BenchRun, kind: Database, name: str, probe: Subject, one_by_one: list[Subject]) -> list[Line]:
    lines: list[Line] = []
    for producers, count in run.sizes.enqueue.items():
        work = f"durable enqueue, {name}, {producers} producers"
        ours = Line(work, run.field.ours.name)
        turns = [Turn(run.field.ours, ours, partial(_measure, run, kind, run.field.ours, ours, producers, count))]
        rivals = [(peer, run.sizes.enqueue_one_by_one, AHEAD) for peer in one_by_one]
        for rival, calls, at_least in [*rivals, (probe, count, OF_RAW)]:
            line = Line(work, rival.name)
            line.comparison = Comparison(ours, line, at_least=at_least)
            turns.append(Turn(rival, line, partial(_measure, run, kind, rival, line, producers, calls)))
        lines += run.alternate(turns)
    return lines


def _measure(run: BenchRun, kind: Database, subject: Subject, line: Line, producers: int, count: int) -> None:
    outcome = run.enqueue_burst(subject, kind, producers=producers, count=count)
    line.samples.append(count / outcome.seconds)
    line.add_latencies(outcome.latencies)

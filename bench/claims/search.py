"""How fast stored mail is searched: over 200,000 messages, 95 of 100 searches within 100 ms, whatever the database."""

import sys
from functools import partial
from statistics import quantiles

from ..answers import SubjectFailedError, answer_of
from ..order import Database, Outcome, Target
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Line

P95_MS = 100


def postgres(run: Run) -> list[Line]:
    return _searched(run, "postgres", "PostgreSQL")


def sqlite(run: Run) -> list[Line]:
    return _searched(run, "sqlite", "SQLite")


def _searched(run: Run, kind: Database, named: str) -> list[Line]:
    line = Line(f"p95 of searches in {run.sizes.searched:,} messages, {named}", run.field.ours.name, unit="ms")
    line.comparison = Bound([line], at_most=P95_MS)
    return run.alternate([Turn(Subject(line.subject, ()), line, partial(_measure, run, kind, line))])


def _measure(run: Run, kind: Database, line: Line) -> None:
    count = run.sizes.searched
    with run.ground.database(kind) as target:
        _asked("fill", target, count)
        run.ground.settle(target)
        outcome = _asked("search", target, count)
    if not outcome.handled:
        raise SubjectFailedError("no search found anything")
    line.samples.append(quantiles(outcome.latencies, n=20)[-1] * 1_000)


def _asked(verb: str, target: Target, count: int) -> Outcome:
    command = [sys.executable, "-m", "bench.searching", verb, target.database, target.address, str(count)]
    what = f"could not {verb}"
    return outcome_of(answer_of(command, what, timeout_s=1_800), what)

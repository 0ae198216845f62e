"""How fast a change of rules is replayed over stored mail: 50,000 messages within a minute, whatever the database."""

import sys
from functools import partial

from ..answers import SubjectFailedError, answer_of
from ..order import Database, Outcome, Target
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Line

COUNT, WITHIN_S = 50_000, 60
UNIT = "messages/s"


def postgres(run: Run) -> list[Line]:
    return _replayed(run, "postgres", "PostgreSQL")


def sqlite(run: Run) -> list[Line]:
    return _replayed(run, "sqlite", "SQLite")


def _replayed(run: Run, kind: Database, named: str) -> list[Line]:
    line = Line(f"replay under 1,000 rules and their change, {named}", run.field.ours.name, UNIT)
    line.comparison = Bound([line], at_least=COUNT / WITHIN_S)
    return run.alternate([Turn(Subject(line.subject, ()), line, partial(_measure, run, kind, line))])


def _measure(run: Run, kind: Database, line: Line) -> None:
    count = run.sizes.replayed
    with run.ground.database(kind) as target:
        _asked("fill", target, count)
        run.ground.settle(target)
        outcome = _asked("simulate", target, count)
    if outcome.finished != count:
        raise SubjectFailedError(f"{outcome.finished} of {count} messages were replayed, {outcome.handled} changed")
    line.samples.append(count / outcome.seconds)


def _asked(verb: str, target: Target, count: int) -> Outcome:
    command = [sys.executable, "-m", "bench.simulating", verb, target.database, target.address, str(count)]
    what = f"could not {verb}"
    return outcome_of(answer_of(command, what, timeout_s=1_200), what)

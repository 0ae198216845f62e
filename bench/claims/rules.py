"""How fast messages are decided by 1,000 rules on one core, beside trying one rule after another."""

import sys
from functools import partial

from ..answers import SubjectFailedError, answer_of
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Line, ahead_of

AT_LEAST = 5_000
AHEAD = 1.0
WORK, UNIT = "decided by 1,000 rules, one core", "messages/s"
# Each takes about two seconds; rates are compared.
COUNTS = {"postroom": 20_000, "one by one": 400}


def one_core(run: Run) -> list[Line]:
    lines = {name: Line(WORK, name, UNIT) for name in COUNTS}
    ours, naive = lines.values()
    ours.comparison = Bound([ours], at_least=AT_LEAST)
    naive.comparison = ahead_of(ours, naive, AHEAD)
    return run.alternate([Turn(Subject(name, ()), line, partial(_measure, line)) for name, line in lines.items()])


def _measure(line: Line) -> None:
    count = COUNTS[line.subject]
    command = [sys.executable, "-m", "bench.ruling", line.subject, str(count)]
    what = f"{line.subject} could not decide"
    outcome = outcome_of(answer_of(command, what, timeout_s=600), what)
    if outcome.finished != count:
        raise SubjectFailedError(f"{line.subject} decided {count - outcome.finished} of {count} messages differently")
    line.samples.append(count / outcome.seconds)

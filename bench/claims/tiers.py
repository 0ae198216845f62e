"""How fast raw messages get their tiers on one core, beside what Python's own parser, and a fast one, would take."""

import sys
from functools import partial

from ..answers import SubjectFailedError, answer_of
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Line, ahead_of

AT_LEAST = 10_000
AHEAD = 1.0
WORK, UNIT = "tier from raw bytes, one core", "messages/s"
# Each takes about a second; rates are compared.
COUNTS = {
    "postroom": 40_000,
    "stdlib, modern policy": 300,
    "stdlib, compat32": 2_000,
    "stdlib, head only": 5_000,
    "fast-mail-parser": 20_000,
}


def one_core(run: Run) -> list[Line]:
    lines = {name: Line(WORK, name, UNIT) for name in COUNTS}
    ours, *others = lines.values()
    ours.comparison = Bound([ours], at_least=AT_LEAST)
    for line in others:
        line.comparison = ahead_of(ours, line, AHEAD)
    return run.alternate([Turn(Subject(name, ()), line, partial(_measure, line)) for name, line in lines.items()])


def _measure(line: Line) -> None:
    count = COUNTS[line.subject]
    command = [sys.executable, "-m", "bench.tiering", line.subject, str(count)]
    what = f"{line.subject} could not assign tiers"
    outcome = outcome_of(answer_of(command, what, timeout_s=600), what)
    if outcome.finished != count:
        raise SubjectFailedError(f"{line.subject} gave {count - outcome.finished} of {count} messages another tier")
    line.samples.append(count / outcome.seconds)

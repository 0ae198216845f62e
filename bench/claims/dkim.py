"""How fast mail is signed on one core, beside the usual Python implementation."""

import sys
from functools import partial

from ..answers import SubjectFailedError, answer_of
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Line, ahead_of

AT_LEAST = 800
AHEAD = 1.0
WORK, UNIT = "DKIM signatures, RSA 2048, 4 KB, one core", "messages/s"
# Each takes a few seconds; rates are compared.
COUNTS = {"postroom": 3_000, "dkimpy": 200}


def one_core(run: Run) -> list[Line]:
    ours, theirs = lines = [Line(WORK, name, UNIT) for name in COUNTS]
    ours.comparison = Bound([ours], at_least=AT_LEAST)
    theirs.comparison = ahead_of(ours, theirs, AHEAD)
    return run.alternate([Turn(Subject(line.subject, ()), line, partial(_measure, line)) for line in lines])


def _measure(line: Line) -> None:
    count = COUNTS[line.subject]
    command = [sys.executable, "-m", "bench.signing", line.subject, str(count)]
    what = f"{line.subject} could not sign"
    outcome = outcome_of(answer_of(command, what, timeout_s=600), what)
    if outcome.finished != count:
        raise SubjectFailedError(f"a signature of {line.subject} is not valid")
    line.samples.append(count / outcome.seconds)

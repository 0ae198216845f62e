"""How fast mail in files is previewed: at least 1,000 messages/s with 100 rules, and 2,000 messages within 3 s."""

import sys
from functools import partial

from ..answers import SubjectFailedError, answer_of
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Line

AT_LEAST = 1_000
COUNT, WITHIN_S = 2_000, 3
UNIT = "messages/s"


def files(run: Run) -> list[Line]:
    lines = {
        "ours": Line("preview with 100 rules", run.field.ours.name, UNIT),
        "command": Line("postroom preview of 2,000 messages, with its start", run.field.ours.name, UNIT),
    }
    lines["ours"].comparison = Bound([lines["ours"]], at_least=AT_LEAST)
    lines["command"].comparison = Bound([lines["command"]], at_least=COUNT / WITHIN_S)
    return run.alternate(
        [Turn(Subject(line.subject, ()), line, partial(_measure, side, line)) for side, line in lines.items()]
    )


def _measure(side: str, line: Line) -> None:
    command = [sys.executable, "-m", "bench.previewing", side, str(COUNT)]
    what = "could not preview"
    outcome = outcome_of(answer_of(command, what, timeout_s=600), what)
    if outcome.finished != COUNT:
        raise SubjectFailedError(f"{outcome.finished} of {COUNT} messages were previewed")
    line.samples.append(COUNT / outcome.seconds)

"""What writing to SQLite costs beside readers that overlap, and how long the log becomes. No goal: it informs."""

import sys
from functools import partial

from ..answers import answer_of
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Comparison, Line

WORK, LOG = "jobs of 64 KiB beside four readers, SQLite", "the largest that the log became meanwhile"
NAMES = ("postroom", "raw")


def sqlite(run: Run) -> list[Line]:
    rates = {name: Line(WORK, name) for name in NAMES}
    logs = {name: Line(LOG, name, "MiB") for name in NAMES}
    for lines in (rates, logs):
        lines["raw"].comparison = Comparison(lines["postroom"], lines["raw"], "postroom is {ratio} raw")
    turns = [Turn(Subject(name, ()), rates[name], partial(_measure, run, rates[name], logs[name])) for name in NAMES]
    measured = run.alternate(turns)
    return [*measured, *(logs[line.subject] for line in measured)]


def _measure(run: Run, rate: Line, log: Line) -> None:
    mib = run.sizes.beside_readers_mib
    command = [sys.executable, "-m", "bench.beside_readers", rate.subject, str(mib)]
    what = f"{rate.subject} could not write beside readers"
    outcome = outcome_of(answer_of(command, what, timeout_s=1200), what)
    rate.samples.append(outcome.finished / outcome.seconds)
    rate.add_latencies(outcome.latencies)
    log.samples.append(float(outcome.handled))

"""The whole road, from the mailbox to a completed action, with rules alone: how much mail a second one process takes
care of, and how long mail that comes one by one waits for its action.
"""

import statistics
from functools import partial

from ..answers import SubjectFailedError
from ..road import Outcome
from ..rounds import Run
from ..table import Bound, Line
from .live_mail import alternate_together, asked

WORK = "mailbox to completed action, SQLite"
AT_LEAST = 100
PER_SECOND = 20
MOST_P95_MS = 1_000


def one_process(run: Run) -> list[Line]:
    name = run.field.ours.name
    rate = Line(f"{WORK}, all at once", name, "messages/s")
    cpu = Line(f"{WORK}, all at once, processor", name, "ms a message")
    waited = Line(f"{WORK}, p95 at {PER_SECOND} messages/s", name, "ms")
    rate.comparison = Bound([rate], at_least=AT_LEAST)
    waited.comparison = Bound([waited], at_most=MOST_P95_MS)
    return alternate_together(run, [rate, cpu, waited], partial(_measure, run.sizes.road, run.sizes.road_s))


def _measure(at_once: int, seconds: int, lines: list[Line]) -> None:
    outcome = Outcome(**asked("bench.road", "product", str(at_once), str(PER_SECOND), str(seconds)))
    expected = at_once + PER_SECOND * seconds
    if outcome.completed != expected:
        raise SubjectFailedError(f"of {expected} actions, {outcome.completed} are completed")
    rate, cpu, waited = lines
    rate.samples.append(at_once / outcome.seconds)
    cpu.samples.append(outcome.cpu_s / at_once * 1000)
    waited.add_latencies(outcome.latencies)
    waited.samples.append(statistics.quantiles(outcome.latencies, n=20, method="inclusive")[-1] * 1000)

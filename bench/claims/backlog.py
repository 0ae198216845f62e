"""Whether a claim costs the same with ten thousand jobs waiting, a million waiting, or a million asleep beside.

Three databases are filled once and measured in turn. After each round the claimed jobs are replaced, so that every
round meets the same backlog. The cost is the mean over a round's claims: a slow one now and then is part of it.
"""

import contextlib
import statistics
from functools import partial

from ..answers import SubjectFailedError
from ..order import Database, Order, Target
from ..rounds import Run, Turn
from ..subjects import Subject
from ..table import Comparison, Line

WITHIN = 1.3


def postgres(run: Run) -> list[Line]:
    return _compare(run, "postgres", "PostgreSQL")


def sqlite(run: Run) -> list[Line]:
    return _compare(run, "sqlite", "SQLite")


def _compare(run: Run, kind: Database, name: str) -> list[Line]:
    sizes, ours = run.sizes, run.field.ours
    work = f"claim {sizes.claim_batch} jobs, {name}"
    small = f"{sizes.small_backlog:,} waiting"
    grounds = [
        (small, sizes.small_backlog, 0),
        (f"{sizes.large_backlog:,} waiting", sizes.large_backlog, 0),
        (f"{small}, {sizes.large_backlog:,} asleep", sizes.small_backlog, sizes.large_backlog),
    ]
    turns: list[Turn] = []
    with contextlib.ExitStack() as stack:
        for label, waiting, asleep in grounds:
            line = Line(work, f"{ours.name}, {label}", unit="ms")
            if turns:
                line.comparison = Comparison(line, turns[0].line, f"{{ratio}} {small}", at_most=WITHIN)
            target = stack.enter_context(run.ground.database(kind))
            try:
                _fill(run, ours, target, waiting, asleep)
            except SubjectFailedError as error:
                line.error = str(error)
            turns.append(Turn(ours, line, partial(_measure, run, ours, target, line)))
        return run.alternate(turns)


def _fill(run: Run, subject: Subject, target: Target, waiting: int, asleep: int) -> None:
    subject.ask(Order("prepare", target))
    if asleep:
        subject.ask(Order("fill_sleeping", target, count=asleep))
    subject.ask(Order("fill", target, count=waiting))


def _measure(run: Run, subject: Subject, target: Target, line: Line) -> None:
    claims, batch = run.sizes.claims, run.sizes.claim_batch
    run.ground.settle(target)
    outcome = subject.ask(Order("claim_cost", target, count=claims, batch=batch))
    if outcome.handled != claims * batch or len(outcome.latencies) != claims:
        raise SubjectFailedError(f"{subject.name} claimed {outcome.handled} jobs, not {claims} times {batch}")
    line.samples.append(statistics.fmean(outcome.latencies) * 1000)
    line.add_latencies(outcome.latencies)
    subject.ask(Order("fill", target, count=(claims + 1) * batch))

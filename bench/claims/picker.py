"""How fast consumers lease and ack in full batches, and whether that costs the same however much waits.

The raw side moves the same rows of the same tables by hand-written statements, with the same durability and none of
the order, so it shows what the database alone would allow.
"""

import contextlib
import statistics
from functools import partial

from ..answers import SubjectFailedError
from ..order import Database, Order, Target
from ..rounds import Run, Turn
from ..subjects import Subject
from ..table import Bound, Comparison, Line, ahead_of

AT_LEAST = 20_000
WITHIN = 1.3
UNIT = "messages/s"


def rate_postgres(run: Run) -> list[Line]:
    return _rate(run, "postgres", "PostgreSQL", run.field.raw_postgres, run.sizes.consumers)


def rate_sqlite(run: Run) -> list[Line]:
    return _rate(run, "sqlite", "SQLite", run.field.raw_sqlite, (1,))


def backlog_postgres(run: Run) -> list[Line]:
    return _backlog(run, "postgres", "PostgreSQL")


def backlog_sqlite(run: Run) -> list[Line]:
    return _backlog(run, "sqlite", "SQLite")


def _rate(run: Run, kind: Database, name: str, raw: Subject, raw_consumers: tuple[int, ...]) -> list[Line]:
    ours, work = run.field.ours, f"lease and ack in batches of {run.sizes.lease_batch}, {name}"
    lines = {count: Line(work, f"{ours.name}, {_consumers(count)}", UNIT) for count in run.sizes.consumers}
    next(iter(lines.values())).comparison = Bound(list(lines.values()), at_least=AT_LEAST)
    turns = [Turn(ours, line, partial(_consume, run, kind, ours, line, count)) for count, line in lines.items()]
    for count in raw_consumers:
        line = Line(work, f"{raw.name}, {_consumers(count)}", UNIT)
        line.comparison = ahead_of(lines[count], line, None)
        turns.append(Turn(raw, line, partial(_consume, run, kind, raw, line, count)))
    return run.alternate(turns)


def _consumers(count: int) -> str:
    return "1 consumer" if count == 1 else f"{count} consumers"


def _consume(run: Run, kind: Database, subject: Subject, line: Line, consumers: int) -> None:
    count, batch = run.sizes.consume, run.sizes.lease_batch
    with run.ground.database(kind) as target:
        _fill(run, target, count)
        run.ground.settle(target)
        outcome = subject.measure(Order("consume", target, count=count, producers=consumers, batch=batch))
    line.samples.append(count / outcome.seconds)
    if outcome.latencies:
        line.add_latencies(outcome.latencies)


def _fill(run: Run, target: Target, count: int) -> None:
    """Both sides work in Postroom's own tables, filled alike."""
    run.field.ours.ask(Order("prepare", target))
    run.field.ours.ask(Order("fill_inbox", target, count=count))


def _backlog(run: Run, kind: Database, name: str) -> list[Line]:
    sizes, ours = run.sizes, run.field.ours
    work = f"lease and ack {sizes.lease_batch} messages, {name}"
    turns: list[Turn] = []
    with contextlib.ExitStack() as stack:
        for waiting in (sizes.small_backlog, sizes.large_backlog):
            line = Line(work, f"{ours.name}, {waiting:,} waiting", unit="ms")
            if turns:
                reads = f"{{ratio}} {sizes.small_backlog:,} waiting"
                line.comparison = Comparison(line, turns[0].line, reads, at_most=WITHIN)
            target = stack.enter_context(run.ground.database(kind))
            try:
                _fill(run, target, waiting)
            except SubjectFailedError as error:
                line.error = str(error)
            turns.append(Turn(ours, line, partial(_measure_cost, run, target, line)))
        return run.alternate(turns)


def _measure_cost(run: Run, target: Target, line: Line) -> None:
    ours, leases, batch = run.field.ours, run.sizes.leases, run.sizes.lease_batch
    run.ground.settle(target)
    outcome = ours.ask(Order("lease_cost", target, count=leases, batch=batch))
    if outcome.handled != leases * batch or len(outcome.latencies) != leases:
        raise SubjectFailedError(f"{ours.name} acked {outcome.handled} messages, not {leases} times {batch}")
    line.samples.append(statistics.fmean(outcome.latencies) * 1000)
    line.add_latencies(outcome.latencies)
    ours.ask(Order("fill_inbox", target, count=(leases + 1) * batch))

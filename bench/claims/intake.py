"""How fast the doors accept, each message durable before its answer, and how long a producer waits at half of that.

Client and server are processes of their own and talk over real sockets. The bare server gets the same bytes, parses
them and does nothing else.
"""

from dataclasses import dataclass
from functools import partial

from ..answers import SubjectFailedError
from ..load import WARM_UP
from ..order import Database, Door, Order, Outcome, Target, Verb
from ..rounds import Run, Turn
from ..serving import served
from ..subjects import Subject
from ..table import Bound, Line, ahead_of

P99_MS = 30.0


@dataclass(frozen=True)
class Load:
    """One door with its goal, the messages in a call, and the clients that share them."""

    door: Door
    reads: str
    goal: int
    unit: str
    batch: int
    clients: int


LOADS = (
    Load("ingest.batch", "MCP ingest.batch of 100, 4 clients", 3000, "messages/s", 100, 4),
    Load("ingest", "MCP ingest, 8 clients", 200, "calls/s", 1, 8),
    Load("http", "POST /v1/ingest, 64 clients", 2000, "messages/s", 1, 64),
)


def rate_postgres(run: Run) -> list[Line]:
    return _rates(run, "postgres", "PostgreSQL")


def rate_sqlite(run: Run) -> list[Line]:
    return _rates(run, "sqlite", "SQLite")


def latency_postgres(run: Run) -> list[Line]:
    return _latencies(run, "postgres", "PostgreSQL")


def latency_sqlite(run: Run) -> list[Line]:
    return _latencies(run, "sqlite", "SQLite")


def _rates(run: Run, kind: Database, name: str) -> list[Line]:
    lines: list[Line] = []
    for load in LOADS:
        work = f"{load.reads}, {name}"
        ours, bare = Line(work, run.field.ours.name, load.unit), Line(work, run.field.bare.name, load.unit)
        ours.comparison = Bound([ours], at_least=load.goal)
        bare.comparison = ahead_of(ours, bare, None)
        lines += run.alternate(
            [
                Turn(run.field.ours, ours, partial(_measure_rate, run, kind, run.field.ours, ours, load)),
                Turn(run.field.bare, bare, partial(_measure_rate, run, kind, run.field.bare, bare, load)),
            ]
        )
    return lines


def _measure_rate(run: Run, kind: Database, subject: Subject, line: Line, load: Load) -> None:
    count = run.sizes.ingest[load.door]
    outcome = _measure(run, kind, subject, load, "hand_in", count)
    line.samples.append(count / outcome.seconds)
    line.add_latencies(outcome.latencies)


def _latencies(run: Run, kind: Database, name: str) -> list[Line]:
    turns: list[Turn] = []
    for load in LOADS:
        work = f"p99 at half that load, {name}"
        line = Line(work, f"{run.field.ours.name}, {load.door} at {load.goal // 2:,} {load.unit}", unit="ms")
        line.comparison = Bound([line], at_most=P99_MS)
        turns.append(Turn(run.field.ours, line, partial(_measure_latency, run, kind, line, load)))
    return run.alternate(turns)


def _measure_latency(run: Run, kind: Database, line: Line, load: Load) -> None:
    count = int(run.sizes.arrive_s * load.goal / 2)
    outcome = _measure(run, kind, run.field.ours, load, "arrive", count)
    line.add_latencies(outcome.latencies)
    line.samples.append(line.p99_ms[-1])


def _measure(run: Run, kind: Database, subject: Subject, load: Load, verb: Verb, count: int) -> Outcome:
    """One server, one client; what was accepted is counted in the database afterwards."""
    is_ours = subject is run.field.ours
    with run.ground.database(kind) as target:
        if is_ours:
            run.field.ours.ask(Order("prepare", target))
            run.ground.settle(target)
        with served("ours" if is_ours else "bare", target) as server:
            outcome = run.field.client.ask(
                Order(
                    verb,
                    target,
                    count=count,
                    producers=load.clients,
                    batch=load.batch,
                    rate=load.goal / 2,
                    address=server.address,
                    token=server.token,
                    door=load.door,
                )
            )
        if outcome.handled != count:
            raise SubjectFailedError(f"{subject.name} accepted {outcome.handled} of {count} messages")
        if is_ours:
            _check_kept(run, target, count + WARM_UP * load.batch)
    return outcome


def _check_kept(run: Run, target: Target, expected: int) -> None:
    kept = run.field.ours.ask(Order("count_inbox", target)).finished
    if kept != expected:
        raise SubjectFailedError(f"{expected} messages were accepted, and the database has {kept}")

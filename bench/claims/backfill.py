"""Old mail, from the archive to accepted envelopes: how many a second, and in how much memory; how long listing and
showing backfills takes with many of them; and how long new mail waits for its decision while a backfill runs.
"""

from functools import partial

from ..answers import SubjectFailedError
from ..backfill import Outcome
from ..backfill_beside import LIMITS
from ..backfill_beside import Outcome as BesideOutcome
from ..backfill_jobs import VIEWS
from ..order import Database, Target, Terms
from ..rounds import Run
from ..table import Bound, Comparison, Line
from .live_mail import MOST_GROWTH_MIB, alternate_together, asked

WORK = "archive to accepted envelope, SQLite"
AT_LEAST = 200
MOST_MS = 50.0
AT_MOST_BESIDE = 1.5


def one_process(run: Run) -> list[Line]:
    name = run.field.ours.name
    rate = Line(WORK, f"{name}, ingested", "messages/s")
    read = Line(WORK, f"{name}, read", "messages/s")
    cpu = Line(f"{WORK}, processor", name, "ms a message")
    memory = Line(f"{WORK}, memory of the second half", name, "MiB more")
    rate.comparison = Bound([rate], at_least=AT_LEAST)
    memory.comparison = Bound([memory], at_most=MOST_GROWTH_MIB)
    return alternate_together(run, [rate, read, cpu, memory], partial(_measure, run.sizes.backfill))


def _measure(count: int, lines: list[Line]) -> None:
    outcome = Outcome(**asked("bench.backfill", "connector", str(count)))
    if outcome.status != "completed" or outcome.wrong or outcome.ingested != outcome.expected:
        raise SubjectFailedError(
            f"the backfill is {outcome.status}; of {outcome.expected} messages it ingested {outcome.ingested}, "
            f"and {outcome.wrong} are missing in the database, not expected there, or there twice"
        )
    figures = (
        outcome.ingested / outcome.seconds,
        outcome.read / outcome.seconds,
        outcome.cpu_s / outcome.ingested * 1000,
        outcome.grown_mib,
    )
    for line, figure in zip(lines, figures, strict=True):
        line.samples.append(figure)


def jobs_postgres(run: Run) -> list[Line]:
    return _jobs(run, "postgres", "PostgreSQL")


def jobs_sqlite(run: Run) -> list[Line]:
    return _jobs(run, "sqlite", "SQLite")


def _jobs(run: Run, kind: Database, named: str) -> list[Line]:
    """One database, filled once: nothing that is measured changes it."""
    count = run.sizes.backfill_jobs
    lines = [Line(f"p99 with {count:,} backfills, {named}", f"{run.field.ours.name}, {view}", "ms") for view in VIEWS]
    for line in lines:
        line.comparison = Bound([line], at_most=MOST_MS)
    with run.ground.database(kind) as target:
        _ask_jobs("fill", target, count)
        run.ground.settle(target)
        return alternate_together(run, lines, partial(_measure_jobs, target, count))


def _measure_jobs(target: Target, count: int, lines: list[Line]) -> None:
    outcome = _ask_jobs("look", target, count)
    for line, view in zip(lines, VIEWS, strict=True):
        line.add_latencies(outcome[view])
        line.samples.append(line.p99_ms[-1])


def _ask_jobs(verb: str, target: Target, count: int) -> dict[str, list[float]]:
    return asked("bench.backfill_jobs", verb, target.database, target.address, str(count))


def beside(run: Run) -> list[Line]:
    terms: dict[Terms, str] = {"new": "quota of a new project", "older": "of an older one", "none": "no quota"}
    return [line for each, named in terms.items() for line in _beside(run, each, named)]


def _beside(run: Run, terms: Terms, named: str) -> list[Line]:
    name = run.field.ours.name
    alone = Line(f"p99, arrival to decision, {named}, SQLite", f"{name}, live alone", "ms")
    beside = Line(alone.work, f"{name}, beside a backfill", "ms")
    beside.comparison = Comparison(beside, alone, "beside is {ratio} alone", at_most=AT_MOST_BESIDE)
    bulk = Line(f"backfill beside it, {named}", name, "messages a minute")
    measured = alternate_together(run, [beside, alone, bulk], partial(_measure_beside, run, terms))
    return [alone, beside, bulk] if measured else []


def _measure_beside(run: Run, terms: Terms, lines: list[Line]) -> None:
    sizes = run.sizes
    words = (terms, sizes.beside_archive[terms], sizes.new_mail, sizes.bulk_before_s)
    outcome = BesideOutcome(**asked("bench.backfill_beside", "product", *map(str, words)))
    most = LIMITS[terms].per_user_minute
    if outcome.refused or (most is not None and outcome.most_units > most):
        raise SubjectFailedError(f"{outcome.most_units} units in a minute, {outcome.refused} calls refused")
    if outcome.status != "active":
        raise SubjectFailedError(f"the backfill was {outcome.status} before the end: it did not run all the time")
    beside, alone, bulk = lines
    for line, latencies in ((beside, outcome.beside), (alone, outcome.alone)):
        line.add_latencies(latencies)
        line.samples.append(line.p99_ms[-1])
    bulk.samples.append(outcome.backfilled_a_minute)

"""How fast mail is accepted over SMTP, durable before each acknowledgement, and how fast it goes through the whole
server, beside Postfix with the same client and the same sink."""

import sys
from functools import partial

from ..answers import SubjectFailedError, answer_of
from ..order import Database
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Comparison, Line, ahead_of

AHEAD = 1.5
AT_LEAST = 1100
RELAYING_AHEAD = 1.0
MOST_GROWTH_MIB = 10
APART = "postroom, two processes"
UNIT = "messages/s"


def postgres(run: Run) -> list[Line]:
    return _accepting(run, "postgres", "PostgreSQL")


def sqlite(run: Run) -> list[Line]:
    return _accepting(run, "sqlite", "SQLite")


def relaying_postgres(run: Run) -> list[Line]:
    return _relaying(run, "postgres", "PostgreSQL")


def relaying_sqlite(run: Run) -> list[Line]:
    return _relaying(run, "sqlite", "SQLite")


def _accepting(run: Run, kind: Database, name: str) -> list[Line]:
    work = f"mail of 4 KB over SMTP, 64 connections, {name}"
    ours, theirs = lines = [Line(work, "postroom", UNIT), Line(work, "postfix", UNIT)]
    ours.comparison = Bound([ours], at_least=AT_LEAST)
    theirs.comparison = ahead_of(ours, theirs, AHEAD)
    return _alternate(run, kind, "bench.submitting", lines)


def _relaying(run: Run, kind: Database, name: str) -> list[Line]:
    work = f"mail of 4 KB from smtp-source to smtp-sink, {name}"
    one, two, theirs = lines = [Line(work, name, UNIT) for name in ("postroom", APART, "postfix")]
    one.comparison = Comparison(one, two, "one is {ratio} of two")
    theirs.comparison = ahead_of(two, theirs, RELAYING_AHEAD)
    memory = Line(f"{work}, memory of the second half", APART, "MiB more")
    memory.comparison = Bound([memory], at_most=MOST_GROWTH_MIB)
    measured = _alternate(run, kind, "bench.relaying", lines, memory)
    return [*measured, *([memory] if memory.samples else [])]


def _alternate(run: Run, kind: Database, module: str, lines: list[Line], memory: Line | None = None) -> list[Line]:
    return run.alternate(
        [Turn(Subject(line.subject, ()), line, partial(_measure, run, kind, module, line, memory)) for line in lines]
    )


def _measure(run: Run, kind: Database, module: str, line: Line, memory: Line | None) -> None:
    count = run.sizes.submission
    subject = line.subject.partition(",")[0]
    command = [sys.executable, "-m", module, subject, str(count), *(["--apart"] if line.subject == APART else [])]
    what = f"{line.subject} could not take mail"
    with run.ground.database(kind) as target:
        if subject == "postroom" and kind == "postgres":
            command += ["--url", target.address]
        outcome = outcome_of(answer_of(command, what, timeout_s=1800), what)
    if outcome.finished != count:
        raise SubjectFailedError(f"{line.subject} acknowledged {count} mails and dealt with {outcome.finished}")
    line.samples.append(count / outcome.seconds)
    if memory is not None and line.subject == memory.subject:
        memory.samples.append(outcome.grown_mib)

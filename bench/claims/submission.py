"""How fast mail is accepted over SMTP, durable before each acknowledgement, beside Postfix with the same client."""

import sys
from functools import partial

from ..answers import SubjectFailedError, answer_of
from ..order import Database
from ..rounds import Run, Turn
from ..subjects import Subject, outcome_of
from ..table import Bound, Line, ahead_of

AHEAD = 1.5
AT_LEAST = 1100
UNIT = "messages/s"


def postgres(run: Run) -> list[Line]:
    return _rates(run, "postgres", "PostgreSQL")


def sqlite(run: Run) -> list[Line]:
    return _rates(run, "sqlite", "SQLite")


def _rates(run: Run, kind: Database, name: str) -> list[Line]:
    work = f"mail of 4 KB over SMTP, 64 connections, {name}"
    ours, theirs = lines = [Line(work, "postroom", UNIT), Line(work, "postfix", UNIT)]
    ours.comparison = Bound([ours], at_least=AT_LEAST)
    theirs.comparison = ahead_of(ours, theirs, AHEAD)
    return run.alternate([Turn(Subject(line.subject, ()), line, partial(_measure, run, kind, line)) for line in lines])


def _measure(run: Run, kind: Database, line: Line) -> None:
    count = run.sizes.submission
    command = [sys.executable, "-m", "bench.submitting", line.subject, str(count)]
    what = f"{line.subject} could not accept mail"
    with run.ground.database(kind) as target:
        if line.subject == "postroom" and kind == "postgres":
            command += ["--url", target.address]
        outcome = outcome_of(answer_of(command, what, timeout_s=1800), what)
    if outcome.finished != count:
        raise SubjectFailedError(f"{line.subject} acknowledged {count} mails and has {outcome.finished}")
    line.samples.append(count / outcome.seconds)

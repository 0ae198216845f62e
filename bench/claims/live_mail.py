"""From a record in Gmail's history to an accepted envelope: how many a second, at what cost, and in how much memory;
how many accounts one core serves; and how long new mail takes while old mail is read beside it.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from ..answers import SubjectFailedError, answer_of, first_line_of
from ..install import ROOT
from ..live_beside import Outcome
from ..live_mail import Measured
from ..rounds import Run, Turn
from ..subjects import Subject
from ..table import Bound, Comparison, Line

WORK = "history to accepted envelope, SQLite"
AT_LEAST = 300
# One core for 60 accounts, each at the five reads a second that Google's quota allows a user.
ACCOUNTS, READS_PER_SECOND = 60, 5
MOST_CPU_MS = 1000 / (ACCOUNTS * READS_PER_SECOND)
MOST_GROWTH_MIB = 10.0
PER_MINUTE = 6_000
AT_MOST_DOUBLE = 2.0


def one_process(run: Run) -> list[Line]:
    name = run.field.ours.name
    rate = Line(WORK, name, "messages/s")
    cpu = Line(f"{WORK}, processor", name, "ms a message")
    memory = Line(f"{WORK}, memory of the last 25,000", name, "MiB more")
    rate.comparison = Bound([rate], at_least=AT_LEAST)
    cpu.comparison = Bound([cpu], at_most=MOST_CPU_MS)
    memory.comparison = Bound([memory], at_most=MOST_GROWTH_MIB)
    return alternate_together(run, [rate, cpu, memory], partial(_measure, run.sizes.live_mail))


def many_accounts(run: Run) -> list[Line]:
    name = run.field.ours.name
    work = f"{ACCOUNTS} accounts, {READS_PER_SECOND} messages/s each, SQLite"
    served = Line(work, name, "accounts a core")
    cpu = Line(f"{work}, processor", name, "ms a message")
    served.comparison = Bound([served], at_least=ACCOUNTS)
    cpu.comparison = Bound([cpu], at_most=MOST_CPU_MS)
    return alternate_together(run, [served, cpu], partial(_measure_accounts, run.sizes.accounts_s))


def beside_bulk(run: Run) -> list[Line]:
    name = run.field.ours.name
    alone = Line("p99, delivery to accepted envelope, SQLite", f"{name}, live alone", "ms")
    beside = Line(alone.work, f"{name}, beside a bulk read", "ms")
    beside.comparison = Comparison(beside, alone, "beside is {ratio} alone", at_most=AT_MOST_DOUBLE)
    bulk = Line("bulk read beside it", name, "messages a minute")
    lines = [beside, alone, bulk]
    measured = alternate_together(run, lines, partial(_measure_beside, run.sizes.new_mail, run.sizes.bulk_before_s))
    return [alone, beside, bulk] if measured else []


def alternate_together(run: Run, lines: list[Line], measure: Callable[[list[Line]], None]) -> list[Line]:
    """One measurement writes all the lines; what fails the first fails them all."""
    measured = run.alternate([Turn(Subject(run.field.ours.name, ()), lines[0], partial(measure, lines))])
    for line in lines:
        line.error = lines[0].error
    return lines if measured else []


def _measure(count: int, lines: list[Line]) -> None:
    with _emulator(count) as emulator:
        outcome = Measured(**asked("bench.live_mail", "connector", str(count), emulator))
    _check_accepted(outcome, count)
    figures = (count / outcome.seconds, outcome.cpu_s / count * 1000, outcome.grown_mib)
    for line, figure in zip(lines, figures, strict=True):
        line.samples.append(figure)


def _measure_accounts(seconds: int, lines: list[Line]) -> None:
    numbers = (ACCOUNTS, READS_PER_SECOND, seconds)
    outcome = Measured(**asked("bench.live_accounts", "connectors", *map(str, numbers)))
    count = ACCOUNTS * READS_PER_SECOND * seconds
    _check_accepted(outcome, count)
    served, cpu = lines
    served.samples.append(count / outcome.cpu_s / READS_PER_SECOND)
    cpu.samples.append(outcome.cpu_s / count * 1000)


def _measure_beside(new_mail: int, bulk_before_s: int, lines: list[Line]) -> None:
    outcome = Outcome(**asked("bench.live_beside", "connector", str(new_mail), str(bulk_before_s)))
    if outcome.refused or outcome.most_units > PER_MINUTE:
        raise SubjectFailedError(f"{outcome.most_units} units in a minute, {outcome.refused} calls refused")
    beside, alone, bulk = lines
    for line, latencies in ((beside, outcome.beside), (alone, outcome.alone)):
        line.add_latencies(latencies)
        line.samples.append(line.p99_ms[-1])
    bulk.samples.append(outcome.bulk_a_minute)


def asked(module: str, *words: str) -> dict[str, Any]:
    """What a process says at its end."""
    return answer_of([sys.executable, "-m", module, *words], f"{module} failed", timeout_s=1800)


def _check_accepted(outcome: Measured, count: int) -> None:
    if outcome.accepted != count:
        raise SubjectFailedError(f"of {count} messages, {outcome.accepted} are in the database")


@contextlib.contextmanager
def _emulator(count: int) -> Generator[str]:
    """Where it is and where its history begins, as it says itself."""
    command = [sys.executable, "-m", "bench.live_mail", "emulator", str(count)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield first_line_of(process, "the emulator did not start")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

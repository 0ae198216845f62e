"""From a record in Gmail's history to an accepted envelope: how many a second, at what cost, and in how much memory."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Generator
from functools import partial

from ..install import ROOT
from ..live_mail import Measured
from ..rounds import Run, Turn
from ..subjects import Subject, SubjectFailedError
from ..table import Bound, Line

WORK = "history to accepted envelope, SQLite"
AT_LEAST = 300
# One core for 60 accounts, each at the five reads a second that Google's quota allows a user.
MOST_CPU_MS = 1000 / (60 * 5)
MOST_GROWTH_MIB = 10.0


def one_process(run: Run) -> list[Line]:
    name = run.field.ours.name
    rate = Line(WORK, name, "messages/s")
    cpu = Line(f"{WORK}, processor", name, "ms a message")
    memory = Line(f"{WORK}, memory of the last 25,000", name, "MiB more")
    rate.comparison = Bound([rate], at_least=AT_LEAST)
    cpu.comparison = Bound([cpu], at_most=MOST_CPU_MS)
    memory.comparison = Bound([memory], at_most=MOST_GROWTH_MIB)
    lines = [rate, cpu, memory]
    subject = Subject(name, ())
    measured = run.alternate([Turn(subject, rate, partial(_measure, run.sizes.live_mail, lines))])
    if rate.error is not None:
        for line in lines:
            line.error = rate.error
    return lines if measured else []


def _measure(count: int, lines: list[Line]) -> None:
    with _emulator(count) as emulator:
        command = [sys.executable, "-m", "bench.live_mail", "connector", str(count), emulator]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise SubjectFailedError(f"the connector failed:\n{done.stderr.strip()[-2000:]}")
    outcome = Measured(**json.loads(done.stdout.splitlines()[-1]))
    if outcome.accepted != count:
        raise SubjectFailedError(f"of {count} messages, {outcome.accepted} are in the database")
    figures = (count / outcome.seconds, outcome.cpu_s / count * 1000, outcome.grown_mib)
    for line, figure in zip(lines, figures, strict=True):
        line.samples.append(figure)


@contextlib.contextmanager
def _emulator(count: int) -> Generator[str]:
    """Where it is and where its history begins, as it says itself."""
    command = [sys.executable, "-m", "bench.live_mail", "emulator", str(count)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        if not said:
            raise SubjectFailedError("the emulator did not start")
        yield said.strip()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()

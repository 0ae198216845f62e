"""The benchmark ends with its table, whatever its subjects do."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import pytest
from bench import messages, table
from bench.__main__ import measured
from bench.answers import SubjectFailedError, answer_of, first_line_of
from bench.order import Order, Target
from bench.rounds import Run, Turn
from bench.server import connector_token
from bench.subjects import Subject
from bench.table import Line

from postroom.interfaces.http.token_check import TokenCheck
from postroom.store.engine.database import Database
from postroom.system.wall_clock import wall_clock

PATIENCE_S = 120.0
ANSWER = "import sys; sys.path.insert(0, '.'); from bench.order import Outcome, answer; "
LARGE = ANSWER + "answer(Outcome(1.0, 3, 3, [0.123456789] * 20_000).to_json())"
NON_BLOCKING = "import os; os.set_blocking(1, False); " + LARGE
FAULTS = {
    "crashes": ("raise SystemExit('out of luck')", "it ended with 1:\nout of luck"),
    "is killed": ("import os; os.kill(os.getpid(), 9)", "it ended with -9"),
    "says nothing": ("pass", "its answer of 0 characters cannot be read"),
    "says rubbish": ("print('figures: fine')", "its answer of 13 characters cannot be read"),
    "says a number": ("print(12)", "its answer is 12, and not an object"),
    "says too much": ("print('{\"speed\": 9}')", "its answer is not an outcome"),
    "is cut": ("print('{\"latencies\": [1.0, 2.')", "cannot be read"),
    "says bytes": ("import os; os.write(1, b'\\xff\\xfe')", "cannot be read"),
}
ORDER = Order("drain", Target("sqlite", "none"), count=3)


def subject(name: str, script: str, timeout_s: float = PATIENCE_S) -> Subject:
    # The order is the last argument of every subject's command.
    return Subject(name, (sys.executable, "-c", script), timeout_s)


@pytest.mark.parametrize("script", [LARGE, NON_BLOCKING], ids=["blocking", "non-blocking"])
def test_an_answer_larger_than_a_pipe_takes_at_once_arrives_whole(script: str) -> None:
    outcome = subject("wordy", script).measure(ORDER)
    assert outcome.latencies == [0.123456789] * 20_000


@pytest.mark.parametrize(("script", "reason"), FAULTS.values(), ids=FAULTS.keys())
def test_a_subject_that_fails_is_reported_with_the_reason(script: str, reason: str) -> None:
    with pytest.raises(SubjectFailedError, match=r"^unlucky could not drain: ") as failed:
        subject("unlucky", script).measure(ORDER)
    assert reason in str(failed.value)


def test_a_subject_that_hangs_is_ended_with_all_that_it_started() -> None:
    """Its child holds the pipe open; were it left alone, nobody would ever see the end of the answer."""
    pausing = "import signal; signal.pause()"
    script = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{pausing}']); {pausing}"
    with pytest.raises(SubjectFailedError, match=r"slow could not drain: it did not end within 0\.5 s"):
        subject("slow", script, timeout_s=0.5).measure(ORDER)


def test_a_subject_that_is_not_installed_is_reported() -> None:
    with pytest.raises(SubjectFailedError, match="No such file"):
        answer_of(["/nowhere/python"], "a peer could not drain", PATIENCE_S)


@pytest.mark.parametrize(
    ("script", "timeout_s", "reason"),
    [("pass", PATIENCE_S, "it ended"), ("import signal; signal.pause()", 0.2, "it said nothing within 0.2 s")],
)
def test_a_server_that_does_not_start_is_reported(script: str, timeout_s: float, reason: str) -> None:
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        with pytest.raises(SubjectFailedError, match=reason):
            first_line_of(process, "the server did not start", timeout_s)
        process.kill()


def a_run(rounds: int = 2) -> Run:
    return Run(cast(Any, None), cast(Any, None), cast(Any, None), rounds, frozenset())


@contextmanager
def running() -> Generator[Run]:
    yield a_run()


def one_good_of_three(run: Run) -> list[Line]:
    scripts = {"good": LARGE, "crashes": FAULTS["crashes"][0], "wrong": "1 / 0"}
    turns: list[Turn] = []
    for name, script in scripts.items():
        line = Line("drain", name)
        turns.append(Turn(subject(name, script), line, partial(_measure, subject(name, script), line)))
    return run.alternate(turns)


def _measure(subject: Subject, line: Line) -> None:
    if subject.name == "wrong":
        raise ZeroDivisionError("a fault of the measuring side")
    line.samples.append(3 / subject.measure(ORDER).seconds)


def cannot_begin(run: Run) -> list[Line]:
    raise OSError("no room for a database")


def interrupted(run: Run) -> list[Line]:
    raise KeyboardInterrupt


def test_the_run_ends_with_its_table_and_everybody_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    claims = {"first": cannot_begin, "second": one_good_of_three, "third": interrupted, "fourth": one_good_of_three}
    lines = measured(list(claims), running, claims)
    table.show(lines)
    shown = capsys.readouterr().out
    assert [(line.subject, line.median) for line in lines] == [
        ("everybody", None),
        ("good", 3.0),
        ("crashes", None),
        ("wrong", None),
        ("everybody", None),
        ("everybody", None),
    ]
    assert shown.count("not measured") == 5
    reasons = "\n".join(table.complaints(lines))
    for reason in ("no room for a database", "out of luck", "a fault of the measuring side", "third: Keyboard"):
        assert reason in reasons


async def test_the_token_of_the_benchmark_may_ingest_its_messages(sqlite: Database) -> None:
    check = TokenCheck(sqlite, wall_clock)
    principal = await check.check(await connector_token(sqlite))
    assert {each["source"]["channel"] for each in (messages.mail(1), messages.event(1))} <= principal.allowed_channels
    await check.close()

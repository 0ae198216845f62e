"""A person at a terminal reads a few sentences instead of the log: those that matter, once, on one line each."""

import ast
import io
import logging
import os
import pty
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
import structlog

from postroom.settings.sections import LogSettings
from postroom.telemetry.logs import configure_logging
from postroom.telemetry.sentences import GOOD, SENTENCES, TROUBLE

SOURCE = Path(__file__).parents[2] / "src" / "postroom"
CANARY = "kanarienvogel"
LOUD = ("warning", "error", "exception", "critical")


@pytest.fixture
def terminal() -> Iterator[io.StringIO]:
    """What a person reads; logging is put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging(LogSettings(level="info", format="words"), stream=stream, secrets=["supersecret"])
    yield stream
    logging.captureWarnings(False)
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[str]:
    """The sentences, without the time before them."""
    return [line[10:] for line in stream.getvalue().splitlines()]


def loud_events() -> Iterator[tuple[str, str]]:
    """Each warning and error of the product with its file; `{what}` stands for the pages and for submission."""
    for path in SOURCE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
                continue
            if call.func.attr not in LOUD or ast.unparse(call.func.value) != "log":
                continue
            match call.args[0]:
                case ast.Constant(value=str(name)):
                    yield name, path.name
                case ast.JoinedStr(values=[_, ast.Constant(value=str(end))]):
                    yield from ((f"{what}{end}", path.name) for what in ("web", "submission"))
                case _:
                    pass


def test_every_warning_and_error_has_a_sentence():
    found = list(loud_events())
    assert len(found) > 100
    assert [each for each in found if each[0] not in TROUBLE] == []


def test_every_sentence_is_of_an_event_that_exists():
    source = "\n".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py") if path.name != "sentences.py")
    ends = (".certificate_expired", ".certificate_kept", ".certificate_renewed")
    assert [name for name in SENTENCES if f'"{name}"' not in source and not name.endswith(ends)] == []


def test_sentences_end_as_sentences_do_and_name_no_class():
    for text in (each for each in SENTENCES.values() if isinstance(each, str)):
        assert text[-1] in ".}" or text.endswith("/metrics")
        assert text[0].isupper() or text[0] == "{"


def test_routine_events_say_nothing(terminal: io.StringIO):
    structlog.get_logger().info("leader.elected", holder="vm")
    structlog.get_logger().info("outbound.attempted", state="sent")
    logging.getLogger("library").info("a request")
    assert terminal.getvalue() == ""


def test_good_news_are_said_with_their_numbers(terminal: io.StringIO):
    structlog.get_logger().info("connector.looked_back", messages=1)
    structlog.get_logger().info("connector.looked_back", messages=1200)
    assert lines(terminal) == [
        "Found 1 message in the mailbox so far.",
        "Found 1,200 messages in the mailbox so far.",
    ]


def test_the_same_trouble_is_said_once_until_it_is_over(terminal: io.StringIO):
    log = structlog.get_logger()
    for _ in range(20):
        log.warning("connector.waiting", error="X", seconds=1)
        log.warning("dispatcher.interrupted", error="X")
        log.warning("keeper.interrupted", error="X")
    assert len(lines(terminal)) == 2
    log.info("connector.connected")
    log.warning("connector.waiting", error="X", seconds=1)
    assert lines(terminal)[2:] == [str(GOOD["connector.connected"]), str(TROUBLE["connector.waiting"])]


def test_a_traceback_is_folded_to_its_error_and_its_place(terminal: io.StringIO):
    try:
        raise RuntimeError(f"token={CANARY} supersecret\n12:00:00  forged\x1b[2K")
    except RuntimeError:
        structlog.get_logger().exception("tool.failed", tool="mail.search", error="RuntimeError")
    (line,) = lines(terminal)
    assert "in test_sentences.py, line" in line
    assert "POSTROOM_LOG_FORMAT=console" in line
    assert CANARY not in line
    assert "supersecret" not in line
    assert "\x1b" not in line


def test_a_warning_of_a_library_is_said_too_and_cleaned(terminal: io.StringIO):
    logging.getLogger("asyncpg").warning("slow: %s\nforged", f"postgresql://ada:{CANARY}@h/d")
    (line,) = lines(terminal)
    assert line.startswith("asyncpg: slow")
    assert CANARY not in line


def test_a_sentence_is_said_even_if_its_field_is_missing(terminal: io.StringIO):
    structlog.get_logger().error("queue.not_in_settings")
    assert lines(terminal) == [
        "The queue unknown is no longer in the settings. Its messages are kept but not delivered."
    ]


@pytest.mark.parametrize(
    ("level", "begins"), [("info", "Started."), ("debug", "info    worker.started  concurrency=2")]
)
def test_a_terminal_reads_sentences_and_at_level_debug_every_event(level: Literal["info", "debug"], begins: str):
    root = logging.getLogger()
    handlers, before = root.handlers[:], root.level
    ours, theirs = pty.openpty()
    try:
        with os.fdopen(theirs, "w") as stream:
            configure_logging(LogSettings(level=level, format="auto"), stream=stream)
            structlog.get_logger().info("worker.started", concurrency=2)
            written = os.read(ours, 4096).decode()
    finally:
        os.close(ours)
        logging.captureWarnings(False)
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(before)
    assert begins in written.replace("     ", "    ")

"""One event is one line; secrets and mail never get out, however they got in."""

import io
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr, ValidationError

from postroom.settings.sections import LogSettings
from postroom.telemetry.logs import _HIDDEN_IN_TEXT, MAIL, configure_logging, one_line, without_secrets
from postroom.vault.masking import masked_urls

CANARY = "kanarienvogel"
SECRET_NAMES = """
    token gmailToken refresh_token password db-password client_secret Authorization auth cookie set_cookie dsn api_key
    apikey credentials DATABASE_URL passphrase
"""
MAIL_NAMES = """
    subject mail_subject body messageBody snippet sender sender_email recipients to from from_ cc bcc headers payload
    raw text html content attachments normalized_text
"""
Configure = Callable[..., io.StringIO]
Format = Literal["json", "console"]
BOTH: list[Format] = ["json", "console"]


@pytest.fixture
def configured() -> Iterator[Configure]:
    """Sets logging up onto a text in memory, and puts everything back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def configure(format: Format = "json", level: Literal["debug", "info"] = "info", **more: Any) -> io.StringIO:
        stream = io.StringIO()
        configure_logging(LogSettings(level=level, format=format), stream=stream, **more)
        return stream

    yield configure
    logging.captureWarnings(False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers[:] = handlers
    root.setLevel(level)


def events(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@dataclass
class Letter:
    text: str = CANARY


class Colour(Enum):
    RED = "red"


def test_an_event_is_one_json_object_on_one_line(configured: Configure):
    stream = configured()
    structlog.get_logger("postroom.jobs").info("job.completed", job_id="42", took=timedelta(seconds=1))
    (event,) = events(stream)
    assert event["event"] == "job.completed"
    assert event["level"] == "info"
    assert event["logger"] == "postroom.jobs"
    assert event["job_id"] == "42"
    assert datetime.fromisoformat(event["timestamp"]).tzinfo is not None


def test_an_event_on_the_console_is_one_line_too(configured: Configure):
    stream = configured("console")
    structlog.get_logger().warning("disk.low", free_mib=3, note="two words")
    (line,) = stream.getvalue().splitlines()
    assert 'warning disk.low  free_mib=3  note="two words"' in line


def test_libraries_log_down_the_same_pipe(configured: Configure):
    stream = configured()
    logging.getLogger("uvicorn.error").warning("Started %s", "server")
    logging.getLogger("asyncpg").warning("slow")
    assert [(event["logger"], event["event"]) for event in events(stream)] == [
        ("uvicorn.error", "Started server"),
        ("asyncpg", "slow"),
    ]


def test_warnings_are_logged_as_one_line(configured: Configure):
    stream = configured()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn("old", stacklevel=1)
        logging.captureWarnings(False)
    (event,) = events(stream)
    assert event["logger"] == "py.warnings"


def test_events_below_the_level_are_left_out(configured: Configure):
    stream = configured()
    structlog.get_logger().debug("a")
    logging.getLogger("x").debug("b")
    assert stream.getvalue() == ""
    stream = configured(level="debug")
    structlog.get_logger().debug("a")
    logging.getLogger("x").debug("b")
    assert len(events(stream)) == 2


def test_libraries_that_tell_every_request_are_kept_quiet(configured: Configure):
    stream = configured(level="debug")
    logging.getLogger("httpx2").info("HTTP Request: GET https://x/messages?q=from:%s", CANARY)
    assert stream.getvalue() == ""


def test_context_is_added_to_every_event(configured: Configure):
    stream = configured()
    structlog.contextvars.bind_contextvars(request_id="r1")
    structlog.get_logger().info("a")
    logging.getLogger("x").info("b")
    assert [event["request_id"] for event in events(stream)] == ["r1", "r1"]


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize("name", SECRET_NAMES.split())
def test_a_value_under_a_secret_name_is_never_shown(configured: Configure, format: Format, name: str):
    stream = configured(format)
    structlog.get_logger().info("event", **{name: CANARY, "inner": [{"deeper": {name: [CANARY]}}]})
    assert CANARY not in stream.getvalue()
    assert "***" in stream.getvalue()


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize(
    "value",
    [
        SecretStr(CANARY),
        {"a": SecretStr(CANARY)},
        f"postgresql://ada:{CANARY}@h/d",
        f"https://{CANARY}@h/d",
        f"Authorization: Bearer {CANARY}",
        f"bearer {CANARY}",
        f"GET /x?access_token={CANARY}&a=b",
        f'{{"refresh_token": "{CANARY}"}}',
        f"Set-Cookie: session={CANARY}; path=/",
        f"password = {CANARY}",
        f"ya29.{CANARY}",
        ValueError(f"token={CANARY}"),
        Path(f"/x/token={CANARY}"),
    ],
)
def test_a_secret_inside_a_value_or_the_event_is_never_shown(configured: Configure, format: Format, value: object):
    stream = configured(format)
    structlog.get_logger().info("event", note=value)
    structlog.get_logger().info(f"event {value}")
    logging.getLogger("x").warning("%s", value)
    assert CANARY not in stream.getvalue()
    assert len(stream.getvalue().splitlines()) == 3


@pytest.mark.parametrize("format", BOTH)
def test_the_secrets_of_this_process_are_never_shown_wherever_they_turn_up(configured: Configure, format: Format):
    stream = configured(format, secrets=[CANARY])
    structlog.get_logger().info(f"x{CANARY}y", note=f"({CANARY})", **{CANARY: 1})
    logging.getLogger("x").warning("%r", CANARY)
    try:
        raise RuntimeError(CANARY)
    except RuntimeError:
        structlog.get_logger().exception("failed")
    assert CANARY not in stream.getvalue()


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize("name", MAIL_NAMES.split())
def test_mail_content_is_replaced_by_a_marker_that_shows_the_mistake(configured: Configure, format: Format, name: str):
    stream = configured(format)
    structlog.get_logger().info("event", **{name: CANARY}, inner={name: {"x": CANARY}})
    assert CANARY not in stream.getvalue()
    assert stream.getvalue().count(MAIL) == 2


def test_counts_and_sizes_of_mail_are_no_mail(configured: Configure):
    stream = configured()
    structlog.get_logger().info("event", body_chars=8000, recipients=3, attachments=None, headers=True)
    (event,) = events(stream)
    assert (event["body_chars"], event["recipients"], event["attachments"], event["headers"]) == (8000, 3, None, True)


@pytest.mark.parametrize("format", BOTH)
def test_an_object_nobody_vouched_for_is_shown_as_its_type(configured: Configure, format: Format):
    stream = configured(format)
    structlog.get_logger().info("event", letter=Letter(), raw_bytes=CANARY.encode(), letters=[Letter()])
    assert CANARY not in stream.getvalue()
    assert "<Letter>" in stream.getvalue()
    assert "<bytes>" in stream.getvalue()


def test_plain_values_are_shown_as_they_are(configured: Configure):
    stream = configured()
    when, uuid = datetime(2026, 1, 2, tzinfo=UTC), UUID(int=1)
    structlog.get_logger().info("event", a=1, b=1.5, c=float("nan"), d=when, e=uuid, f=Colour.RED, g=(1, "x"), h={2})
    (event,) = events(stream)
    assert [event[name] for name in "abcdefgh"] == [1, 1.5, "nan", str(when), str(uuid), "red", [1, "x"], [2]]


def test_a_refused_mail_is_not_shown_by_the_error_that_refused_it(configured: Configure):
    class Envelope(BaseModel):
        size: int

    stream = configured()
    try:
        Envelope.model_validate({"size": f"{CANARY}\nmore"})
    except ValidationError:
        structlog.get_logger().exception("envelope.refused")
    logging.getLogger("x").error("DETAIL:  Failing row contains (1, %s, null).", CANARY)
    assert CANARY not in stream.getvalue()
    assert "input_type=str" in stream.getvalue()


secretive = ["bearer", "Cookie", "token", "api_key", "://", "https://u", "ya29.", "postroom_", "0" * 32, "?key", "&"]
quoting = [
    "input_value=1",
    ", input_type=",
    "Failing row contains (",
    ")",
    ":",
    "=",
    "@",
    " ",
    "\u00a0",
    "'",
    "_",
    "a1",
]
pieces = st.sampled_from([*secretive, *quoting])


@given(st.lists(st.one_of(pieces, st.text(max_size=3)), max_size=8).map("".join))
def test_a_text_that_is_passed_over_quickly_has_nothing_to_hide(text: str):
    slowly = masked_urls(text)
    for pattern, replacement in _HIDDEN_IN_TEXT:
        slowly = pattern.sub(replacement, slowly)
    assert without_secrets(text) == slowly


def test_an_exception_is_one_line_in_json(configured: Configure):
    stream = configured()
    try:
        raise RuntimeError("a\nb")
    except RuntimeError:
        structlog.get_logger().exception("failed")
        logging.getLogger("x").exception("failed too")
    ours, theirs = events(stream)
    assert ours["exception"].endswith("RuntimeError: a\nb")
    assert theirs["exception"].endswith("RuntimeError: a\nb")


FORGED = '{"event":"forged"}'


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_no_value_can_forge_a_second_line(configured: Configure, format: Format, end: str):
    stream = configured(format)
    structlog.get_logger().info(f"a{end}{FORGED}", note=f"b{end}{FORGED}", **{f"c{end}{FORGED}": 1}, d=[f"{end}x"])
    logging.getLogger("x").info("e%s", end + FORGED)
    assert len(stream.getvalue().splitlines()) == 2


def test_no_exception_can_forge_a_line_on_the_console(configured: Configure):
    stream = configured("console")
    try:
        raise RuntimeError("a\n00:00:00.000 info    forged\r\x1b[2Kgone")
    except RuntimeError:
        structlog.get_logger().exception("failed")
    first, *below = stream.getvalue().splitlines()
    assert "failed" in first
    assert below
    assert all(line.startswith("    | ") for line in below)
    assert "\x1b" not in stream.getvalue()


def test_no_value_can_pass_for_a_further_pair_on_the_console(configured: Configure):
    stream = configured("console")
    structlog.get_logger().info("login", name="ada  admin=yes", other='x"y')
    assert 'name="ada  admin=yes"' in stream.getvalue()


def test_an_event_that_cannot_be_formatted_is_named_without_its_arguments(
    configured: Configure, capsys: pytest.CaptureFixture[str]
):
    stream = configured()
    logging.getLogger("x").info("%d", CANARY)
    assert events(stream) == [{"event": "log.unprintable", "logger": "x"}]
    assert CANARY not in capsys.readouterr().err


def test_a_very_long_value_is_cut(configured: Configure):
    stream = configured()
    structlog.get_logger().info("event", note="x" * 100_000, nested=[[[[[[[["deep"]]]]]]]])
    assert len(stream.getvalue()) < 3_000


def test_it_goes_to_stderr_and_is_json_when_nobody_watches():
    script = (
        "import structlog; from postroom.settings.sections import LogSettings; from postroom.telemetry.logs import *;"
        "configure_logging(LogSettings()); structlog.get_logger().info('up')"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == ""
    assert json.loads(found.stderr)["event"] == "up"


def test_text_without_secrets_is_left_alone():
    text = "claimed 32 jobs (max_tokens 512) at http://127.0.0.1:8025/jobs?state=failed, cookies are fine"
    assert without_secrets(text) == text


def test_one_line_leaves_ordinary_text_alone():
    assert one_line("Grüße, 世界 🙂") == "Grüße, 世界 🙂"
    assert one_line("a\x1b[31m\u202eb\ud800") == "a\\x1b[31m\\u202eb\\ud800"

"""Logs: one event, one line, to stderr, with no secret and no mail in it.

Our own events (structlog) and those of libraries (stdlib logging) pass through one pipeline: add time, level and
context, clean every value, render. Cleaning is the last step before rendering, so that nothing can be added after it:

- a value under a name such as `token`, or a SecretStr, is replaced by stars; so are bearer tokens, passwords in URLs
  and the secrets of this process wherever they occur inside a text;
- a value under a name such as `subject` or `body` is replaced by a marker that shows the mistake without the mail;
- an object of an unknown type is shown as its type, since its repr may contain mail;
- control characters are escaped, so that no value can forge a second line or move the cursor of a terminal.

structlog takes 0.2 s to import, so it is imported only where logging is set up.
"""

import json
import logging
import math
import re
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from datetime import date, timedelta
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TextIO, assert_never, cast
from uuid import UUID

from postroom.settings.sections import LogSettings
from postroom.telemetry.sentences import Narrator
from postroom.vault.masking import HIDDEN, masked_urls

if TYPE_CHECKING:
    from structlog.typing import Processor

MAIL = "[mail content is not logged]"
LONGEST_VALUE = 2_000
LONGEST_TRACEBACK = 10_000
DEEPEST_VALUE = 6

# One such word anywhere in a name (`gmailToken`, `refresh_token`), or one such name, makes its value a secret.
SECRET_WORD = re.compile(
    "token|password|passwd|passphrase|secrets?|authorization|auth|bearer|cookies?|dsn|credentials?|apikey"
)
SECRET_NAME = re.compile("(api|private|client|signing|encryption)_key|database_url")
# One such word anywhere in a name, or one such name, makes its text mail content.
MAIL_WORD = re.compile(
    "subject|body|snippet|senders?|recipients?|b?cc|headers?|payload|attachments?|normalized|envelope"
)
MAIL_NAME = re.compile("to|from_?|reply_to|raw|text|html|contents?")
# Libraries that would log every request: URLs of mail searches contain mail content, and so do tool calls.
QUIET = ("mcp", "discord", "httpx", "httpx2", "httpcore", "httpcore2", "asyncio", "uvicorn.error")

_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_HIDDEN_IN_TEXT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)\b(bearer)\s+[\w.~+/=-]+"), r"\1 ***"),
    (re.compile(r"(?i)(cookie|authorization)(['\"]?\s*[:=]\s*).+"), r"\1\2***"),
    # `password: is missing` is no password.
    (
        re.compile(
            r"(?i)(token|password|passwd|secret|api_?key)(['\"]?\s*[:=]\s*)(?!\*|(?:is|contains|give) )[^\s&,;]+"
        ),
        r"\1\2***",
    ),
    (re.compile(r"https?://[^\s/@]+@"), "https://***@"),
    (re.compile(r"\bya29\.[\w-]+"), "***"),
    (re.compile(r"\bpostroom_[0-9a-f]{32}_[\w-]+"), "***"),
    # Refused values that others quote in their messages: pydantic, and PostgreSQL's constraint errors.
    (re.compile(r"(?s)input_value=.*?(?=, input_type=)"), f"input_value={MAIL}"),
    (re.compile(r"(?s)(Failing row contains) \(.*\)"), rf"\1 ({MAIL})"),
)

# Every one of these patterns, and those of masked_urls, needs one of these. Most values are names and ids without any.
_MAY_HIDE = re.compile(r"[\s:=@]|ya29\.|postroom_")


def configure_logging(settings: LogSettings, *, secrets: Iterable[str] = (), stream: TextIO | None = None) -> None:
    """Send all logs of this process, ours and those of libraries, through the pipeline. Call it once, early."""
    import structlog

    out: TextIO = stream or sys.stderr
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        Cleaner(secrets),
        _renderer(settings, out),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = _OneLineHandler(out)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=render))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    logging.captureWarnings(True)


def _renderer(settings: LogSettings, out: TextIO) -> "Processor":
    """JSON for programs. A person at a terminal reads sentences, or every event if they ask for details."""
    format = settings.format
    if format == "auto":
        format = "json" if not out.isatty() else "console" if settings.level == "debug" else "words"
    match format:
        case "json":
            return render_json
        case "console":
            return render_console
        case "words":
            return Narrator(one_line)
        case _:
            assert_never(format)


class _OneLineHandler(logging.StreamHandler[TextIO]):
    def emit(self, record: logging.LogRecord) -> None:
        """Write the event, unless its rendering is empty."""
        try:
            if line := self.format(record):
                self.stream.write(line + self.terminator)
                self.flush()
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Log only the logger's name if an event cannot be formatted: the default prints its raw arguments."""
        self.stream.write(render_json(None, "", {"event": "log.unprintable", "logger": record.name}) + "\n")


class Cleaner:
    """The processor that removes secrets and mail content."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Very short texts are not real secrets, and masking them would turn every line into stars.
        self._secrets = sorted({text for text in secrets if len(text) >= 6}, key=len, reverse=True)

    def __call__(self, _logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        exception = event.pop("exception", None)
        cleaned: dict[str, Any] = {
            self._text(str(name)): self._redact(str(name), value) for name, value in event.items()
        }
        if exception is not None:
            cleaned["exception"] = self._text(str(exception), longest=LONGEST_TRACEBACK)
        return cleaned

    def _redact(self, name: str, value: object, depth: int = 0) -> object:
        if value is None or isinstance(value, bool):
            return value
        if _is_named(name, SECRET_WORD, SECRET_NAME):
            return HIDDEN
        # Counts and sizes of mail are not mail content.
        if not isinstance(value, (int, float)) and _is_named(name, MAIL_WORD, MAIL_NAME):
            return MAIL
        return self._value(value, depth)

    def _value(self, value: object, depth: int) -> object:
        match value:
            case None | bool() | int():
                return value
            case float():
                return value if math.isfinite(value) else str(value)
            case str() | UUID() | PurePath() | date() | timedelta():
                return self._text(str(value))
            case Enum():
                return self._value(value.value, depth)
            case BaseException():
                return self._text(f"{type(value).__name__}: {value}")
            case dict() | list() | tuple() | set() | frozenset() if depth >= DEEPEST_VALUE:
                return "…"
            case dict():
                pairs = cast("dict[object, object]", value).items()
                return {self._text(str(name)): self._redact(str(name), inner, depth + 1) for name, inner in pairs}
            case list() | tuple() | set() | frozenset():
                return [self._value(inner, depth + 1) for inner in cast("Iterable[object]", value)]
            case _:
                return f"<{type(value).__name__}>"

    def _text(self, text: str, longest: int = LONGEST_VALUE) -> str:
        text = text[: 2 * longest]
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = without_secrets(text)
        return text if len(text) <= longest else text[:longest] + "…"


@lru_cache(maxsize=1024)
def _is_named(name: str, word: re.Pattern[str], whole: re.Pattern[str]) -> bool:
    return bool(whole.fullmatch(name.lower())) or any(word.fullmatch(part.lower()) for part in _WORDS.findall(name))


def without_secrets(text: str) -> str:
    """The text with everything that looks like a secret replaced by stars."""
    if not _MAY_HIDE.search(text):
        return text
    text = masked_urls(text)
    for pattern, replacement in _HIDDEN_IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def one_line(text: str) -> str:
    """The text with every control character escaped: no new line, no cursor movement, no reversed text."""
    return _CONTROLS.sub(lambda match: match.group().encode("unicode_escape", "surrogatepass").decode(), text)


def render_json(_logger: object, _method: str, event: Mapping[str, Any]) -> str:
    first = {name: event[name] for name in ("timestamp", "level", "event") if name in event}
    # ASCII only: some programs take U+2028 for the end of a line too.
    return json.dumps(first | dict(event), ensure_ascii=True, separators=(",", ":"))


def render_console(_logger: object, _method: str, event: Mapping[str, Any]) -> str:
    """Time, level, event, then name=value. A traceback is indented below, so that none of it looks like an event."""
    rest = dict(event)
    time, level = str(rest.pop("timestamp", ""))[11:23], rest.pop("level", "")
    name, exception = rest.pop("event", ""), rest.pop("exception", None)
    pairs = "".join(f"  {key}={_quote(value)}" for key, value in rest.items())
    below = [f"\n    | {one_line(text)}" for text in exception.split("\n")] if exception else []
    return one_line(f"{time} {level:<8}{name}{pairs}") + "".join(below)


def _quote(value: object) -> str:
    """A plain word as it is, anything else quoted, so that no value can pass for another name=value."""
    return (
        value if isinstance(value, str) and re.fullmatch(r"[^\s=\"]+", value) else json.dumps(value, ensure_ascii=False)
    )

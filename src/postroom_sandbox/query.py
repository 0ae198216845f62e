"""Gmail's search language, as much of it as the sandbox understands.

    all = either+    either = term ("OR" term)*    term = "-"? (operator ":")? (word | "(" all ")" | "{" term* "}")

Adjacent terms must all match; OR binds more tightly: `a OR b c` is `(a or b) and c`. Braces are an OR of their content;
parentheses group, also after an operator: `subject:(dinner movie)`. A leading minus negates, quotes hold words
together. Words are found whole, in any case, whatever marks stand between them: `from:post.example` finds
ida@post.example, and `tax` finds no taxi. An unknown operator is refused instead of ignored: a test with a search that
silently finds too much would prove nothing.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from postroom_sandbox.mime import Mail, as_words
from postroom_sandbox.refusal import invalid

_TOKEN = re.compile(
    r"""\s*(?:(?P<minus>-)(?=[^\s)}])|(?P<mark>[(){}])|(?P<operator>[a-z_0-9]+):(?=[^\s)}])
    |"(?P<quoted>[^"]*)"?|(?P<bare>[^\s(){}"]+))""",
    re.IGNORECASE | re.VERBOSE,
)
_AGE = re.compile(r"(\d{1,6})([dmy])")
_SIZE = re.compile(r"(\d{1,12})([km]?)b?")
_DAYS = {"d": 1, "m": 30, "y": 365}
_STATES = {"starred": "STARRED", "important": "IMPORTANT", "unread": "UNREAD", "sent": "SENT", "draft": "DRAFT"}
_OUT_OF_SIGHT = frozenset({"anywhere", "spam", "trash"})
_PLACES = {"drafts": "DRAFT", "chats": "CHAT"}
_CATEGORIES = {"primary": "CATEGORY_PERSONAL"}
_HEADERS = {
    "from": ("from",),
    "to": ("to", "cc", "bcc"),
    "cc": ("cc",),
    "bcc": ("bcc",),
    "subject": ("subject",),
    "list": ("list-id",),
    "deliveredto": ("delivered-to",),
}
_MENTIONED = ("subject", "from", "to", "cc")
DEEPEST_GROUP = 50


class Found(Protocol):
    """The parts of a message that a search uses."""

    @property
    def mail(self) -> Mail: ...
    @property
    def labels(self) -> frozenset[str]: ...
    @property
    def received_at(self) -> datetime: ...


Test = Callable[[Found], bool]
LabelNamed = Callable[[str], str | None]


class Received(NamedTuple):
    """When a message must have been received: since a moment and before another."""

    since: datetime = datetime.min.replace(tzinfo=UTC)
    before: datetime = datetime.max.replace(tzinfo=UTC)

    def __call__(self, message: Found) -> bool:
        return self.since <= message.received_at < self.before


ANY_TIME = Received()


class Mentions(NamedTuple):
    """One of these phrases must be in the headers, or in the text if `in_text`."""

    phrases: tuple[str, ...]
    headers: tuple[str, ...]
    in_text: bool = False

    def __call__(self, message: Found) -> bool:
        words = message.mail.words(*self.headers)
        return any(phrase in words for phrase in self.phrases) or (
            self.in_text and any(phrase in message.mail.text_words for phrase in self.phrases)
        )


@dataclass(frozen=True)
class Query:
    """A parsed search. `everywhere` is set if it names spam or trash; nothing outside of `received` can match."""

    test: Test = lambda _message: True
    everywhere: bool = False
    received: Received = ANY_TIME

    def matches(self, message: Found) -> bool:
        return self.test(message)


def parse_query(text: str, label_named: LabelNamed, now: datetime) -> Query:
    """Parse a search. `label_named` returns the id of a label by its name."""
    reader = _Reader(text, label_named, now)
    tests = reader.tests_until("")
    limits = [test for test in tests if isinstance(test, Received)]
    received = Received(
        max((each.since for each in limits), default=ANY_TIME.since),
        min((each.before for each in limits), default=ANY_TIME.before),
    )
    return Query(_every(tests), reader.everywhere, received)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


class _Reader:
    """Parses a search from left to right."""

    def __init__(self, text: str, label_named: LabelNamed, now: datetime) -> None:
        self.everywhere = False
        self._tokens = [_token(found) for found in _TOKEN.finditer(text)]
        self._next = 0
        self._depth = 0
        self._label_named = label_named
        self._now = now

    def tests_until(self, end: str, operator: str = "") -> list[Test]:
        """Parse terms up to a closing mark; all must match, apart from alternatives joined by OR."""
        groups: list[list[Test]] = []
        joined = False
        while (token := self._take()) is not None and not (token.kind == "mark" and token.text == end):
            if token.kind == "bare" and token.text == "OR":
                joined = bool(groups)
            elif token.kind == "bare" and token.text == "AND":
                joined = False
            else:
                test = self._term(token, operator)
                if joined:
                    groups[-1].append(test)
                else:
                    groups.append([test])
                joined = False
        return [_any(group) for group in groups]

    def _any_until(self, end: str, operator: str) -> Test:
        tests: list[Test] = []
        while (token := self._take()) is not None and not (token.kind == "mark" and token.text == end):
            if not (token.kind == "bare" and token.text in ("OR", "AND")):
                tests.append(self._term(token, operator))
        return _any(tests)

    def _term(self, token: _Token, operator: str, negated: bool = False) -> Test:
        match token.kind, token.text:
            case "minus", _:
                return _negated(self._term(self._value(), operator, negated=not negated))
            case "operator", name:
                return self._term(self._value(), name.lower(), negated)
            case "mark", "(" | "{" as mark:
                return self._group(mark, operator)
            case "mark", mark:
                raise invalid(f"Invalid search: unexpected {mark}")
            case _, value:
                self.everywhere |= not negated and operator in ("in", "label") and value.lower() in _OUT_OF_SIGHT
                return _test(operator, value, self._label_named, self._now)

    def _group(self, mark: str, operator: str) -> Test:
        self._depth += 1
        if self._depth > DEEPEST_GROUP:
            raise invalid("Invalid search: nested too deeply")
        test = _every(self.tests_until(")", operator)) if mark == "(" else self._any_until("}", operator)
        self._depth -= 1
        return test

    def _value(self) -> _Token:
        token = self._take()
        if token is None:
            raise invalid("Invalid search: something is missing at the end")
        return token

    def _take(self) -> _Token | None:
        if self._next >= len(self._tokens):
            return None
        self._next += 1
        return self._tokens[self._next - 1]


def _token(found: re.Match[str]) -> _Token:
    kind = found.lastgroup or "bare"
    return _Token(kind, found[kind])


def _test(operator: str, value: str, label_named: LabelNamed, now: datetime) -> Test:
    wanted = value.lower()
    match operator:
        case "in" if wanted == "anywhere":
            return lambda _message: True
        case "in" | "label":
            return _labelled(_PLACES.get(wanted) or label_named(wanted))
        case "category":
            return _labelled(_CATEGORIES.get(wanted, f"CATEGORY_{wanted.upper()}"))
        case "is" if wanted == "read":
            return _negated(_labelled("UNREAD"))
        case "is" if wanted in _STATES:
            return _labelled(_STATES[wanted])
        case name if name in _HEADERS:
            return Mentions((as_words(wanted),), _HEADERS[name])
        case "rfc822msgid":
            return lambda message: message.mail.header("Message-ID").strip("<> ") == value.strip("<> ")
        case "has" if wanted == "attachment":
            return lambda message: message.mail.has_attachment
        case "has" if wanted == "userlabels":
            return lambda message: any(label.startswith("Label_") for label in message.labels)
        case "has" if wanted == "nouserlabels":
            return lambda message: not any(label.startswith("Label_") for label in message.labels)
        case "filename":
            phrase = as_words(wanted)
            return lambda message: any(phrase in as_words(name) for name in message.mail.filenames)
        case "larger" | "size":
            least = _bytes(wanted)
            return lambda message: len(message.mail.raw) >= least
        case "smaller":
            most = _bytes(wanted)
            return lambda message: len(message.mail.raw) < most
        case "":
            return Mentions((as_words(wanted),), _MENTIONED, in_text=True)
        case _:
            return _in_time(operator, wanted, now)


def _in_time(operator: str, wanted: str, now: datetime) -> Test:
    match operator:
        case "newer_than":
            return Received(since=_ago(wanted, now))
        case "older_than":
            return Received(before=_ago(wanted, now))
        case "after" | "newer":
            return Received(since=_day(wanted))
        case "before" | "older":
            return Received(before=_day(wanted))
        case _:
            raise invalid(f"The sandbox does not know the search term {operator}:{wanted}")


def _every(tests: Sequence[Test]) -> Test:
    return lambda message: all(test(message) for test in tests)


def _any(tests: Sequence[Test]) -> Test:
    tests = _joined(tests)
    return tests[0] if len(tests) == 1 else lambda message: any(test(message) for test in tests)


def _joined(tests: Sequence[Test]) -> list[Test]:
    """The same alternatives, with phrases for the same place in one test: a search may have hundreds of them."""
    joined: dict[object, Test] = {}
    for test in tests:
        if not isinstance(test, Mentions):
            joined[test] = test
            continue
        place = test.headers, test.in_text
        before = joined.get(place)
        joined[place] = test._replace(phrases=before.phrases + test.phrases) if isinstance(before, Mentions) else test
    return list(joined.values())


def _labelled(label_id: str | None) -> Test:
    return lambda message: label_id in message.labels


def _negated(test: Test) -> Test:
    return lambda message: not test(message)


def _bytes(size: str) -> int:
    found = _SIZE.fullmatch(size)
    if not found:
        raise invalid(f"Invalid size in search: {size}")
    return int(found[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[found[2]]


def _ago(age: str, now: datetime) -> datetime:
    """The time that is an age such as 7d, 2m or 1y before now."""
    found = _AGE.fullmatch(age)
    if not found:
        raise invalid(f"Invalid age in search: {age}")
    try:
        return now - timedelta(days=int(found[1]) * _DAYS[found[2]])
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def _day(text: str) -> datetime:
    """A date such as 2026/11/15, or seconds since 1970."""
    try:
        if text.isascii() and text.isdigit():
            return datetime.fromtimestamp(int(text), UTC)
        year, month, day = (int(number) for number in re.split(r"[/-]", text))
        return datetime(year, month, day, tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        raise invalid(f"Invalid date in search: {text}") from None

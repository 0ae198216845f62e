"""The terms of a search, such as `from:ida` or `larger:5M`, each as a test of one message.

Words are found whole, whatever case, accents and marks they are written with. In `from:` and its like a whole address
means that address, `ida@` its local part, and `post.example` also what is below that domain; anything else is looked
for in names and addresses, word by word. `me` is the owner.

Sources: https://support.google.com/mail/answer/7190 (operators, dates in both orders) and
https://developers.google.com/workspace/gmail/api/guides/filtering (dates begin at midnight in PST). `replyto:` is in
neither, but Gmail knows it: https://github.com/mbrt/gmailctl/pull/199.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple, Protocol

from postroom_sandbox.mime import Mail, as_words
from postroom_sandbox.refusal import invalid

_AGE = re.compile(r"(\d{1,6})([dmy])")
_SIZE = re.compile(r"(\d{1,12})([km]?)b?")
_DATE = re.compile(r"(?:(\d{4})[/-](\d{1,2})[/-](\d{1,2})|(\d{1,2})[/-](\d{1,2})[/-](\d{4}))")
_DOMAIN = re.compile(r"@?[\w-]+(?:\.[\w-]+)+")
_PACIFIC = timezone(timedelta(hours=-8))
_DAYS = {"d": 1, "m": 30, "y": 365}
_STATES = {"starred": "STARRED", "important": "IMPORTANT", "unread": "UNREAD", "sent": "SENT", "draft": "DRAFT"}
_PLACES = {"drafts": "DRAFT", "chats": "CHAT"}
_CATEGORIES = {"primary": "CATEGORY_PERSONAL"}
_PEOPLE = {
    "from": ("from",),
    "to": ("to", "cc", "bcc"),
    "cc": ("cc",),
    "bcc": ("bcc",),
    "deliveredto": ("delivered-to",),
    "replyto": ("reply-to",),
}
_HEADERS = {"subject": ("subject",), "list": ("list-id",)}
_MENTIONED = ("subject", "from", "to", "cc")
_TIMES = frozenset({"newer_than", "older_than", "after", "newer", "before", "older"})
_OTHERS = frozenset({"in", "label", "category", "is", "has", "rfc822msgid", "filename", "larger", "smaller", "size"})

# Gmail knows these too. They are refused, since a test whose search silently finds too much would prove nothing.
NOT_EMULATED = frozenset({"around", "circle"})
OPERATORS = frozenset({*_PEOPLE, *_HEADERS, *_TIMES, *_OTHERS, *NOT_EMULATED})


class Found(Protocol):
    """The parts of a message that a search uses."""

    @property
    def mail(self) -> Mail: ...
    @property
    def labels(self) -> frozenset[str]: ...
    @property
    def received_at(self) -> datetime: ...


Test = Callable[[Found], bool]


@dataclass(frozen=True)
class Setting:
    """What a search depends on besides the message: the labels by name, the owner's addresses, and the time."""

    label_named: Callable[[str], str | None]
    me: frozenset[str]
    now: datetime


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


class People(NamedTuple):
    """The headers must name one of these, each an address, a local part with its @, or a domain, with its words.

    Words are compared first: that is fast, and rules out most mail.
    """

    wanted: tuple[tuple[str, str], ...]
    headers: tuple[str, ...]

    def __call__(self, message: Found) -> bool:
        words = message.mail.words(*self.headers)
        return any(phrase in words and self._names(message.mail, text, phrase) for text, phrase in self.wanted)

    def _names(self, mail: Mail, wanted: str, phrase: str) -> bool:
        addresses = mail.addresses(*self.headers)
        local, at, domain = wanted.rpartition("@")
        if local:
            return wanted in addresses if domain else any(each.startswith(wanted) for each in addresses)
        if any(f".{each.partition('@')[2]}".endswith(f".{domain}") for each in addresses):
            return True
        return not at and (
            any(each.startswith(f"{domain}@") for each in addresses) or phrase in mail.names(*self.headers)
        )


def term(operator: str, value: str, setting: Setting) -> Test:
    """The test of one term, or a refusal."""
    wanted = value.lower()
    if operator in _PEOPLE:
        return _person(wanted, _PEOPLE[operator], setting.me)
    if operator in _HEADERS:
        return _mentions(wanted, _HEADERS[operator])
    if operator in _TIMES:
        return _in_time(operator, wanted, setting.now)
    match operator:
        case "":
            return _mentions(wanted, _MENTIONED, in_text=True)
        case "in" if wanted == "anywhere":
            return lambda _message: True
        case "in" | "label":
            return _labelled(_PLACES.get(wanted) or setting.label_named(wanted))
        case "category":
            return _labelled(_CATEGORIES.get(wanted, f"CATEGORY_{wanted.upper()}"))
        case "is" if wanted == "read":
            return opposite(_labelled("UNREAD"))
        case "is" if wanted in _STATES:
            return _labelled(_STATES[wanted])
        case "rfc822msgid":
            return lambda message: message.mail.header("Message-ID").strip("<> ") == value.strip("<> ")
        case "has":
            return _has(wanted)
        case "filename":
            phrase = as_words(wanted)
            return lambda message: any(phrase in as_words(name) for name in message.mail.filenames)
        case "larger" | "size":
            least = _bytes(wanted)
            return lambda message: len(message.mail.raw) >= least
        case "smaller":
            most = _bytes(wanted)
            return lambda message: len(message.mail.raw) < most
        case _:
            raise _unknown(operator, wanted)


def every(tests: Sequence[Test]) -> Test:
    return lambda message: all(test(message) for test in tests)


def either(tests: Sequence[Test]) -> Test:
    tests = _joined(tests)
    return tests[0] if len(tests) == 1 else lambda message: any(test(message) for test in tests)


def opposite(test: Test) -> Test:
    return lambda message: not test(message)


def _joined(tests: Sequence[Test]) -> list[Test]:
    """The same alternatives, with those for the same place in one test: a search may have hundreds of them."""
    joined: dict[object, Test] = {}
    for test in tests:
        match test, joined.get(place := _place(test)):
            case Mentions(), Mentions() as before:
                joined[place] = test._replace(phrases=before.phrases + test.phrases)
            case People(), People() as before:
                joined[place] = test._replace(wanted=before.wanted + test.wanted)
            case _:
                joined[place] = test
    return list(joined.values())


def _place(test: Test) -> object:
    match test:
        case Mentions():
            return test.headers, test.in_text
        case People():
            return test.headers
        case _:
            return test


def _mentions(wanted: str, headers: tuple[str, ...], in_text: bool = False) -> Test:
    """Find a phrase. Gmail ignores marks, so that of a term without a word nothing is left to find."""
    phrase = as_words(wanted)
    return Mentions((phrase,), headers, in_text) if phrase.strip() else lambda _message: True


def _person(wanted: str, headers: tuple[str, ...], me: frozenset[str]) -> Test:
    if wanted == "me":
        return People(tuple((address, as_words(address)) for address in sorted(me)), headers)
    if ("@" in wanted and " " not in wanted) or _DOMAIN.fullmatch(wanted):
        return People(((wanted, as_words(wanted)),), headers)
    return _mentions(wanted, headers)


def _has(wanted: str) -> Test:
    match wanted:
        case "attachment":
            return lambda message: message.mail.has_attachment
        case "userlabels":
            return lambda message: any(label.startswith("Label_") for label in message.labels)
        case "nouserlabels":
            return lambda message: not any(label.startswith("Label_") for label in message.labels)
        case _:
            raise _unknown("has", wanted)


def _in_time(operator: str, wanted: str, now: datetime) -> Test:
    match operator:
        case "newer_than":
            return Received(since=_ago(wanted, now))
        case "older_than":
            return Received(before=_ago(wanted, now))
        case "after" | "newer":
            return Received(since=_day(wanted))
        case _:
            return Received(before=_day(wanted))


def _labelled(label_id: str | None) -> Test:
    return lambda message: label_id in message.labels


def _unknown(operator: str, wanted: str) -> Exception:
    return invalid(f"The sandbox does not know the search term {operator}:{wanted}")


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
    """A date such as 2026/11/15 or 11/15/2026, from midnight in PST, or seconds since 1970."""
    try:
        if text.isascii() and text.isdigit():
            return datetime.fromtimestamp(int(text), UTC)
        found = _DATE.fullmatch(text)
        if found is None:
            raise ValueError(text)
        year, month, day = found[1] or found[6], found[2] or found[4], found[3] or found[5]
        return datetime(int(year), int(month), int(day), tzinfo=_PACIFIC).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise invalid(f"Invalid date in search: {text}") from None

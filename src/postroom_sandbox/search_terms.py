"""The terms of a search, such as `from:ida` or `larger:5M`, each as a test of one message.

Words are found whole, whatever case and accents they are written with. A word is made of letters, digits and
underscores; `R&D` is one too. Marks such as `-` and `.` join words to a phrase, others such as `+` and `?` separate
them. In `from:` and its like, a whole address means exactly that address, and anything else is looked for in names and
addresses word by word: `post.example` finds ida@mail.post.example. `me` is the owner, also with a +tag.

Sources: https://support.google.com/mail/answer/7190 (operators, dates in both orders),
https://developers.google.com/workspace/gmail/api/guides/filtering (dates begin at midnight in PST) and
http://www.sensefulsolutions.com/2010/07/how-gmail-filter-email-matching-works.html (words and marks, as measured).
`replyto:` is in none of them, but Gmail knows it: https://github.com/mbrt/gmailctl/pull/199.
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
_SEPARATING = re.compile(r"[~#$%^*+;,<>?`\s]+")
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")
_DOTLESS = frozenset({"gmail.com", "googlemail.com"})
_PACIFIC = timezone(timedelta(hours=-8))
_DAYS = {"d": 1, "m": 30, "y": 365}
_STATES = {
    "starred": "STARRED", "important": "IMPORTANT", "unread": "UNREAD", "sent": "SENT", "draft": "DRAFT",
    "spam": "SPAM",
}  # fmt: skip
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
    """The context of a search besides the message: the labels by name, the owner's addresses, and the time."""

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


class Addressed(NamedTuple):
    """One of these addresses must stand in the headers."""

    addresses: frozenset[str]
    headers: tuple[str, ...]

    def __call__(self, message: Found) -> bool:
        return not self.addresses.isdisjoint(message.mail.addresses(*self.headers))


def term(operator: str, value: str, setting: Setting, *, quoted: bool = False) -> Test:
    """The test of one term, or a refusal."""
    wanted = value.lower()
    if operator in _PEOPLE:
        return _person(wanted, _PEOPLE[operator], setting.me, quoted)
    if operator in _HEADERS:
        return _mentions(wanted, _HEADERS[operator], quoted)
    if operator in _TIMES:
        return _in_time(operator, wanted, setting.now)
    match operator:
        case "":
            return _mentions(wanted, _MENTIONED, quoted, in_text=True)
        case "in" if wanted == "anywhere":
            return lambda _message: True
        case "in" | "label":
            return _has_label(_PLACES.get(wanted) or setting.label_named(wanted))
        case "category":
            return _has_label(_CATEGORIES.get(wanted, f"CATEGORY_{wanted.upper()}"))
        case "is" if wanted == "read":
            return opposite(_has_label("UNREAD"))
        case "is" if wanted in _STATES:
            return _has_label(_STATES[wanted])
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
    tests = _join(tests)
    return tests[0] if len(tests) == 1 else lambda message: any(test(message) for test in tests)


def opposite(test: Test) -> Test:
    return lambda message: not test(message)


def _join(tests: Sequence[Test]) -> list[Test]:
    """The same alternatives, with those for the same place in one test: a search may have hundreds of them."""
    joined: dict[object, Test] = {}
    for test in tests:
        place: object = test[1:] if isinstance(test, Mentions | Addressed) else test
        before = joined.get(place)
        if isinstance(test, Mentions) and isinstance(before, Mentions):
            joined[place] = test._replace(phrases=before.phrases + test.phrases)
        elif isinstance(test, Addressed) and isinstance(before, Addressed):
            joined[place] = test._replace(addresses=before.addresses | test.addresses)
        else:
            joined[place] = test
    return list(joined.values())


def _mentions(wanted: str, headers: tuple[str, ...], quoted: bool, in_text: bool = False) -> Test:
    """Find a phrase, or each of the words between separating marks. Without any word there is nothing to find."""
    phrases = map(as_words, [wanted] if quoted else _SEPARATING.split(wanted))
    tests = [Mentions((phrase,), headers, in_text) for phrase in phrases if phrase.strip()]
    return tests[0] if len(tests) == 1 else every(tests)


def _person(wanted: str, headers: tuple[str, ...], me: frozenset[str], quoted: bool) -> Test:
    if wanted == "me" or wanted in me:
        own = frozenset(map(_mailbox_of, me if wanted == "me" else {wanted}))
        return lambda message: any(_mailbox_of(each) in own for each in message.mail.addresses(*headers))
    if _ADDRESS.fullmatch(wanted):
        return Addressed(frozenset({wanted}), headers)
    return _mentions(wanted, headers, quoted)


def _mailbox_of(address: str) -> str:
    """The mailbox in which mail for an address arrives: a +tag does not matter, and at gmail.com dots do not."""
    local, _, domain = address.partition("@")
    local = local.partition("+")[0]
    return f"{local.replace('.', '') if domain in _DOTLESS else local}@{domain}"


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


def _has_label(label_id: str | None) -> Test:
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

"""Gmail's search language, the small part of it that the sandbox understands.

Words and operators are joined by "and"; a leading minus negates; quotes hold words together. An operator that is not
known here is refused instead of ignored: a search that silently finds too much proves nothing.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from postroom.sandbox.mime import Mail
from postroom.sandbox.refusal import invalid

_TERM = re.compile(r'(?P<minus>-?)(?:(?P<operator>[a-z_0-9]+):)?(?:"(?P<quoted>[^"]*)"|(?P<bare>\S+))', re.IGNORECASE)
_AGE = re.compile(r"(\d{1,6})([dmy])")
_DAYS = {"d": 1, "m": 30, "y": 365}
_STATES = {"starred": "STARRED", "important": "IMPORTANT", "unread": "UNREAD"}
_OUT_OF_SIGHT = frozenset({"anywhere", "spam", "trash"})
_CATEGORIES = {"primary": "CATEGORY_PERSONAL"}


class Found(Protocol):
    """What a search looks at in a message."""

    @property
    def mail(self) -> Mail: ...
    @property
    def labels(self) -> frozenset[str]: ...
    @property
    def received_at(self) -> datetime: ...


Test = Callable[[Found], bool]


@dataclass(frozen=True)
class Query:
    """A search, ready to be put to messages. `everywhere` is set when it asks for spam or trash by name."""

    tests: tuple[Test, ...] = ()
    everywhere: bool = False

    def matches(self, message: Found) -> bool:
        return all(test(message) for test in self.tests)


def parse_query(text: str, label_named: Callable[[str], str | None], now: datetime) -> Query:
    """`label_named` gives the id of the label that a search names."""
    tests: list[Test] = []
    everywhere = False
    for term in _TERM.finditer(text):
        operator = (term["operator"] or "").lower()
        value = term["quoted"] if term["quoted"] is not None else term["bare"]
        test = _test(operator, value, label_named, now)
        tests.append(_negated(test) if term["minus"] else test)
        everywhere |= (
            not term["minus"] and operator in ("in", "label") and value.lower() in ("anywhere", "spam", "trash")
        )
    return Query(tuple(tests), everywhere)


def _test(operator: str, value: str, label_named: Callable[[str], str | None], now: datetime) -> Test:
    wanted = value.lower()
    match operator:
        case "in" if wanted == "anywhere":
            return _always
        case "in" | "label":
            return _labelled(label_named(wanted))
        case "category":
            return _labelled(_CATEGORIES.get(wanted, f"CATEGORY_{wanted.upper()}"))
        case "is" if wanted == "read":
            return _negated(_labelled("UNREAD"))
        case "is" if wanted in _STATES:
            return _labelled(_STATES[wanted])
        case "from" | "to" | "subject":
            return lambda message: wanted in message.mail.header(operator).lower()
        case "rfc822msgid":
            return lambda message: message.mail.header("Message-ID").strip("<> ") == value.strip("<> ")
        case "has" if wanted == "attachment":
            return lambda message: message.mail.has_attachment
        case "newer_than":
            since = _ago(wanted, now)
            return lambda message: message.received_at >= since
        case "older_than":
            until = _ago(wanted, now)
            return lambda message: message.received_at < until
        case "after":
            first = _day(wanted)
            return lambda message: message.received_at >= first
        case "before":
            last = _day(wanted)
            return lambda message: message.received_at < last
        case "":
            return lambda message: (
                wanted in message.mail.header("subject").lower() or wanted in message.mail.text.lower()
            )
        case _:
            raise invalid(f"The sandbox does not know the search term {operator}:{value}")


def _always(message: Found) -> bool:
    return True


def _labelled(label_id: str | None) -> Test:
    return lambda message: label_id in message.labels


def _negated(test: Test) -> Test:
    return lambda message: not test(message)


def _ago(age: str, now: datetime) -> datetime:
    """The moment that lies an age such as 7d, 2m or 1y before now."""
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

"""When a message was sent: by its provider, else by its `Date` header, else when it was observed.

The provider's time comes first, as in Gmail itself: it defines the order, and the `Date` is a claim of the sender. An
impossible time is skipped: before 1971, or more than a day after the message was observed.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz
from functools import lru_cache

from postroom.core.mail.headers import Headers, values

EARLIEST = datetime(1971, 1, 1, tzinfo=UTC)
TOLERANCE = timedelta(days=1)
LONGEST_DATE = 200
# The date of a message is needed several times during intake.
MOST_REMEMBERED = 100

_WEEKDAY = re.compile(r"^\s*[^\W\d]+\.?\s*,")
_COLON = re.compile(r"\s*:\s*")
_OFFSET = re.compile(r"(?<=\d)\s*(?:GMT|UTC?)?([+-]\d{2}):?(\d{2})$", re.IGNORECASE)
_COMMENT_SIGNS = frozenset("()\\")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")


def sent_at(given: object, headers: Headers, observed_at: datetime) -> datetime:
    """The first time that can be true: the one given, as text with an offset, or the `Date`; else when observed."""
    for moment in (_iso(str(given)), written_at(headers)):
        if moment is not None and moment >= EARLIEST and moment - TOLERANCE <= observed_at:
            return moment
    return observed_at


def written_at(headers: Headers) -> datetime | None:
    """The time in the `Date` header, if it is one that can be."""
    moment = next(iter(map(header_date, values(headers, "date"))), None)
    return moment if moment is not None and moment >= EARLIEST else None


def header_date(text: str) -> datetime | None:
    """The time in a header, in all forms of RFC 5322, obsolete ones too, and in some that only occur.

    A time without a usable zone counts as UTC.
    """
    return _read_date(text[:LONGEST_DATE])


@lru_cache(MOST_REMEMBERED)
def _read_date(text: str) -> datetime | None:
    plain = _WEEKDAY.sub("", _without_comments(text))
    plain = " ".join(_COLON.sub(":", plain).split())
    if _ISO.match(plain):
        return _iso(plain, zone=UTC)
    offset = _OFFSET.search(plain)
    if offset is not None:
        plain = f"{plain[: offset.start()]} {offset[1]}{offset[2]}"
    try:
        parts: Sequence[int | None] | None = parsedate_tz(plain)
    except (ValueError, IndexError, OverflowError):
        return None
    if parts is None:
        return None
    year, month, day, hour, minute, second = (number or 0 for number in parts[:6])
    try:
        local = datetime(_whole_year(year, plain), month, day, hour, minute, min(second, 59), tzinfo=_zone(parts[9]))
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _whole_year(year: int, text: str) -> int:
    """The year, which is written with two digits in old mail, and with three by programs that counted from 1900."""
    if 100 <= year < 1000:
        return year + 1900
    # The standard library takes 50 to 68 for years to come; RFC 5322 does not.
    return year - 100 if 2050 <= year <= 2068 and str(year) not in text else year


def _zone(seconds: int | None) -> timezone:
    offset = timedelta(seconds=seconds or 0)
    return timezone(offset) if abs(offset) < timedelta(days=1) else UTC


def _without_comments(text: str) -> str:
    """The text without comments in parentheses, which may be nested or contain escaped ones."""
    if not _COMMENT_SIGNS.intersection(text):
        return text
    kept: list[str] = []
    depth, escaped = 0, False
    for each in text:
        if escaped or each == "\\":
            escaped = not escaped
        elif each == "(":
            depth += 1
        elif each == ")":
            depth = max(depth - 1, 0)
        elif not depth:
            kept.append(each)
    return "".join(kept)


def _iso(text: str, zone: timezone | None = None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None and zone is None:
            return None
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None

"""Conditions on how large a message is, and when it was sent."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from postroom.core.rules import gmail_terms
from postroom.core.rules.condition_spec import (
    Compare,
    ConditionSpec,
    FormField,
    Inexpressible,
    SieveTerm,
    needing,
    says,
)
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import BrokenRule, Check, text_of

HOURS = {"h": 1, "d": 24, "w": 7 * 24}
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
LARGEST_SIZE = 2**50
_AGE = re.compile(r"([1-9]\d{0,4})([hdw])")
_SIZE = re.compile(r"([1-9]\d{0,11})\s?(?:([kmg])b?)?", re.IGNORECASE)


def _larger(field: str, argument: object) -> Check:
    least = size_of(field, argument)
    return Check(lambda seen: seen.message.size is not None and seen.message.size > least)


def _smaller(field: str, argument: object) -> Check:
    most = size_of(field, argument)
    return Check(lambda seen: seen.message.size is not None and seen.message.size < most)


def size_of(field: str, argument: object) -> int:
    """A size in bytes: a number, or a text such as `500K` or `10M`. Raises BrokenRule."""
    found = _SIZE.fullmatch(argument.strip()) if isinstance(argument, str) else None
    if found:
        size = int(found[1]) * UNITS[(found[2] or "").lower()]
    else:
        size = argument if isinstance(argument, int) and not isinstance(argument, bool) else 0
    if not 0 < size <= LARGEST_SIZE:
        raise BrokenRule(field, "is not a size", "write bytes, or K, M or G, such as 500K or 10M")
    return size


def _older_than(field: str, argument: object) -> Check:
    age = _age(field, argument)

    def test(seen: Seen) -> bool:
        sent_at = seen.message.sent_at
        return sent_at is not None and seen.now is not None and seen.now - sent_at >= age

    return Check(test)


def _newer_than(field: str, argument: object) -> Check:
    age = _age(field, argument)

    def test(seen: Seen) -> bool:
        sent_at = seen.message.sent_at
        return sent_at is not None and seen.now is not None and seen.now - sent_at < age

    return Check(test)


def _age(field: str, argument: object) -> timedelta:
    age = age_of(argument)
    if age is None:
        raise BrokenRule(field, "is not an age", "write hours, days or weeks, such as 12h, 7d or 2w")
    return age


def age_of(given: object) -> timedelta | None:
    """Parse an age such as `12h`, `7d` or `2w`; None for anything else."""
    found = _AGE.fullmatch(given) if isinstance(given, str) else None
    return timedelta(hours=int(found[1]) * HOURS[found[2]]) if found else None


def _sent_before(field: str, argument: object) -> Check:
    moment = moment_of(field, argument)
    return Check(lambda seen: seen.message.sent_at is not None and seen.message.sent_at < moment)


def _sent_after(field: str, argument: object) -> Check:
    moment = moment_of(field, argument)
    return Check(lambda seen: seen.message.sent_at is not None and seen.message.sent_at >= moment)


def moment_of(field: str, argument: object) -> datetime:
    """A day, which begins at midnight UTC, or a time with its offset. Raises BrokenRule."""
    if isinstance(argument, date):
        raise BrokenRule(field, "is a date of YAML", "put it in quotation marks: '2026-11-30'")
    try:
        moment = datetime.fromisoformat(text_of(field, argument).strip())
        is_day = len(str(argument).strip()) <= len("2026-11-30")
    except ValueError:
        raise BrokenRule(field, "is not a date", "write it as '2026-11-30' or '2026-11-30T08:00+01:00'") from None
    if moment.tzinfo is None and not is_day:
        raise BrokenRule(field, "has no time zone", "add an offset, such as Z or +01:00")
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _sizes(compare: Callable[[int, int], bool]) -> Compare:
    def compared(one: Any, other: Any) -> bool:
        try:
            return compare(size_of("size", one), size_of("size", other))
        except BrokenRule:
            return False

    return compared


def _ages(compare: Callable[[timedelta, timedelta], bool]) -> Compare:
    def compared(one: Any, other: Any) -> bool:
        first, second = age_of(one), age_of(other)
        return first is not None and second is not None and compare(first, second)

    return compared


def _sieve_size(tag: str) -> SieveTerm:
    def write(argument: object, needs: set[str]) -> str:
        try:
            return f"size {tag} {size_of('size', argument)}"
        except BrokenRule as error:
            raise Inexpressible(str(error)) from None

    return write


def _observed_size(_: object, seen: Seen) -> str:
    return "its size is unknown" if seen.message.size is None else f"it has {seen.message.size:,} bytes"


def _observed_date(_: object, seen: Seen) -> str:
    sent_at = seen.message.sent_at
    return "it is unknown when it was sent" if sent_at is None else f"it was sent at {sent_at}"


SPECS = (
    ConditionSpec(
        "larger",
        _larger,
        meaning="the message as a whole is larger than this: bytes, or `K`, `M`, `G` of 1,024",
        example="10M",
        says=says("it is larger than {}"),
        observed=_observed_size,
        needs=needing("size"),
        implies={"larger": _sizes(lambda one, other: one >= other)},
        gmail=gmail_terms.size("larger", "size"),
        sieve=_sieve_size(":over"),
        form=FormField("Larger than", "10M", 220),
    ),
    ConditionSpec(
        "smaller",
        _smaller,
        meaning="the message as a whole is smaller than this",
        example="500K",
        says=says("it is smaller than {}"),
        observed=_observed_size,
        needs=needing("size"),
        implies={"smaller": _sizes(lambda one, other: one <= other)},
        gmail=gmail_terms.size("smaller"),
        sieve=_sieve_size(":under"),
    ),
    ConditionSpec(
        "older_than",
        _older_than,
        meaning="it was sent at least that long ago: `12h`, `7d`, `2w`",
        example="7d",
        says=says("it is older than {}"),
        observed=_observed_date,
        needs=needing(),
        implies={"older_than": _ages(lambda one, other: one >= other)},
        gmail=gmail_terms.age("older_than"),
        form=FormField("Older than", "7d", 230),
    ),
    ConditionSpec(
        "newer_than",
        _newer_than,
        meaning="it was sent less than that long ago",
        example="7d",
        says=says("it is newer than {}"),
        observed=_observed_date,
        needs=needing(),
        implies={"newer_than": _ages(lambda one, other: one <= other)},
        gmail=gmail_terms.age("newer_than"),
    ),
    ConditionSpec(
        "sent_before",
        _sent_before,
        meaning="it was sent before this day (midnight UTC) or time (`'2026-11-30T08:00+01:00'`)",
        example="2026-11-30",
        says=says("it was sent before {}"),
        observed=_observed_date,
        needs=needing(),
        gmail=gmail_terms.moment("sent_before", "before", "older"),
    ),
    ConditionSpec(
        "sent_after",
        _sent_after,
        meaning="it was sent at or after this day or time",
        example="2026-11-30",
        says=says("it was sent after {}"),
        observed=_observed_date,
        needs=needing(),
        gmail=gmail_terms.moment("sent_after", "after", "newer"),
    ),
)

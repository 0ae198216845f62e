"""Conditions on how large a message is, and when it was sent."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from operator import ge, gt, lt
from typing import Any, TypeVar

from postroom.core.rules import gmail_terms
from postroom.core.rules.condition_spec import (
    ConditionSpec,
    FormField,
    GmailTerm,
    Inexpressible,
    Need,
    SieveTerm,
    needing,
    says,
)
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import BrokenRule, Check, text_of

HOURS = {"h": 1, "d": 24, "w": 7 * 24}
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
LARGEST_SIZE = 2**50
Measure = TypeVar("Measure", int, timedelta, datetime)
_AGE = re.compile(r"([1-9]\d{0,4})([hdw])")
_SIZE = re.compile(r"([1-9]\d{0,11})\s?(?:([kmg])b?)?", re.IGNORECASE)


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


def _age(field: str, argument: object) -> timedelta:
    age = age_of(argument)
    if age is None:
        raise BrokenRule(field, "is not an age", "write hours, days or weeks, such as 12h, 7d or 2w")
    return age


def age_of(given: object) -> timedelta | None:
    """Parse an age such as `12h`, `7d` or `2w`; None for anything else."""
    found = _AGE.fullmatch(given) if isinstance(given, str) else None
    return timedelta(hours=int(found[1]) * HOURS[found[2]]) if found else None


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


def _age_of(seen: Seen) -> timedelta | None:
    sent_at = seen.message.sent_at
    return None if sent_at is None or seen.now is None else seen.now - sent_at


def _measure(
    kind: str,
    read: Callable[[str, object], Measure],
    measured: Callable[[Seen], Measure | None],
    compare: Callable[[Measure, Measure], bool],
    meaning: str,
    clause: str,
    gmail: GmailTerm,
    sieve: SieveTerm | None = None,
    form: FormField | None = None,
    *,
    example: str,
    observed: Callable[[object, Seen], str] = _observed_date,
    needs: frozenset[Need] = frozenset(),
    implies_wider: bool = True,
) -> ConditionSpec:
    """The condition that a measure of the message, if known, compares so with the one that is read from the argument.

    With `implies_wider`, rules are known to cover each other by their arguments: over 10 MB is over 5 MB too.
    """

    def check(field: str, argument: object) -> Check:
        wanted = read(field, argument)

        def test(seen: Seen) -> bool:
            found = measured(seen)
            return found is not None and compare(found, wanted)

        return Check(test)

    def reaches_further(one: Any, other: Any) -> bool:
        try:
            first, second = read(kind, one), read(kind, other)
        except BrokenRule:
            return False
        return first == second or compare(first, second)

    implies = {kind: reaches_further} if implies_wider else {}
    return ConditionSpec(
        kind, check, meaning, example, says(clause), observed, needs, implies, gmail=gmail, sieve=sieve, form=form
    )


SPECS = (
    _measure(
        "larger",
        size_of,
        lambda seen: seen.message.size,
        gt,
        "the message as a whole is larger than this: bytes, or `K`, `M`, `G` of 1,024",
        "it is larger than {}",
        gmail_terms.size("larger", "size"),
        _sieve_size(":over"),
        FormField("Larger than", "10M", 220),
        example="10M",
        observed=_observed_size,
        needs=needing("size"),
    ),
    _measure(
        "smaller",
        size_of,
        lambda seen: seen.message.size,
        lt,
        "the message as a whole is smaller than this",
        "it is smaller than {}",
        gmail_terms.size("smaller"),
        _sieve_size(":under"),
        example="500K",
        observed=_observed_size,
        needs=needing("size"),
    ),
    _measure(
        "older_than",
        _age,
        _age_of,
        ge,
        "it was sent at least that long ago: `12h`, `7d`, `2w`",
        "it is older than {}",
        gmail_terms.age("older_than"),
        form=FormField("Older than", "7d", 230),
        example="7d",
    ),
    _measure(
        "newer_than",
        _age,
        _age_of,
        lt,
        "it was sent less than that long ago",
        "it is newer than {}",
        gmail_terms.age("newer_than"),
        example="7d",
    ),
    _measure(
        "sent_before",
        moment_of,
        lambda seen: seen.message.sent_at,
        lt,
        "it was sent before this day (midnight UTC) or time (`'2026-11-30T08:00+01:00'`)",
        "it was sent before {}",
        gmail_terms.moment("sent_before", "before", "older"),
        example="2026-11-30",
        implies_wider=False,
    ),
    _measure(
        "sent_after",
        moment_of,
        lambda seen: seen.message.sent_at,
        ge,
        "it was sent at or after this day or time",
        "it was sent after {}",
        gmail_terms.moment("sent_after", "after", "newer"),
        example="2026-11-30",
        implies_wider=False,
    ),
)

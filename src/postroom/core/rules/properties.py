"""Conditions on what a message is: its headers, list, labels and category, attachments, size and date."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import cast

from postroom.core.mail.addresses import addresses
from postroom.core.mail.categories import CATEGORIES
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import (
    BrokenRule,
    Leaf,
    Read,
    one_of,
    pattern_in,
    suggestion,
    text_of,
    yes_or_no,
)
from postroom.core.strict import shown_name

HOURS = {"h": 1, "d": 24, "w": 7 * 24}
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
LARGEST_SIZE = 2**50
GMAIL_CATEGORIES = ("personal", "social", "promotions", "updates", "forums")
_AGE = re.compile(r"([1-9]\d{0,4})([hdw])")
_SIZE = re.compile(r"([1-9]\d{0,11})\s?(?:([kmg])b?)?", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[!-9;-~]+")
_MIME_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")
_LIST_ID = re.compile(r"<([^<>]*)>")


def _header_match(field: str, argument: object) -> Leaf:
    """`{"name": "Precedence"}` tests that the header exists; with `"pattern"`, that one of its values matches."""
    wanted = _object("header_match", field, argument, '{"name": "Precedence", "pattern": "bulk|list"}')
    name = _header_name(field, wanted)
    if "pattern" not in wanted:
        return Leaf("header_match", wanted, lambda seen: name in seen.headers, (("header", name),))
    pattern = pattern_in(f"{field}.pattern", wanted["pattern"])
    keys = (("header_pattern", f"{name}\n{pattern.text}"),)
    return Leaf("header_match", wanted, lambda seen: pattern.finds(*seen.headers.get(name, ())), keys, pattern)


def _address_match(field: str, argument: object) -> Leaf:
    """`{"name": "Sender", "pattern": "@lists\\."}`: one of the addresses in this header matches; names do not count."""
    wanted = _object("address_match", field, argument, '{"name": "Sender", "pattern": "@lists[.]"}')
    name = _header_name(field, wanted)
    pattern = pattern_in(f"{field}.pattern", wanted.get("pattern"))

    def test(seen: Seen) -> bool:
        return pattern.finds(*(each for value in seen.headers.get(name, ()) for each in addresses(value)))

    return Leaf("address_match", wanted, test, (("header", name),), pattern)


def _object(kind: str, field: str, argument: object, example: str) -> Mapping[object, object]:
    if not isinstance(argument, Mapping):
        raise BrokenRule(field, "is not an object", f"write {example}")
    wanted = cast("Mapping[object, object]", argument)
    for name in wanted:
        if name not in ("name", "pattern"):
            problem, remedy = f"is not a field of {kind}", suggestion(str(name), ("name", "pattern"))
            raise BrokenRule(f"{field}.{shown_name(str(name))}", problem, remedy)
    return wanted


def _header_name(field: str, wanted: Mapping[object, object]) -> str:
    name = text_of(f"{field}.name", wanted.get("name")).rstrip(":").lower()
    if not _HEADER_NAME.fullmatch(name):
        raise BrokenRule(f"{field}.name", "is not a header name", "write it as List-Id")
    return name


def _label_present(field: str, argument: object) -> Leaf:
    """A label, by its exact id or by its name in any case."""
    wanted = text_of(field, argument)
    folded = wanted.casefold()
    keys = tuple({("label", wanted): None, ("label", folded): None})
    return Leaf(
        "label_present",
        argument,
        lambda seen: wanted in seen.message.labels or folded in seen.message.labels,
        keys,
    )


def _category(field: str, argument: object) -> Leaf:
    """One of Postroom's categories, or of Gmail's, which are labels there."""
    wanted = one_of(field, argument, (*CATEGORIES, *GMAIL_CATEGORIES))
    if wanted in GMAIL_CATEGORIES:
        label = f"CATEGORY_{wanted.upper()}"
        return Leaf("category", argument, lambda seen: label in seen.message.labels, (("label", label),))
    return Leaf("category", argument, lambda seen: wanted in (seen.message.categories or ()), (("category", wanted),))


def _list_id(field: str, argument: object) -> Leaf:
    wanted = text_of(field, argument).casefold()
    return Leaf(
        "list_id", argument, lambda seen: any(wanted in value for value in seen.list_ids), (("list_id", wanted),)
    )


def _list(field: str, argument: object) -> Leaf:
    """The whole id of a list; an @ in it, as in the address of the list, counts as the dot that ids have there."""
    text = text_of(field, argument).strip()
    wanted = list_name(text)
    if not wanted or re.search(r"\s", wanted):
        raise BrokenRule(
            field, "is not the id of a list", "write it as news.shop.example; for a part of it use list_id"
        )
    return Leaf(
        "list", argument, lambda seen: any(list_name(each) == wanted for each in seen.list_ids), (("list", wanted),)
    )


def list_name(value: str) -> str:
    """The id in a value of List-Id: what is in its brackets, or all of it."""
    found = _LIST_ID.search(value)
    return (found[1] if found else value).strip().casefold().replace("@", ".")


def _has_attachment(field: str, argument: object) -> Leaf:
    wanted = yes_or_no(field, argument)
    return Leaf("has_attachment", argument, lambda seen: seen.message.has_attachment is wanted)


def _attachment_type(field: str, argument: object) -> Leaf:
    """A MIME type, or all of its kind: `image/*`."""
    wanted = text_of(field, argument).strip().lower()
    if not _MIME_TYPE.fullmatch(wanted):
        remedy = "write it as application/pdf or image/*; for the ending of a name use attachment_name"
        raise BrokenRule(field, "is not a MIME type", remedy)
    start = wanted.removesuffix("*")

    def test(seen: Seen) -> bool:
        types = (kind.lower() for _, kind in seen.message.attachments or ())
        return any(kind == wanted if start == wanted else kind.startswith(start) for kind in types)

    return Leaf("attachment_type", argument, test, (("attachment_type", wanted),))


def _larger(field: str, argument: object) -> Leaf:
    least = size_of(field, argument)
    return Leaf("larger", argument, lambda seen: seen.message.size is not None and seen.message.size > least)


def _smaller(field: str, argument: object) -> Leaf:
    most = size_of(field, argument)
    return Leaf("smaller", argument, lambda seen: seen.message.size is not None and seen.message.size < most)


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


def _older_than(field: str, argument: object) -> Leaf:
    age = _age(field, argument)

    def test(seen: Seen) -> bool:
        sent_at = seen.message.sent_at
        return sent_at is not None and seen.now is not None and seen.now - sent_at >= age

    return Leaf("older_than", argument, test)


def _newer_than(field: str, argument: object) -> Leaf:
    age = _age(field, argument)

    def test(seen: Seen) -> bool:
        sent_at = seen.message.sent_at
        return sent_at is not None and seen.now is not None and seen.now - sent_at < age

    return Leaf("newer_than", argument, test)


def _age(field: str, argument: object) -> timedelta:
    age = age_of(argument)
    if age is None:
        raise BrokenRule(field, "is not an age", "write hours, days or weeks, such as 12h, 7d or 2w")
    return age


def age_of(given: object) -> timedelta | None:
    """Parse an age such as `12h`, `7d` or `2w`; None for anything else."""
    found = _AGE.fullmatch(given) if isinstance(given, str) else None
    return timedelta(hours=int(found[1]) * HOURS[found[2]]) if found else None


def _sent_before(field: str, argument: object) -> Leaf:
    moment = moment_of(field, argument)

    def test(seen: Seen) -> bool:
        return seen.message.sent_at is not None and seen.message.sent_at < moment

    return Leaf("sent_before", argument, test)


def _sent_after(field: str, argument: object) -> Leaf:
    moment = moment_of(field, argument)

    def test(seen: Seen) -> bool:
        return seen.message.sent_at is not None and seen.message.sent_at >= moment

    return Leaf("sent_after", argument, test)


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


LEAVES: Mapping[str, Read] = {
    "header_match": _header_match,
    "address_match": _address_match,
    "label_present": _label_present,
    "category": _category,
    "list_id": _list_id,
    "list": _list,
    "has_attachment": _has_attachment,
    "attachment_type": _attachment_type,
    "larger": _larger,
    "smaller": _smaller,
    "older_than": _older_than,
    "newer_than": _newer_than,
    "sent_before": _sent_before,
    "sent_after": _sent_after,
}

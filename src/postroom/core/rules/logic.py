"""Conditions put together, and compared, without looking at a message.

Translations of foreign rules build conditions from parts, some of which are always or never true: those are plain True
and False here, and disappear when parts are put together.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from postroom.core.mail.addresses import canonical, canonical_domain
from postroom.core.rules.leaf import BrokenRule
from postroom.core.rules.properties import age_of, size_of
from postroom.core.rules.words import WordsRefused, read_phrases

Condition = dict[str, Any]
Logic = Condition | bool

# Conditions on a part of a text: whatever contains the longer text contains the shorter one.
_CONTAINS = frozenset({"subject_contains", "body_contains", "list_id"})
_ADDRESSES = frozenset({"from", "to", "to_header", "cc", "bcc", "reply_to", "delivered_to"})
# A message has exactly one of these, so two different ones exclude each other.
_SINGLE = frozenset({"sender_email", "sender_domain"})
_DEEPEST = 30


def every(parts: Iterable[Logic]) -> Logic:
    """All of the parts: flat, each once; False if two of them contradict each other."""
    return _joined(parts, "and", neutral=True)


def some(parts: Iterable[Logic]) -> Logic:
    """Any of the parts: flat, each once; True if two of them leave nothing out."""
    return _joined(parts, "or", neutral=False)


def negated(part: Logic) -> Logic:
    if isinstance(part, bool):
        return not part
    return part.get("not", {"not": part})


def _joined(parts: Iterable[Logic], kind: str, *, neutral: bool) -> Logic:
    found: dict[str, Condition] = {}
    for part in _flat(parts, kind):
        if part is neutral:
            continue
        if isinstance(part, bool) or repr(negated(part)) in found:
            return not neutral
        found[repr(part)] = part
    if not found:
        return neutral
    kept = list(found.values())
    return kept[0] if len(kept) == 1 else {kind: kept}


def _flat(parts: Iterable[Logic], kind: str) -> Iterable[Logic]:
    for part in parts:
        if not isinstance(part, bool) and kind in part:
            yield from part[kind]
        else:
            yield part


def implies(one: Mapping[str, Any], other: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether `other` certainly holds for every message for which `one` holds. False may also mean: not known."""
    if one == other:
        return True
    if depth > _DEEPEST:
        return False
    (kind, argument), (wanted, others) = _only(one), _only(other)
    if kind == "or":
        return all(implies(each, other, depth + 1) for each in argument)
    if wanted == "and":
        return all(implies(one, each, depth + 1) for each in others)
    if kind == "and" and any(implies(each, other, depth + 1) for each in argument):
        return True
    if wanted == "or":
        return any(implies(one, each, depth + 1) for each in others)
    if wanted == "not":
        return implies(others, argument, depth + 1) if kind == "not" else exclusive(one, others, depth + 1)
    return kind not in ("and", "not") and _leaf_implies(kind, argument, wanted, others)


def exclusive(one: Mapping[str, Any], other: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether certainly no message has both. False may also mean: not known."""
    if depth > _DEEPEST:
        return False
    (kind, argument), (wanted, others) = _only(one), _only(other)
    if "or" in (kind, wanted):
        parts, whole = (argument, other) if kind == "or" else (others, one)
        return all(exclusive(each, whole, depth + 1) for each in parts)
    if "and" in (kind, wanted):
        parts, whole = (argument, other) if kind == "and" else (others, one)
        return any(exclusive(each, whole, depth + 1) for each in parts)
    if "not" in (kind, wanted):
        inner, whole = (argument, other) if kind == "not" else (others, one)
        return "not" not in whole and implies(whole, inner, depth + 1)
    if kind == wanted and isinstance(argument, bool):
        return argument is not others
    return _single_differ(kind, argument, wanted, others)


def _only(condition: Mapping[str, Any]) -> tuple[str, Any]:
    ((kind, argument),) = condition.items()
    return kind, argument


def _single_differ(kind: str, argument: Any, wanted: str, others: Any) -> bool:
    if not {kind, wanted} <= _SINGLE or not isinstance(argument, str) or not isinstance(others, str):
        return False
    if kind == wanted == "sender_email":
        return canonical(argument) != canonical(others)
    return _domain(argument) != _domain(others)


def _leaf_implies(kind: str, argument: Any, wanted: str, other: Any) -> bool:
    if kind == wanted and kind in ("larger", "smaller", "older_than", "newer_than"):
        return _is_stricter(kind, argument, other)
    if not isinstance(argument, str) or not isinstance(other, str):
        return False
    if kind == wanted and kind in _CONTAINS:
        return other.casefold() in argument.casefold()
    if kind == wanted and kind in _ADDRESSES:
        return argument.strip().casefold() == other.strip().casefold() or (
            other.startswith("@") and _domain(argument) == _domain(other)
        )
    if wanted == "sender_domain" and kind in _SINGLE:
        return _domain(argument) == _domain(other)
    if kind == "sender_email" and wanted in ("sender_email", "from"):
        return canonical(argument) == canonical(other) or (
            other.startswith("@") and _domain(argument) == _domain(other)
        )
    return kind == wanted and kind.endswith("words") and _phrases(other) <= _phrases(argument) != frozenset()


def _is_stricter(kind: str, argument: Any, other: Any) -> bool:
    if kind in ("older_than", "newer_than"):
        one, two = age_of(argument), age_of(other)
        return one is not None and two is not None and (one >= two if kind == "older_than" else one <= two)
    try:
        least, most = size_of("size", argument), size_of("size", other)
    except BrokenRule:
        return False
    return least >= most if kind == "larger" else least <= most


def _phrases(text: str) -> frozenset[str]:
    try:
        return frozenset(read_phrases(text))
    except WordsRefused:
        return frozenset()


def _domain(text: str) -> str:
    return canonical_domain(text.strip().rpartition("@")[2].rstrip("."))


def decided_before(condition: Mapping[str, Any], earlier: Sequence[tuple[str, Mapping[str, Any]]]) -> str | None:
    """The first of the earlier rules, given by name, that takes all the mail of this condition; None if none does."""
    return next((name for name, each in earlier if implies(condition, each)), None)

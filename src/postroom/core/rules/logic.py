"""Conditions put together from parts.

Translations of foreign rules build conditions from parts, some of which are always or never true: those are plain True
and False here, and disappear when parts are put together.
"""

from collections.abc import Iterable
from typing import Any

Condition = dict[str, Any]
Logic = Condition | bool


def every(parts: Iterable[Logic]) -> Logic:
    """All of the parts: flat, each once; False if two of them contradict each other."""
    return _join(parts, "and", neutral=True)


def some(parts: Iterable[Logic]) -> Logic:
    """Any of the parts: flat, each once; True if two of them leave nothing out."""
    return _join(parts, "or", neutral=False)


def negated(part: Logic) -> Logic:
    if isinstance(part, bool):
        return not part
    return part.get("not", {"not": part})


def _join(parts: Iterable[Logic], kind: str, *, neutral: bool) -> Logic:
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

"""Conditions compared without looking at a message: whether one certainly holds where another does, or never does."""

from collections.abc import Mapping, Sequence
from typing import Any

from postroom.core.rules.condition_spec import Compare
from postroom.core.rules.conditions import SPECS

_DEEPEST = 30


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
    return kind in SPECS and _certainly(SPECS[kind].implies.get(wanted), argument, others)


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
    return kind in SPECS and _certainly(SPECS[kind].excludes.get(wanted), argument, others)


def _only(condition: Mapping[str, Any]) -> tuple[str, Any]:
    ((kind, argument),) = condition.items()
    return kind, argument


def _certainly(compare: Compare | None, argument: Any, other: Any) -> bool:
    return compare is not None and compare(argument, other)


def decided_before(condition: Mapping[str, Any], earlier: Sequence[tuple[str, Mapping[str, Any]]]) -> str | None:
    """The first of the earlier rules, given by name, that takes all the mail of this condition; None if none does."""
    return next((name for name, each in earlier if implies(condition, each)), None)

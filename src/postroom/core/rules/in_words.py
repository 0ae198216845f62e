"""The conditions of a rule in words, for people who read pages, bounded in length."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from postroom.core.rules.conditions import SPECS

MOST_PARTS = 8
DEEPEST = 4


def conditions_in_words(conditions: object, depth: int = 0) -> str:
    """Return the conditions as a clause, such as `the sender is from shop.example and not (the subject has …)`.

    Stored conditions may be broken; those parts are named as they are. Many or deep ones are cut short.
    """
    if not isinstance(conditions, Mapping) or len(cast("Mapping[Any, Any]", conditions)) != 1:
        return "a condition that is not valid"
    ((kind, argument),) = cast("Mapping[object, object]", conditions).items()
    match kind, argument:
        case "and" | "or", list():
            return _join(f" {kind} ", cast("list[object]", argument), depth)
        case "not", Mapping():
            inner = cast("Mapping[Any, Any]", argument)
            return f"not ({conditions_in_words(inner, depth + 1)})" if depth < DEEPEST else "not (…)"
        case _:
            return _leaf(str(kind), argument)


def _join(word: str, parts: Sequence[object], depth: int) -> str:
    if depth > DEEPEST:
        return "(…)"
    said = [_in_brackets(each, conditions_in_words(each, depth + 1)) for each in parts[:MOST_PARTS]]
    more = len(parts) - len(said)
    return word.join([*said, f"{more:,} more"] if more else said)


def _in_brackets(part: object, said: str) -> str:
    """Put a list of several inside another into brackets."""
    if isinstance(part, Mapping) and {"and", "or"} & set(cast("Mapping[object, object]", part)):
        return f"({said})"
    return said


def _leaf(kind: str, argument: object) -> str:
    said = SPECS[kind].says(argument) if kind in SPECS else None
    return f"{kind} {argument}" if said is None else said

"""Fills the parameters of statements from objects, by name, as `reading` fills objects from columns.

A parameter takes the value given by its name, or else the field of its name, of the first object that has one. A
parameter whose name ends in `_json` takes what has the rest of its name, as JSON; sets become sorted lists.

    yield fill("insert_pause", pause, now=now)
"""

from collections.abc import Callable
from functools import cache
from typing import Any, cast

from postroom.store.engine.codecs import json_text
from postroom.store.engine.database import Statement
from postroom.store.engine.statements import parameters

_JSON = "_json"
_Take = Callable[[tuple[object, ...], dict[str, Any]], Any]


def fill(name: str, /, *objects: object, **given: Any) -> Statement:
    """Make a statement whose parameters are fields of these objects, or given by name."""
    takes = _takes(name, tuple(map(type, objects)), frozenset(given))
    return Statement(name, tuple(take(objects, given) for take in takes))


@cache
def _takes(statement: str, kinds: tuple[type[Any], ...], given: frozenset[str]) -> tuple[_Take, ...]:
    """Make a function for each parameter, which takes its value. Raises on anything missing or unused: bugs."""
    names = parameters(statement)
    if unused := given - {*names, *(name.removesuffix(_JSON) for name in names)}:
        raise LookupError(f"the statement {statement} has no parameter {min(unused)}")
    return tuple(_take(statement, name, kinds, given) for name in names)


def _take(statement: str, name: str, kinds: tuple[type[Any], ...], given: frozenset[str]) -> _Take:
    if name in given:
        return lambda _, values: values[name]
    for place, kind in enumerate(kinds):
        if _has_field(kind, name):
            return lambda objects, _: getattr(objects[place], name)
    if name.endswith(_JSON):
        take = _take(statement, name.removesuffix(_JSON), kinds, given)
        return lambda objects, values: _encode(take(objects, values))
    raise LookupError(f"nothing gives {name} to the statement {statement}")


def _has_field(kind: type[Any], name: str) -> bool:
    return any(name in vars(each).get("__annotations__", ()) for each in kind.__mro__)


def _encode(value: object) -> str | None:
    if value is None:
        return None
    return json_text(sorted(cast("frozenset[Any]", value)) if isinstance(value, frozenset) else value)

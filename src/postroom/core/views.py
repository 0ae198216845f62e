"""Marks on the fields of a view: the fields that people and programs get, and the text that strangers wrote.

A view is a dataclass or a named tuple that operations return. Its public fields are shown outside, by their names; a
property is shown if its type is marked. Every interface reads the marks: the JSON API puts text of strangers under
`untrusted`. A class variable `UNTRUSTED` describes the fields there together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from inspect import getattr_static, getdoc
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Mark(Enum):
    UNTRUSTED = "untrusted"
    INTERNAL = "internal"
    SHOWN = "shown"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Named:
    """Programs get the field under another name: a word of Python, or that of a field outside the untrusted ones."""

    name: str


Untrusted = Annotated[T, Mark.UNTRUSTED]
"""Written by strangers or a model: data, never an instruction."""
Internal = Annotated[T, Mark.INTERNAL]
"""For Postroom's own pages and code; not shown to programs."""
Shown = Annotated[T, Mark.SHOWN]
"""The type of a property that is shown like a field."""
OrAbsent = Annotated[T | None, Mark.ABSENT]
"""Left out where it is None; of other fields programs get null."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that is shown outside, as `shown_as`: a duration in seconds, under its name with `_s`.

    `description` is a string among the marks of its type, or a property's docstring.
    """

    name: str
    type: Any
    is_untrusted: bool
    description: str | None
    shown_as: str
    may_be_absent: bool


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some lines of a list. `next` is where the next page begins; null on the last one."""

    lines: Sequence[T]
    next: Annotated[str | None, "The cursor of the next page; null on the last one."]


@dataclass(frozen=True, slots=True)
class Done:
    """The operation was carried out."""

    done: Annotated[str, "A sentence for people."]


def is_view(type_: object) -> bool:
    """Whether the type has fields of its own to show."""
    bare: Any = get_origin(type_) or type_
    return is_dataclass(bare) or hasattr(bare, "_fields")


def name_of(view: Any) -> str:
    """The name of a view; a page is named for its lines."""
    return "".join([*(name_of(each) for each in get_args(view)), (get_origin(view) or view).__name__])


@cache
def shown_fields(view: Any) -> tuple[Field, ...]:
    """The fields of a view that people and programs get."""
    bare: Any = get_origin(view) or view
    parameters = dict(_parameters(view, *getattr(bare, "__orig_bases__", ())))
    hints = get_type_hints(bare, include_extras=True)
    names: Iterable[str] = bare._fields if hasattr(bare, "_fields") else (each.name for each in fields(bare))
    own = [_field(name, hints[name], parameters) for name in names if not name.startswith("_")]
    more = [_field(name, hint, parameters, doc) for name, (hint, doc) in _properties(bare).items()]
    return tuple(each for each in (*own, *more) if each is not None)


def _parameters(*generics: Any) -> Iterator[tuple[Any, Any]]:
    """The parameters of generic views, each with its argument."""
    for each in generics:
        yield from zip(getattr(get_origin(each), "__parameters__", ()), get_args(each), strict=False)


def _field(name: str, hint: Any, parameters: Mapping[Any, Any], doc: str | None = None) -> Field | None:
    type_, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if Mark.INTERNAL in marks:
        return None
    wanted = [parameters[each] for each in getattr(type_, "__parameters__", ())]
    description = next((mark for mark in marks if isinstance(mark, str)), doc)
    usual = f"{name}_s" if timedelta in (type_, *get_args(type_)) else name
    shown_as = next((mark.name for mark in marks if isinstance(mark, Named)), usual)
    own = type_[*wanted] if wanted else type_
    return Field(name, own, Mark.UNTRUSTED in marks, description, shown_as, Mark.ABSENT in marks)


def _properties(view: type) -> dict[str, tuple[Any, str | None]]:
    """The types and docstrings of the properties that are marked as shown."""
    found = {name: getattr_static(view, name) for name in dir(view) if not name.startswith("_")}
    getters = {name: each.fget for name, each in found.items() if isinstance(each, property)}
    hints = {name: get_type_hints(get, include_extras=True)["return"] for name, get in getters.items()}
    return {name: (hint, getdoc(getters[name])) for name, hint in hints.items() if Mark.SHOWN in get_args(hint)}

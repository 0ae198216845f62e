"""Answers to programs, made from views: text of strangers is under `untrusted`, durations are in seconds.

A form is the schema of a view; a writer makes its JSON. Writers are put together once for each type, since some answers
are given thousands of times a second.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, create_model
from pydantic import Field as FormField
from pydantic_core import to_jsonable_python
from typing_extensions import is_typeddict

from postroom.core.views import Field, Mark, is_view, name_of, shown_fields
from postroom.store.engine.codecs import time_text

UNTRUSTED = "untrusted"
Write = Callable[[Any], Any]
_LISTS = (list, tuple, Sequence, AbstractSet, frozenset, set)
_PLAIN = (str, int, bool, NoneType)
_WRITERS: Mapping[Any, Write] = {float: float, UUID: str, datetime: time_text, timedelta: timedelta.total_seconds}


class Form(BaseModel):
    """The base of all forms."""


@cache
def form_of(view: Any) -> type[Form]:
    """The form of a view. Its untrusted fields are in a form of their own.

    A plain list is an object that holds its `lines`, so that more can be said beside them later.
    """
    if get_origin(view) in _LISTS:
        lines: Any = list[_type(get_args(view)[0])]
        return create_model(f"{name_of(get_args(view)[0])}List", __base__=Form, lines=(lines, FormField()))
    shown = shown_fields(view)
    definitions: dict[str, Any] = {each.shown_as: _definition(each) for each in shown if not each.is_untrusted}
    hidden: dict[str, Any] = {each.shown_as: _definition(each) for each in shown if each.is_untrusted}
    bare: Any = get_origin(view) or view
    name, doc = name_of(view), bare.__doc__ or ""
    if UNTRUSTED in definitions:
        raise TypeError(f"{name} has a field {UNTRUSTED!r}, where the text of strangers is; give it another name")
    if hidden:
        about = getattr(bare, "UNTRUSTED", None)
        definitions[UNTRUSTED] = (create_model(f"Untrusted{name}", __base__=Form, __doc__=about, **hidden), FormField())
    return create_model(name, __base__=Form, __doc__=None if doc.startswith(f"{name}(") else doc, **definitions)


def _definition(field: Field) -> tuple[Any, Any]:
    if not field.may_be_absent:
        return _type(field.type), FormField(description=field.description)
    present = [each for each in get_args(field.type) if each is not NoneType]
    shown = FormField(None, description=field.description, json_schema_extra=_without_default)
    return _type(Union[tuple(present)]), shown  # noqa: UP007 - made at run time


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


def _type(hint: Any) -> Any:
    """The type of a field in a form: views within it become forms."""
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    if is_view(hint):
        return form_of(hint)
    if hint is timedelta:
        return float
    if hint is object:
        return Any
    if origin is Annotated:
        if any(isinstance(each, Mark) for each in arguments):
            raise TypeError(f"{hint} is marked within the type of a field; mark the field")
        return _type(arguments[0])
    if origin in (Union, UnionType):
        return Union[tuple(_type(each) for each in arguments)]  # noqa: UP007 - made at run time
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple[tuple(_type(each) for each in arguments)]
    if origin in _LISTS:
        return list[_type(arguments[0])]
    if origin in (dict, Mapping):
        return dict[_type(arguments[0]), _type(arguments[1])]
    if arguments and origin is not Literal:
        raise TypeError(f"{hint} cannot be shown; use a list, a mapping or a tuple")
    return hint


def json_of(type_: Any, view: object) -> Any:
    """A view of this type as JSON."""
    written = writer_of(type_)(view)
    return {"lines": written} if get_origin(type_) in _LISTS else written


@cache
def writer_of(hint: Any) -> Write:
    """The function that makes JSON of the values of a type."""
    return _writer(hint) or _itself


def _itself(value: Any) -> Any:
    return value


def _writer(hint: Any) -> Write | None:
    """The function, or None for what is JSON as it is."""
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    if is_view(hint):
        return _view_writer(hint)
    if origin is Annotated:
        return _writer(arguments[0])
    if origin in (Union, UnionType):
        return _choice_writer([each for each in arguments if each is not NoneType])
    if origin is tuple and arguments[-1] is not Ellipsis:
        parts = [writer_of(each) for each in arguments]
        return lambda value: [write(each) for write, each in zip(parts, value, strict=True)]
    if origin in _LISTS:
        write = _writer(arguments[0])
        return list if write is None else lambda value: [write(each) for each in value]
    if origin in (dict, Mapping) and arguments == (str, Any):
        return to_jsonable_python
    if origin in (dict, Mapping):
        key, write = _key_writer(arguments[0]), writer_of(arguments[1])
        return lambda value: {key(name): write(each) for name, each in value.items()}
    if hint in _PLAIN or origin is Literal:
        return None
    return _WRITERS.get(hint, to_jsonable_python)


def _key_writer(hint: Any) -> Write:
    return _itself if hint is str or get_origin(hint) is Literal else str


def _view_writer(view: Any) -> Write:
    bare: Any = get_origin(view) or view
    shown = shown_fields(view)
    write_trusted = _fields_writer([each for each in shown if not each.is_untrusted])
    untrusted = [each for each in shown if each.is_untrusted]
    write_untrusted = _fields_writer(untrusted)
    absent = [each for each in shown if each.may_be_absent]

    def write_view(given: Any) -> dict[str, Any]:
        if not isinstance(given, bare):
            raise TypeError(f"{type(given).__name__} is no {bare.__name__}")
        found = write_trusted(given)
        if untrusted:
            found[UNTRUSTED] = write_untrusted(given)
        for each in absent:
            if getattr(given, each.name) is None:
                del (found[UNTRUSTED] if each.is_untrusted else found)[each.shown_as]
        return found

    return write_view


def _fields_writer(fields: Sequence[Field]) -> Write:
    names = [(each.shown_as, each.name) for each in fields]
    made = [(each.shown_as, write) for each in fields if (write := _writer(each.type)) is not None]

    def write_fields(given: Any) -> dict[str, Any]:
        found = {shown_as: getattr(given, name) for shown_as, name in names}
        for shown_as, write in made:
            found[shown_as] = write(found[shown_as])
        return found

    return write_fields


def _choice_writer(choices: Sequence[Any]) -> Write | None:
    """Of several types, that of the value itself says how it is written."""
    writers = [(_class_of(each), write) for each in choices if (write := _writer(each)) is not None]
    if not writers:
        return None

    @cache
    def writer_for(class_: type) -> Write:
        return next((write for each, write in writers if issubclass(class_, each)), _itself)

    def write_choice(value: object) -> Any:
        return None if value is None else writer_for(type(value))(value)

    return write_choice


def _class_of(hint: Any) -> Any:
    origin: Any = get_origin(hint)
    if origin in _LISTS:
        return _LISTS
    if is_typeddict(hint):
        return dict
    return origin or (hint if isinstance(hint, type) else object)

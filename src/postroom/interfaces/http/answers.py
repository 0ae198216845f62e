"""Answers of the JSON API, made from views: text of strangers is under `untrusted`, durations are in seconds."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, PlainSerializer, create_model, model_validator
from pydantic import Field as FormField

from postroom.core.views import Field, Mark, is_view, name_of, shown_fields

UNTRUSTED = "untrusted"
Seconds = Annotated[timedelta, PlainSerializer(timedelta.total_seconds, return_type=float)]
_LISTS = (list, tuple, Sequence, AbstractSet, frozenset, set)


class Form(BaseModel):
    """The base of all forms, which read the attributes of a view."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class _Marked:
    """A view whose `untrusted` is the view itself."""

    def __init__(self, view: object) -> None:
        self._view = view

    def __getattr__(self, name: str) -> object:
        return self._view if name == UNTRUSTED else getattr(self._view, name)


@cache
def form_of(view: Any) -> type[Form]:
    """The form of a view. Its untrusted fields are in a form of their own, which reads the same view.

    A plain list is an object that holds its `lines`, so that more can be said beside them later.
    """
    if get_origin(view) in _LISTS:
        lines: Any = list[_type(get_args(view)[0])]
        return create_model(f"{name_of(get_args(view)[0])}List", __base__=Form, lines=(lines, FormField()))
    shown = shown_fields(view)
    definitions = dict(_definition(each) for each in shown if not each.is_untrusted)
    hidden = dict(_definition(each) for each in shown if each.is_untrusted)
    bare: Any = get_origin(view) or view
    name, doc = name_of(view), bare.__doc__ or ""
    if UNTRUSTED in definitions:
        raise TypeError(f"{name} has a field {UNTRUSTED!r}, where the text of strangers is; give it another name")
    if hidden:
        definitions[UNTRUSTED] = (create_model(f"Untrusted{name}", __base__=Form, **hidden), FormField())
    return create_model(
        name,
        __base__=Form,
        __doc__=None if doc.startswith(f"{name}(") else doc,
        __validators__={"_read": _reader(bare, has_untrusted=bool(hidden))},
        **definitions,
    )


def _reader(view: type, *, has_untrusted: bool) -> Any:
    """What a form does with a value: of several forms only the one of its own view takes it, whatever attributes the
    views share."""

    def read(cls: type[Form], given: object) -> object:
        if not isinstance(given, view):
            raise ValueError(f"is no {view.__name__}")
        return _Marked(given) if has_untrusted else given

    return model_validator(mode="before")(read)


def json_of(type_: Any, view: object) -> Any:
    """A view of this type as JSON."""
    shown = {"lines": view} if get_origin(type_) in _LISTS else view
    return form_of(type_).model_validate(shown).model_dump(mode="json")


def _definition(field: Field) -> tuple[str, Any]:
    takes_time = field.type is timedelta or timedelta in get_args(field.type)
    name = f"{field.name}_s" if takes_time else field.name
    alias = field.name if takes_time else None
    return name, (_type(field.type), FormField(validation_alias=alias, description=field.description))


def _type(hint: Any) -> Any:
    """The type of a field in a form: views within it become forms."""
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    if is_view(hint):
        return form_of(hint)
    if hint is timedelta:
        return Seconds
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

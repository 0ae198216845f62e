"""Arguments and options of commands, made from what is declared: of an operation, or of the fields of a dataclass."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from postroom.core.choices import choice
from postroom.core.moments import read_moment

if TYPE_CHECKING:
    from postroom.operations.operation import Argument, OperationArgument

MOST_LISTED = 10_000
SPANS = "30d, 12h, or a time with its offset"


class Without:
    """Marks a group of options of which a command does not have these."""

    def __init__(self, *names: str) -> None:
        self.names = names


class OptionGroup:
    """The options that several commands share: a command that takes a dataclass has one for each of its fields."""

    def __init__(self, hint: Any) -> None:
        from postroom.operations.operation import arguments_of

        self._type, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        without = {name for mark in marks if isinstance(mark, Without) for name in mark.names}
        self._arguments = [each for each in arguments_of(self._type) if each.name not in without]

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return [_parameter(each) for each in self._arguments]

    def read(self, given: dict[str, Any], now: datetime) -> Any:
        """Take its options out of those that were given."""
        typed = {each: given.pop(each.name) for each in self._arguments}
        return self._type(
            **{each.name: read_typed(each, value, now) for each, value in typed.items() if value is not None}
        )


class OneOption:
    """An option or argument of a command written by hand that is declared as one of an operation is."""

    def __init__(self, parameter: inspect.Parameter) -> None:
        from postroom.operations.operation import OperationArgument

        self._argument = OperationArgument.of(parameter.name, parameter.annotation, parameter.default)

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return [_parameter(self._argument)]

    def read(self, given: dict[str, Any], now: datetime) -> Any:
        typed = given.pop(self._argument.name)
        return self._argument.default if typed is None else read_typed(self._argument, typed, now)


def read_typed(argument: "OperationArgument", typed: Any, now: datetime) -> Any:
    """Read one of several choices, or a time, which people also write as a span back or ahead."""
    option = _option(argument)[0]
    if choices := _choices(argument.type):
        return choice(option, typed, choices)
    return (
        read_moment(option, typed, now, ahead=argument.typed.is_ahead) if datetime in _kinds(argument.type) else typed
    )


def _parameter(argument: "OperationArgument") -> inspect.Parameter:
    """It is an option, unless people type it as one word."""
    typed_as = argument.typed.typed_as
    return parameter_of(argument, is_argument=typed_as is not None and typed_as[0] != "-")


def parameter_of(argument: "OperationArgument", *, is_argument: bool) -> inspect.Parameter:
    from postroom.operations.operation import LIMIT, REQUIRED

    described = (
        replace(LIMIT, description="At most this many.", most=MOST_LISTED)
        if argument.typed is LIMIT
        else argument.typed
    )
    more: dict[str, Any] = {"min": described.least, "max": described.most} if _is_number(argument.type) else {}
    if choices := _choices(argument.type):
        more["autocompletion"] = _completion_of(choices)
    type_ = _type(argument.type)
    if argument.found_by is not None:
        type_ = list[str] if get_origin(type_) is list else str | None if NoneType in get_args(type_) else str
    if is_argument:
        name = described.typed_as or argument.name.upper()
        info: Any = typer.Argument(metavar=name, help=described.description, **more)
    else:
        option, metavar = _option(argument)
        shown: dict[str, Any] = {"metavar": metavar or _metavar(argument.type), "hidden": described.is_hidden}
        info = typer.Option(option, help=_help(described, argument.type), **shown, **more)
    default: Any = inspect.Parameter.empty if argument.default is REQUIRED else argument.default
    if get_origin(type_) is list and default == ():
        type_, default = type_ | None, None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(argument.name, kind, default=default, annotation=Annotated[type_, info])


def _option(argument: "OperationArgument") -> tuple[str, str | None]:
    """The option of an argument, and what stands for its value in the help."""
    option, _, metavar = (argument.typed.typed_as or f"--{argument.name.replace('_', '-')}").partition(" ")
    return option, metavar or None


def _metavar(type_: Any) -> str | None:
    if choices := _choices(type_):
        return f"<{'|'.join(choices)}>"
    return "WHEN" if datetime in _kinds(type_) else None


def _help(described: "Argument", type_: Any) -> str:
    """The description; that of a time also says how people write it."""
    text = described.description
    return f"{text.removesuffix('.')}: {SPANS}." if datetime in _kinds(type_) else text


def _choices(type_: Any) -> tuple[str, ...]:
    return next((get_args(each) for each in (type_, *get_args(type_)) if get_origin(each) is Literal), ())


def _completion_of(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """A function that completes the beginning of one of the choices, for the user's shell."""

    def complete(incomplete: str) -> list[str]:
        return [each for each in choices if each.startswith(incomplete)]

    return complete


def _kinds(type_: Any) -> set[Any]:
    return {each for each in (get_args(type_) or (type_,)) if each is not NoneType}


def _is_number(type_: Any) -> bool:
    return _kinds(type_) <= {int, float}


def _type(hint: Any) -> Any:
    """The type as Typer reads it."""
    origin: Any = get_origin(hint)
    if origin is Annotated:
        return _type(get_args(hint)[0])
    if origin in (Union, UnionType):
        return functools.reduce(lambda one, other: one | other, [_type(each) for each in get_args(hint)])
    if origin in (list, tuple, Sequence):
        return list[_type(get_args(hint)[0])]
    return str if hint is datetime or origin is Literal else hint

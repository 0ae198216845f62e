"""Commands made from the table of operations: arguments, options, help and output are read from the declaration."""

import functools
import importlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin

import typer

from postroom.core.views import Done, Page
from postroom.interfaces.cli.options import Reason
from postroom.interfaces.cli.output import Row, cell
from postroom.interfaces.cli.session import Commands, Session, command_group

if TYPE_CHECKING:
    from postroom.operations.operation import Command, Operation, OperationArgument

MOST_LISTED = 10_000


def add_commands(group: Commands, name: str, *modules: str) -> None:
    """Add to a group the commands that these modules of operations declare for it."""
    from postroom.operations.nouns import NOUNS

    for each in modules:
        importlib.import_module(f"postroom.operations.{each}")
    for operation in [each for noun in NOUNS for each in noun.operations]:
        if operation.command is not None and operation.command.group == name:
            group.command(operation.command.name)(_command(operation, operation.command))


def group_of(summary: str, name: str, *modules: str) -> Commands:
    """A group of which all commands come from the table."""
    group = command_group(summary)
    add_commands(group, name, *modules)
    return group


def _command(operation: "Operation", spec: "Command") -> Any:
    def run(session: Session, **given: Any) -> None:
        answer = session.run(operation, {name: value for name, value in given.items() if value is not None})
        _show(session, spec, answer)

    wanted = [each for each in operation.arguments if each.page is None]
    at = {name: place for place, name in enumerate(spec.arguments)}
    wanted.sort(key=lambda each: at.get(each.name, len(at)))
    session = inspect.Parameter("session", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Session)
    parameters = [session, *(_parameter(each, is_argument=each.name in at) for each in wanted)]
    if operation.signs:
        parameters.append(inspect.Parameter("reason", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Reason))
    run.__dict__["__signature__"] = inspect.Signature([each.replace(kind=session.kind) for each in parameters])
    run.__doc__ = inspect.getdoc(operation.run)
    run.__name__ = operation.id
    return run


def _parameter(argument: "OperationArgument", *, is_argument: bool) -> inspect.Parameter:
    from postroom.operations.operation import REQUIRED

    described = argument.argument
    bounds: dict[str, Any] = {"min": described.least, "max": described.most} if _is_number(argument.type) else {}
    if argument.name == "limit":
        bounds["max"] = MOST_LISTED
        described = type(described)("At most this many.")
    type_ = _type(argument.type)
    if is_argument:
        info: Any = typer.Argument(metavar=argument.name.upper(), help=described.description, **bounds)
    else:
        info = typer.Option(f"--{argument.name.replace('_', '-')}", help=described.description, **bounds)
    default: Any = inspect.Parameter.empty if argument.default is REQUIRED else argument.default
    if get_origin(type_) is list and default == ():
        type_, default = type_ | None, None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(argument.name, kind, default=default, annotation=Annotated[type_, info])


def _is_number(type_: Any) -> bool:
    kinds = {each for each in (get_args(type_) or (type_,)) if each is not NoneType}
    return kinds <= {int, float}


def _type(hint: Any) -> Any:
    """The type as Typer reads it."""
    origin: Any = get_origin(hint)
    if origin is Annotated:
        return _type(get_args(hint)[0])
    if origin in (Union, UnionType):
        return functools.reduce(lambda one, other: one | other, [_type(each) for each in get_args(hint)])
    if origin in (list, tuple, Sequence):
        return list[_type(get_args(hint)[0])]
    return hint


def _show(session: Session, spec: "Command", answer: object) -> None:
    match answer:
        case Done():
            session.show_line(answer, answer.done)
        case Page():
            session.show_list(cast("Page[Any]", answer).lines, spec.columns)
        case list() | tuple():
            session.show_list(cast("Sequence[Any]", answer), spec.columns)
        case _ if spec.line is not None:
            view = cast("Row", answer)
            session.show_line(view, spec.line.format_map(_harmless(view)))
        case _:
            session.show_one(cast("Row", answer))


def _harmless(view: Row) -> dict[str, object]:
    """The fields of a view, of which text cannot move the cursor."""
    fields = view if isinstance(view, Mapping) else asdict(view)
    return {name: cell(value) if isinstance(value, str) else value for name, value in fields.items()}

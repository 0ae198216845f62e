"""Commands made from the table of operations: arguments, options, help and output are read from the declaration."""

import functools
import importlib
import inspect
import string
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from uuid import UUID

import typer

from postroom.core.short_ids import short_id
from postroom.core.views import Done, Page, is_view
from postroom.interfaces.cli.options import Reason
from postroom.interfaces.cli.output import cell, harmless_lines, named
from postroom.interfaces.cli.parameters import parameter_of, read_typed
from postroom.interfaces.cli.session import Commands, Session, command_group, one_command

if TYPE_CHECKING:
    from postroom.operations.operation import Command, Operation

Show: TypeAlias = Callable[[Session, Any], None]


def add_commands(group: Commands, name: str, *modules: str, **shows: Show) -> None:
    """Add to a group the commands that these modules of operations declare for it.

    `shows` are functions that print the answers of some commands, whose output is more than a table or a line.
    """
    from postroom.operations.nouns import NOUNS

    for each in modules:
        importlib.import_module(f"postroom.operations.{each}")
    for operation in [each for noun in NOUNS for each in noun.operations]:
        spec = operation.command
        if spec is not None and (spec.names[:-1] or spec.names) == tuple(name.split()):
            show = shows.get(spec.names[-1]) or functools.partial(_show, spec)
            group.command(spec.names[-1])(_command(operation, spec, show))


def group_of(summary: str, name: str, *modules: str, **shows: Show) -> Commands:
    """A group of which all commands come from the table."""
    group = command_group(summary)
    add_commands(group, name, *modules, **shows)
    return group


def command_of(name: str, module: str, **shows: Show) -> Commands:
    """A command that is no group, from the table."""
    command = one_command()
    add_commands(command, name, module, **shows)
    return command


def _command(operation: "Operation", spec: "Command", show: Show) -> Any:
    wanted = [each for each in operation.arguments if each.page is None and each.typed.is_typed]

    def run(session: Session, **given: Any) -> None:
        now = session.clock()
        typed = {name: value for name, value in given.items() if value is not None}
        read = {each.name: read_typed(each, typed[each.name], now) for each in wanted if each.name in typed}
        is_timed = any(isinstance(each, datetime) for each in read.values())
        show(session, (session.at(now) if is_timed else session).run(operation, {**typed, **read}))

    at = {name: place for place, name in enumerate(spec.arguments)}
    wanted.sort(key=lambda each: at.get(each.name, len(at)))
    session = inspect.Parameter("session", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Session)
    parameters = [session, *(parameter_of(each, is_argument=each.name in at) for each in wanted)]
    if operation.signs:
        parameters.append(inspect.Parameter("reason", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Reason))
    run.__dict__["__signature__"] = inspect.Signature([each.replace(kind=session.kind) for each in parameters])
    run.__doc__ = inspect.getdoc(operation.run)
    run.__name__ = operation.id
    return run


def _show(spec: "Command", session: Session, answer: Any) -> None:
    row = spec.row or named if session.as_json else spec.cells or spec.row or _itself
    if isinstance(answer, Done):
        session.show_line(answer, answer.done)
    elif isinstance(answer, Page):
        session.show_list(map(row, cast("Page[Any]", answer).lines), spec.columns)
    elif is_view(cast("object", type(answer))):
        _show_one(session, spec, answer, named(row(answer)))
    else:
        session.show_list(map(row, answer), spec.columns)
    for note in () if spec.notes is None else spec.notes(answer):
        typer.echo(cell(note), err=True)


def _show_one(session: Session, spec: "Command", answer: Any, row: Mapping[str, object]) -> None:
    if spec.line is not None:
        session.show_line(row, _line(spec.line, answer, row))
    elif session.as_json or not spec.columns:
        session.show_one(row)
    else:
        session.show_one({name: row[name] for name in spec.columns})
    if session.as_json:
        return
    if spec.below is not None:
        typer.echo(f"\n{harmless_lines(spec.below(answer))}")
    for name, columns in (spec.tables or {}).items():
        if rows := getattr(answer, name):
            typer.echo()
            session.show_list(rows, columns)


def _itself(answer: Any) -> Any:
    """Columns name properties of a view too."""
    return answer


def _line(line: "str | Callable[[Any], str]", answer: object, row: Mapping[str, object]) -> str:
    if isinstance(line, str):
        return _Harmless().vformat(line, (), row)
    return harmless_lines(line(answer))


class _Harmless(string.Formatter):
    """A format in which text from outside cannot move the cursor."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        value, key = super().get_field(field_name, args, kwargs)
        if isinstance(value, UUID):
            return short_id(value), key
        return cell(value) if isinstance(value, str) else value, key

"""How commands print results: plain tables for people and pipes, JSON for programs. Always on stdout."""

import json
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast
from uuid import UUID

import typer

from postroom.core.short_ids import digits_to_tell_apart, short_id

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WIDEST_TEXT = 110
NARROWEST_TEXT = 36

Row: TypeAlias = "Mapping[str, object] | DataclassInstance | NamedTuple"


def show_list(rows: Iterable[Row], columns: Sequence[str], *, as_json: bool) -> None:
    """Print all of each row, one object per line, or a table of the named columns."""
    if as_json:
        for row in rows:
            show_json(row)
        return
    shown = list(rows)
    lines = [[column.upper().replace("_", " ") for column in columns]]
    cells = [_column([_value(row, column) for row in shown]) for column in columns]
    lines += [list(line) for line in zip(*cells, strict=True)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        typer.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _column(values: Sequence[object]) -> list[str]:
    """The cells of a column. Ids are shown by as many of their last digits as tell them apart."""
    digits = digits_to_tell_apart([each for each in values if isinstance(each, UUID)])
    return [short_id(each, digits) if isinstance(each, UUID) else cell(each) for each in values]


def show_one(row: Row, *, as_json: bool = False, err: bool = False) -> None:
    """Print one line per field; on stderr if `err`."""
    if as_json:
        show_json(row)
        return
    fields = named(row)
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        typer.echo(f"{name.replace('_', ' '):<{width}}  {cell(value)}".rstrip(), err=err)


def show_result(name: object, result: str, *, as_json: bool, key: str = "id") -> None:
    """Show the result for one thing, named by its id or by `key`."""
    show_line({key: name, "result": result}, f"{cell(name)}  {result}", as_json=as_json)


def show_line(row: Row, line: str, *, as_json: bool) -> None:
    """Print the row for programs, or a line that says the same to people."""
    show_json(row) if as_json else typer.echo(line)


def show_json(row: Row) -> None:
    typer.echo(json.dumps(named(row), default=_as_text, ensure_ascii=False, allow_nan=False))


def named(row: Row) -> Mapping[str, object]:
    """The fields of a row by their names."""
    if isinstance(row, Mapping):
        return row
    return row._asdict() if isinstance(row, tuple) else asdict(row)


def _value(row: Row, column: str) -> object:
    return row[column] if isinstance(row, Mapping) else getattr(row, column)


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def cell(value: object) -> str:
    """Return a value as one word or line; text from outside cannot move the cursor or start a new row."""
    from postroom.telemetry.logs import one_line

    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        case timedelta():
            return f"{value.total_seconds():.1f} s"
        case list() | tuple():
            return ", ".join(cell(part) for part in cast("Sequence[object]", value)) or "-"
        case _:
            return one_line(str(value))


def harmless_lines(text: str) -> str:
    """Return a text of several lines, none of which can move the cursor."""
    return "\n".join(cell(each) if each else "" for each in text.splitlines())


def clipped(text: str, longest: int) -> str:
    """A text on one line, cut to fit a column."""
    shown = cell(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def show_wrapped(head: str, text: str) -> None:
    """Print a text after `head`, wrapped to the terminal below itself."""
    width = max(NARROWEST_TEXT, min(shutil.get_terminal_size().columns, WIDEST_TEXT))
    lines = textwrap.wrap(
        text, max(width - len(head), NARROWEST_TEXT // 2), break_long_words=False, break_on_hyphens=False
    ) or [""]
    for number, line in enumerate(lines):
        typer.echo(f"{head if number == 0 else ' ' * len(head)}{line}")

"""How commands show things: plain tables for people and pipes, JSON for programs. Always on stdout."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast

import typer

Row = Mapping[str, object]


def show_list(rows: Iterable[Row], columns: Sequence[str], *, as_json: bool) -> None:
    """All of each row, one object per line, or a table of the named columns."""
    if as_json:
        for row in rows:
            show_json(row)
        return
    lines = [[column.upper().replace("_", " ") for column in columns]]
    lines += [[cell(row[column]) for column in columns] for row in rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        typer.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def show_one(row: Row) -> None:
    """One line for each of its names."""
    width = max(len(name) for name in row)
    for name, value in row.items():
        typer.echo(f"{name.replace('_', ' '):<{width}}  {cell(value)}".rstrip())


def show_json(row: Row) -> None:
    typer.echo(json.dumps(row, default=_as_text, ensure_ascii=False, allow_nan=False))


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def cell(value: object) -> str:
    """A value as one word or line; what came from outside cannot move the cursor or start a new row."""
    from postroom.telemetry.logs import one_line

    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        case list() | tuple():
            return ", ".join(cell(part) for part in cast("Sequence[object]", value)) or "-"
        case _:
            return one_line(str(value))

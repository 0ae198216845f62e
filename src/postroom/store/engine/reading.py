"""Reads rows into classes by column name, the same for both databases.

A field takes the column of its name, decoded by its type: ids, times, booleans, enums, and mappings and collections
from JSON. The name of a JSON column may end in `_json`. A field whose type is itself a class with fields is read from
the same row; if it is optional, it is None when its first column is. A field without a column needs a value given by
name, or a default.

    @dataclass(frozen=True, slots=True)
    class Pause:
        scope: str
        since: datetime

    pauses = read_rows(Pause, (yield sql("select_pauses")))
"""

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache
from operator import itemgetter
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from postroom.store.engine.codecs import as_date, as_time, as_uuid, from_json
from postroom.store.engine.database import Rows

T = TypeVar("T")

Row = Sequence[Any]
Decode = Callable[[Any], Any]
_UNIONS = (Union, types.UnionType)
_DECODERS: dict[Any, Decode] = {UUID: as_uuid, datetime: as_time, date: as_date, bool: bool}


def read_rows(kind: type[T], rows: Rows, /, **given: Any) -> list[T]:
    """Read every row into an object of this class."""
    if not rows:
        return []
    read = _reader(kind, rows.columns, frozenset(given))
    return [read(row, **given) for row in rows]


def read_first(kind: type[T], rows: Rows, /, **given: Any) -> T | None:
    """Read the first row into an object of this class; None without rows."""
    return _reader(kind, rows.columns, frozenset(given))(rows[0], **given) if rows else None


def read_row(kind: type[T], row: Mapping[str, Any], /, **given: Any) -> T:
    """Read one row of `Rows.by_name` into an object of this class."""
    return _reader(kind, tuple(row), frozenset(given))(tuple(row.values()), **given)


@cache
def _reader(kind: type[Any], columns: tuple[str, ...], given: frozenset[str] = frozenset()) -> Callable[..., Any]:
    """Make a function that turns a row with these columns into an object."""
    hints = get_type_hints(kind)
    takes = {name: _take(hints[name], name, columns) for name in _fields(kind) if name not in given}
    missing = [name for name, take in takes.items() if take is None and not _fields(kind)[name]]
    if missing:
        raise LookupError(f"{kind.__name__}.{missing[0]} has no column among {', '.join(columns)}")
    present = [(name, take) for name, take in takes.items() if take is not None]

    def read(row: Row, **given: Any) -> Any:
        return kind(**{name: take(row) for name, take in present}, **given)

    return read


def _has_fields(hint: Any) -> bool:
    return is_dataclass(hint) or hasattr(hint, "_fields")


def _fields(kind: type[Any]) -> Mapping[str, bool]:
    """The names of the fields, and whether each has a default."""
    if is_dataclass(kind):
        return {each.name: each.default is not MISSING or each.default_factory is not MISSING for each in fields(kind)}
    return {name: name in kind._field_defaults for name in kind._fields}


def _take(hint: Any, name: str, columns: tuple[str, ...]) -> Callable[[Row], Any] | None:
    """Make a function that takes the value of one field from a row; None if the row has no such column."""
    if get_origin(hint) in _UNIONS and _has_fields(part := get_args(hint)[0]):
        read, first = _reader(part, columns), columns.index(next(iter(_fields(part))))
        return lambda row: None if row[first] is None else read(row)
    if _has_fields(hint):
        return _reader(hint, columns)
    column = name if name in columns else f"{name}_json"
    if column not in columns:
        return None
    place, decode = columns.index(column), _decoder(hint)
    return itemgetter(place) if decode is None else lambda row: decode(row[place])


def _decoder(hint: Any) -> Decode | None:
    """Make a function that decodes a value of this type from its form in the database."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if origin in _UNIONS:
        decode = _decoder(next(each for each in arguments if each is not types.NoneType))
        return None if decode is None else lambda value: None if value is None else decode(value)
    if isinstance(origin, type) and issubclass(origin, Enum):
        return origin
    if origin in (frozenset, tuple):
        collect = _collector(hint)
        return lambda text: collect(from_json(text))
    return from_json if origin in (dict, list, Mapping, Sequence) else _DECODERS.get(origin)


def _collector(hint: Any) -> Decode:
    """Make a function that converts a list from JSON to this type, a tuple or a set."""
    collect, inner = cast("Decode", get_origin(hint)), get_args(hint)[0]
    item = _collector(inner) if get_origin(inner) in (frozenset, tuple) else _DECODERS.get(inner)
    return lambda values: collect(values if item is None else map(item, values))

"""Conversion of times, ids and JSON, so that they are the same in Python for both databases.

SQLite keeps times as fixed-width UTC text (`2026-11-15T07:30:00.000000Z`), so that their order as text is their order
in time, and ids as text. PostgreSQL has types for both. Verbs read with `as_time` and `as_uuid`, which take either.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import orjson

from postroom.core.errors import BadInput


def time_text(moment: datetime) -> str:
    """A time in SQLite's format."""
    if moment.tzinfo is None:
        raise BadInput("time", f"{moment.isoformat()} has no time zone", "use an aware datetime, such as UTC")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def as_time(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def as_date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def as_optional_time(value: Any) -> datetime | None:
    return None if value is None else as_time(value)


def as_uuid(value: Any) -> UUID:
    return value if isinstance(value, UUID) else UUID(value)


def json_text(value: object) -> str:
    """JSON in the format that both databases store: compact text."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "use objects, lists, text, numbers, true, false and null"
        raise BadInput("payload", f"is not JSON ({error})", remedy) from None


def rows_text(rows: Sequence[tuple[object, ...]]) -> str:
    """Many rows as one parameter: a JSON array of arrays, which both databases parse faster than many values."""
    return orjson.dumps(rows, default=sqlite_value, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()


def array_text(values: Sequence[object]) -> str:
    """A column as the text of a PostgreSQL array, which writes texts and numbers as JSON does. The server reads it
    faster than asyncpg writes it value by value."""
    return f"{{{orjson.dumps(values, default=sqlite_value).decode()[1:-1]}}}"


def from_json(text: str) -> Any:
    return orjson.loads(text)


def sqlite_value(value: object) -> str | int:
    """Convert a value that SQLite cannot bind by itself."""
    match value:
        case datetime():
            return time_text(value)
        case UUID():
            return str(value)
        case list() | tuple():
            return orjson.dumps(value, default=sqlite_value, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()
        case _:
            raise TypeError(f"a {type(value).__name__} cannot be stored")

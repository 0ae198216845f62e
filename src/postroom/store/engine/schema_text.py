"""Migrations of both databases in one text.

A migration is SQL of PostgreSQL. SQLite reads it with its own words:

| PostgreSQL | SQLite |
|---|---|
| a column of `uuid`, `text`, `timestamptz`, `json`, `date` | `TEXT` |
| a column of `boolean`, `smallint`, `integer`, `bigint` | `INTEGER` |
| a column of `double precision`, of `bytea` | `REAL`, `BLOB` |
| `DEFAULT false`, `DEFAULT true` | `DEFAULT 0`, `DEFAULT 1` |
| `GENERATED … AS IDENTITY PRIMARY KEY` | `PRIMARY KEY AUTOINCREMENT` |
| `COLLATE "C"` | nothing: SQLite compares bytes anyway |
| `);` at the end of a table | `) STRICT;` |
| `{ WITH (fillfactor = 70)| STRICT, WITHOUT ROWID}` | what stands after the bar |

Lines after `-- only postgres:` or `-- only sqlite:` are for that database alone, as they stand, until `-- both:`.
"""

import re

from postroom.store.engine.database import Dialect

_TYPES = {
    "TEXT": ("uuid", "text", "timestamptz", "json", "jsonb", "date"),
    "INTEGER": ("boolean", "smallint", "integer", "bigint"),
    "REAL": ("double precision",),
    "BLOB": ("bytea",),
}
_IN_SQLITE = (
    *((re.compile(rf"(?mi)^( {{4}}\w+) (?:{'|'.join(of)})(?![\w(])"), rf"\1 {type}") for type, of in _TYPES.items()),
    (re.compile(r"DEFAULT false\b"), "DEFAULT 0"),
    (re.compile(r"DEFAULT true\b"), "DEFAULT 1"),
    (re.compile(r"GENERATED (?:ALWAYS|BY DEFAULT) AS IDENTITY PRIMARY KEY"), "PRIMARY KEY AUTOINCREMENT"),
    (re.compile(r' COLLATE "C"'), ""),
    (re.compile(r"(?m)^\);$"), ") STRICT;"),
)
_MARK = re.compile(r"(?m)^-- (only postgres|only sqlite|both):\n")
_EITHER = re.compile(r"\{([^{}|]*)\|([^{}|]*)\}")


def schema_text(text: str, dialect: Dialect) -> str:
    """The text of a migration as one database reads it."""
    first, *rest = _MARK.split(text)
    parts = [("both", first), *zip(rest[::2], rest[1::2], strict=True)]
    return "".join(
        _spell(part, dialect) if of == "both" else part for of, part in parts if of in ("both", f"only {dialect}")
    )


def _spell(text: str, dialect: Dialect) -> str:
    if dialect == "postgres":
        return _EITHER.sub(r"\1", text)
    pieces = _EITHER.split(text)  # the text between, for PostgreSQL, for SQLite, and so on
    return "".join(_in_sqlite(piece) if at % 3 == 0 else piece for at, piece in enumerate(pieces) if at % 3 != 1)


def _in_sqlite(text: str) -> str:
    for spelling, other in _IN_SQLITE:
        text = spelling.sub(other, text)
    return text

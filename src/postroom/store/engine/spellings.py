"""Statements of both databases that differ by spelling only.

A statement in `queries/common` is SQL that both databases read. Where PostgreSQL needs a spelling of its own, that
stands in braces, and SQLite gets the other one:

| in braces | SQLite | for |
|---|---|---|
| `{= ANY(:ids::uuid[])}` | `IN (SELECT value FROM json_each(:ids))` | a list of plain values |
| `{unnest(:ids::text[])} AS value` | `json_each(:ids) AS value` | the same list as rows, whose column is `value` |
| `{jsonb_array_elements(:rows::jsonb)}` | `json_each(:rows)` | many rows: `value ->> 0` is a row's first field |
| `{::uuid}` | nothing: it has no such types | the type of a parameter or of a field |
| `{FOR SHARE OF m}`, `{ORDER BY id FOR UPDATE}` | nothing: who writes is alone | a lock on rows, in an order or not |
| `{FOR UPDATE SKIP LOCKED}` | nothing | a lock on the rows that no one else has locked |
| `{FROM pg_advisory_xact_lock(73)}` | nothing | a lock on a number |
| `{LOCK TABLE t IN SHARE MODE;}` | nothing | a lock on a table |
| `{job_queue}`, `{job_bodies}`, `{job_ends}` | `job_rows` | jobs: several tables on PostgreSQL, one on SQLite |

These are all there are. A pair of statements that differs in another way is written twice, in `queries/sqlite` and in
`queries/postgres`; so is one that differs in what it does, or in how it is planned.
"""

import re

from postroom.store.engine.database import Dialect

_IN_BRACES = re.compile(r"\{([^{}]+)\}")
_LOCKED = r"FOR (?:UPDATE|NO KEY UPDATE|SHARE|KEY SHARE)(?: OF \w+)?"
_IN_SQLITE = (
    (re.compile(r"= ANY\((:\w+)::\w+\[\]\)"), r"IN (SELECT value FROM json_each(\1))"),
    (re.compile(r"jsonb_array_elements\((:\w+)::jsonb\)"), r"json_each(\1)"),
    (re.compile(r"unnest\((:\w+)::\w+\[\]\)"), r"json_each(\1)"),
    (re.compile(r"::\w+"), ""),
    (re.compile(rf"(?:ORDER BY [\w., ]+ )?{_LOCKED}(?: {_LOCKED})?(?: SKIP LOCKED)?"), ""),
    (re.compile(r"FROM pg_advisory_xact_lock(?:_shared)?\(.+\)|LOCK TABLE \w+ IN [A-Z ]+ MODE;"), ""),
    (re.compile(r"job_queue|job_bodies|job_ends"), "job_rows"),
)


def spell(name: str, text: str, dialect: Dialect) -> str:
    """The text of a statement as one database reads it. Raises on braces that hold anything else, which is a bug."""

    def put(used: re.Match[str]) -> str:
        for spelling, other in _IN_SQLITE:
            if found := spelling.fullmatch(used[1]):
                return used[1] if dialect == "postgres" else found.expand(other)
        raise ValueError(f"the statement {name} has {used[0]}, which is no part before it and no spelling")

    return _IN_BRACES.sub(put, text)

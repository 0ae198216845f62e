"""The 58 migrations that led to the schema before it was written down as one (docs/decisions/0124-one-schema.md).

Databases and backups that have exactly these have today's schema, and are taken over. Those that stopped on the way are
refused: the commit named here brings them to the end of it.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from postroom.store.engine.database import Dialect

LAST_COMMIT = "3c54c31f"
COMMAND = f"git checkout {LAST_COMMIT} && make setup && .venv/bin/postroom migrate"


class _Earlier(NamedTuple):
    """The checksum of the first migration, and a digest of the checksums of all 58."""

    first: str
    all: str


_EARLIER: dict[Dialect, _Earlier] = {
    "sqlite": _Earlier(
        "fe3ffc0ef2b025f6481be1969ddf0eca5db9b33a1ad1a787ba3a0d4a0a8bc7be",
        "ec42e9610631d7330d1ea7c1b8c161e444db18356153fac049a7af8b09ce956c",
    ),
    "postgres": _Earlier(
        "a3e52091c1dcd9c3669905ac7c34da680a7998211b2a2afddc7383706866f19f",
        "f0cac0d6d8755fe0c5b15eeca06b7a06d19f5e43f048ab4de006cb4b6e4f4ccd",
    ),
}
# Forgets the 58, and evens out what they left behind: a name, and a function that nothing calls.
TAKE_OVER: dict[Dialect, str] = {
    "sqlite": "DELETE FROM schema_migrations",
    "postgres": """
        DELETE FROM schema_migrations;
        ALTER TABLE inbox_keys RENAME CONSTRAINT inbox_keys_pkey1 TO inbox_keys_pkey;
        DROP FUNCTION words_of_message(text, text, text)""",
}


def are_earlier(checksums: Mapping[int, str], dialect: Dialect) -> bool:
    """Whether these migrations, by number, are from before the schema."""
    return checksums.get(1) == _EARLIER[dialect].first


def are_complete(checksums: Mapping[int, str], dialect: Dialect) -> bool:
    """Whether they are all 58, unaltered, and no other: then the schema is today's."""
    lines = "\n".join(f"{version} {checksum}" for version, checksum in sorted(checksums.items()))
    return hashlib.sha256(lines.encode()).hexdigest() == _EARLIER[dialect].all

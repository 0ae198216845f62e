"""Migrations as each database reads them: one text for both, and none that has landed ever changes."""

import pytest

from postroom.store.engine.database import Dialect
from postroom.store.engine.migrate import migrations
from postroom.store.engine.schema_text import schema_text

LANDED: dict[Dialect, tuple[str, ...]] = {
    "sqlite": (
        "e1a9907ddecd60f98a636f28e21ecb13bf8cf778e79ea1b1f5922fbee395fc55",
        "d3901a58be90750ecd48924565d08aebd9d601f6babe51a85cf1bc6e8e0d2ce3",
        "7540c1e4e28160dddd826a6a7b101abe9dceeff2cf3353b4893cf340e85503e7",
        "2a1c407e7a7af8d88c01f617c19361afeda06ec8cf5d327e9cc99f08361428be",
        "81c99d3142b8fe4d6580b56e6b59972d0d87391758b2e3c217f321eca3b5511e",
        "3a3ad2b3ba38b60ae335d929da24cf1b7311d1ce21b665cbdd07306e059b42b6",
        "3dba28261f772b1ad0e0923f24907c45369f09040769fb96cce868eb3858e252",
    ),
    "postgres": (
        "60ce3d34b08e09b87676b0cab540a96ea18ecb2eecf34f0a1d1f923e23c98912",
        "169ccf432d379b83c4ba7a4f4f04755e8072c2f84d01b0ef1aed007b388a6923",
        "3df2b8739e5d446e29b1ec02e61c0aee3b36d8f005cf1468d8921cbf47f4d27b",
        "f57d37372ad387454d049bd8c14d256d69b25748fd03953035eb7df152f2978c",
        "cc42d1d38e6b95f0d125d4821354dd6ab6f4b591f6923c64bd27f762d1e42c5d",
        "80c94199614e6552aa473272b1ce4ecdb100d38d95dd294430c0a27ed93d5ddb",
        "afb18c3f5135e319050284a3af1d806fcd406fb838bdb8502d7f95455f463297",
    ),
}
"""The checksums in databases that have these migrations. A new migration adds its own here."""

TABLE = """\
CREATE TABLE things (
    id uuid PRIMARY KEY{ DEFAULT gen_random_uuid()|},
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    is_small boolean NOT NULL DEFAULT false,
    kept_until timestamptz CHECK (length(name) > 1)
);
-- only postgres:
CREATE INDEX things_kept ON things USING brin (kept_until);
-- only sqlite:
CREATE INDEX things_kept ON things (kept_until);
-- both:
CREATE INDEX things_name ON things (name);
"""


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_no_migration_that_has_landed_changes(dialect: Dialect) -> None:
    assert tuple(each.checksum for each in migrations(dialect)) == LANDED[dialect]


def test_sqlite_reads_a_table_with_its_own_words() -> None:
    assert (
        schema_text(TABLE, "sqlite")
        == """\
CREATE TABLE things (
    id TEXT PRIMARY KEY,
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    is_small INTEGER NOT NULL DEFAULT 0,
    kept_until TEXT CHECK (length(name) > 1)
) STRICT;
CREATE INDEX things_kept ON things (kept_until);
CREATE INDEX things_name ON things (name);
"""
    )


def test_postgres_reads_a_table_as_it_stands() -> None:
    assert (
        schema_text(TABLE, "postgres")
        == """\
CREATE TABLE things (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    is_small boolean NOT NULL DEFAULT false,
    kept_until timestamptz CHECK (length(name) > 1)
);
CREATE INDEX things_kept ON things USING brin (kept_until);
CREATE INDEX things_name ON things (name);
"""
    )

"""The settings that SQLite's durability depends on are really set."""

from pathlib import Path

import pytest

from postroom.store.engine.sqlite_connection import connect


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("journal_mode", "wal"),
        ("synchronous", 2),
        ("foreign_keys", 1),
        ("trusted_schema", 0),
        ("cache_size", -65536),
        ("wal_autocheckpoint", 4096),
    ],
)
def test_a_writing_connection_has_all_its_settings(tmp_path: Path, setting: str, value: object) -> None:
    connection = connect(tmp_path / "any.sqlite3")
    assert connection.execute(f"PRAGMA {setting}").fetchall() == [(value,)]
    connection.close()


def test_a_reading_connection_cannot_write(tmp_path: Path) -> None:
    connect(tmp_path / "any.sqlite3").close()
    connection = connect(tmp_path / "any.sqlite3", read_only=True)
    assert connection.execute("PRAGMA query_only").fetchall() == [(1,)]
    connection.close()

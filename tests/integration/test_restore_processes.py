"""Backups and restores beside real processes."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from integration.test_processes import announced, postroom, running
from postroom.backup.restore import STAGE, Place, restore_backup
from postroom.store.audit import Signature
from postroom.store.ids import new_id

WRITES = ("token", "create", "--role", "admin")


@pytest.fixture
def prepared(tmp_path: Path, database_url: str | None) -> Path:
    """A folder with a database in `data`, and a backup of it."""
    for words in (("migrate",), WRITES, ("backup", "one.postroom-backup")):
        done = postroom(tmp_path, *words, database_url=database_url)
        assert done.returncode == 0, done.stderr
    return tmp_path


async def test_nothing_starts_or_writes_while_a_restore_is_under_way(prepared: Path, database_url: str | None) -> None:
    """What was acknowledged meanwhile would be set aside with the database that is replaced."""
    refused: list[subprocess.CompletedProcess[str]] = []

    def meanwhile(_what: str, _done: int, _total: int) -> None:
        if not refused and (prepared / "data" / STAGE).exists():
            for words in (("serve", "--port", "0", "--json"), ("worker",), WRITES):
                refused.append(postroom(prepared, *words, database_url=database_url))

    place = Place(prepared / "data", database_url, replace=True)
    signed = Signature(new_id(), "test", "admin")
    await restore_backup(prepared / "one.postroom-backup", place, signed, datetime.now(UTC), meanwhile)
    assert len(refused) == 3
    for each in refused:
        assert each.returncode != 0
        assert "restore" in each.stderr
        assert "under way" in each.stderr
        assert "Traceback" not in each.stderr
    assert postroom(prepared, *WRITES, database_url=database_url).returncode == 0


def test_a_restore_is_refused_while_a_process_runs(prepared: Path, database_url: str | None) -> None:
    with running(prepared, "serve", "--port", "0", "--json", database_url=database_url) as process:
        announced(process)
        refused = postroom(prepared, "restore", "--replace", "one.postroom-backup", database_url=database_url)
    assert refused.returncode != 0
    assert "stop every" in refused.stderr
    assert "Traceback" not in refused.stderr

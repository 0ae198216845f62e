"""Backups and restores beside real processes, and on a full disk."""

import json
import resource
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest

from postroom.backup import postgres_copy
from postroom.backup.make import Source, make_backup
from postroom.backup.restore import STAGE, RestoreTarget, restore_backup
from postroom.core.errors import BackupError
from postroom.core.roles import Role
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import Signature
from postroom.store.people.tokens import create_token, mint
from postroom.system.private_files import DATABASE
from support.command import POSTROOM, announced, environment, postroom, running
from support.patience import PATIENCE_S
from support.sqlite import copy_sqlite

WRITES = ("token", "create", "--role", "admin")


@pytest.fixture
async def prepared(tmp_path: Path, database_url: str | None, migrated_sqlite: Path) -> Path:
    """A folder with a database in `data`, and a backup of it."""
    data, signed = tmp_path / "data", Signature(new_id(), "test", "admin")
    if database_url is None:
        copy_sqlite(migrated_sqlite, data)
    database = await open_database(data, database_url)
    await database.run(create_token(mint(Role.ADMIN).token, signed, datetime.now(UTC)))
    await database.close()
    await make_backup(Source(data, database_url, []), tmp_path / "one.postroom-backup")
    return tmp_path


async def test_nothing_starts_or_writes_while_a_restore_is_under_way(prepared: Path, database_url: str | None) -> None:
    """What was acknowledged meanwhile would be set aside with the database that is replaced."""
    refused: list[subprocess.CompletedProcess[str]] = []

    def meanwhile(_what: str, _done: int, _total: int) -> None:
        if not refused and (prepared / "data" / STAGE).exists():
            for words in (("serve", "--port", "0", "--json"), ("worker",), WRITES):
                refused.append(postroom(prepared, *words, database_url=database_url))

    place = RestoreTarget(prepared / "data", database_url, replace=True)
    signed = Signature(new_id(), "test", "admin")
    await restore_backup(prepared / "one.postroom-backup", place, signed, datetime.now(UTC), meanwhile)
    assert len(refused) == 3
    for each in refused:
        assert each.returncode != 0
        assert "restore" in each.stderr
        assert "being restored" in each.stderr
        assert "Traceback" not in each.stderr
    assert postroom(prepared, *WRITES, database_url=database_url).returncode == 0


def test_a_restore_is_refused_while_a_process_runs(prepared: Path, database_url: str | None) -> None:
    with running(prepared, "serve", "--port", "0", "--json", database_url=database_url) as process:
        announced(process)
        refused = postroom(prepared, "restore", "--replace", "one.postroom-backup", database_url=database_url)
    assert refused.returncode != 0
    assert "stop every" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_restore_pauses_keeps_what_was_forbidden_and_says_what_to_look_at(
    prepared: Path, database_url: str | None
) -> None:
    forbidding = (("pause", "--reason", "stop it all"), ("protect", "add", "sender", "ann@example.org"))
    for words in (("backup", "own.postroom-backup"), *forbidding):
        done = postroom(prepared, *words, database_url=database_url)
        assert done.returncode == 0, done.stderr
    done = postroom(prepared, "restore", "--replace", "own.postroom-backup", database_url=database_url)
    assert done.returncode == 0, done.stderr
    assert "pauses (1), protected senders and labels (1)" in done.stdout
    assert "run `postroom resume`" in done.stdout
    assert "ann@example.org" in postroom(prepared, "protect", "list", database_url=database_url).stdout
    resumed = postroom(prepared, "resume", "--yes", "--json", database_url=database_url)
    assert json.loads(resumed.stdout)["was_paused"]


def limited(folder: Path, largest: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With a disk that takes no file beyond this size."""
    return subprocess.run(
        [*POSTROOM, *arguments],
        cwd=folder,
        env=environment(folder, None),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest)),
    )


def everything_in(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if not path.name.endswith((".lock", "-wal", "-shm")):
            yield str(path.relative_to(folder))


@pytest.mark.parametrize("database_url", [None])
@pytest.mark.parametrize("too_little", ["for the copy", "for the file"])
def test_a_backup_for_which_there_is_no_space_says_so_and_leaves_nothing(prepared: Path, too_little: str) -> None:
    before = list(everything_in(prepared))
    size = (prepared / "data" / DATABASE).stat().st_size
    largest = size // 2 if too_little == "for the copy" else size + 1024
    refused = limited(prepared, largest, "backup", "two.postroom-backup")
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    assert "two.postroom-backup could not be written" in refused.stderr
    assert "MiB" in refused.stderr
    assert list(everything_in(prepared)) == before


@pytest.mark.parametrize("database_url", [None])
def test_a_restore_for_which_there_is_no_space_says_so_and_changes_nothing(prepared: Path) -> None:
    before = list(everything_in(prepared))
    size = (prepared / "data" / DATABASE).stat().st_size
    refused = limited(prepared, size // 2, "restore", "--replace", "one.postroom-backup")
    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    assert "one.postroom-backup could not be written" in refused.stderr
    assert list(everything_in(prepared)) == before
    assert postroom(prepared, "token", "list").returncode == 0


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_a_postgres_that_cannot_take_the_rows_has_what_it_had(
    prepared: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def full(*_arguments: object) -> None:
        raise asyncpg.DiskFullError("could not extend file")

    monkeypatch.setattr(postgres_copy, "copy_in", full)
    signed = Signature(new_id(), "test", "admin")
    with pytest.raises(BackupError, match="could not extend file"):
        await restore_backup(
            prepared / "one.postroom-backup",
            RestoreTarget(prepared / "data", database_url, replace=True),
            signed,
            datetime.now(UTC),
        )
    listed = postroom(prepared, "token", "list", "--json", database_url=database_url)
    assert len(listed.stdout.splitlines()) == 1
    async with postgres_copy.connected(database_url) as connection:
        assert await connection.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname LIKE '%replaced%'") == 0

"""A data folder that cannot be used gets one sentence that says what to do, and nothing is left half made."""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from postroom.core.errors import DatabaseFull, DatabaseReadOnly, StoreError
from postroom.store.engine.opening import FILE, connect_database, open_database
from postroom.store.engine.serve_lock import serve_lock
from postroom.store.engine.sqlite_connection import translated
from postroom.system.restore_lock import exclusive_folder, sharing_folder
from support.closed_home import open_home
from support.shell import Shell
from support.warm_start import run_command

COMMANDS = ("serve", "demo", "mail list", "doctor", "backup out.backup", "token create --role admin", "worker")
# Commands that only look are content with a folder that is not there yet.
LOOKING = ("mail list", "backup out.backup")


def refused(command: str, data_dir: Path, *, code: int = 1) -> str:
    """The only line that an ordinary user gets, or what the doctor prints."""
    words = [*command.split(), "--data-dir", str(data_dir)]
    environment = open_home(data_dir.parent) | {"POSTROOM_WEB_PORT": "0"}
    ended = run_command(words, Path("/"), environment, powerless=True)
    assert ended.returncode == code, (command, ended.stdout, ended.stderr)
    assert "Traceback" not in ended.stderr
    if command == "doctor" and ended.stdout:
        return ended.stdout
    assert ended.stderr.count("\n") == 1, (command, ended.stderr)
    assert "--data-dir" in ended.stderr
    return ended.stderr


def test_a_home_that_may_not_be_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o555)
    for command in COMMANDS:
        told = refused(command, home / "data")
        if command in LOOKING:
            assert "there is no da" in told
        else:
            assert f"the data folder {home / 'data'}" in told
            assert f"you may not write to {home}" in told
            assert f"run `chmod u+rwx {home}`" in told
    assert list(home.iterdir()) == []


def test_a_command_to_paste_has_the_folder_in_quotes_and_its_name_does_nothing_to_the_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "my \x1b[31mmail"
    folder.mkdir(mode=0o755)
    told = refused("doctor", folder)
    assert f"run `chmod go= '{tmp_path}/my \\x1b[31mmail'`" in told
    assert "\x1b" not in told


def test_a_folder_that_others_use_for_other_things_is_not_closed_to_them(tmp_path: Path, shell: Shell) -> None:
    """As `/tmp` and `/` are to root, who may do everything."""
    folder = tmp_path / "shared"
    (folder / "theirs").mkdir(parents=True)
    folder.chmod(0o755)
    for command in ("migrate", "token create --role admin", "doctor"):
        assert shell(*command.split(), "--data-dir", str(folder)) == 1
        said = shell.out if command == "doctor" else shell.err
        assert f"{folder} holds other folders and is open to other users" in said
        assert f"such as {folder}/postroom" in said
    for lock in (exclusive_folder, serve_lock):
        with pytest.raises(DatabaseReadOnly, match="open to other users"), lock(folder):
            pass
    assert folder.stat().st_mode & 0o777 == 0o755
    assert [each.name for each in folder.iterdir()] == ["theirs"]
    (folder / "theirs").rmdir()
    assert shell("migrate", "--data-dir", str(folder)) == 0


async def test_a_folder_that_may_not_be_entered(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await (await open_database(folder)).close()
    before = sorted(each.name for each in folder.iterdir())
    folder.chmod(0)
    for command in COMMANDS:
        assert f"you may not write to the data folder {folder}; run `chmod u+rwx {folder}`" in refused(
            command, folder
        ), command
    folder.chmod(0o700)
    assert sorted(each.name for each in folder.iterdir()) == before


def test_a_home_that_may_not_be_entered_is_no_matter_to_who_names_a_folder(tmp_path: Path) -> None:
    """Services and containers often have such a home."""
    home = tmp_path / "home"
    (home / ".config/postroom").mkdir(parents=True)
    environment = open_home(home)
    home.chmod(0)
    for words in (["migrate"], ["mail", "list"]):
        named = run_command([*words, "--data-dir", str(tmp_path / "data")], Path("/"), environment, powerless=True)
        assert named.returncode == 0, named.stderr
    refused = run_command(["mail", "list"], Path("/"), environment, powerless=True)
    assert refused.returncode == 1
    assert f"you may not write to {home}" in refused.stderr
    home.chmod(0o700)
    (home / ".config/postroom").chmod(0)
    refused = run_command(["mail", "list"], Path("/"), environment, powerless=True)
    assert refused.returncode == 2
    assert f"let this user look into {home}/.config/postroom, or choose a folder" in refused.stderr


def test_a_folder_of_another_user(tmp_path: Path) -> None:
    """Root can make one; anybody else finds one at the root of the disk."""
    folder = tmp_path / "data" if os.geteuid() == 0 else Path("/")
    if os.geteuid() == 0:
        folder.mkdir()
        os.chown(folder, 65432, 65432)
    owner = "the user 65432" if os.geteuid() == 0 else "root"
    for command in ("serve", "worker", "token create --role admin"):
        assert f"{folder} belongs to {owner}; run this command as {owner}, or" in refused(command, folder)


async def test_a_database_that_may_not_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await (await open_database(folder)).close()
    (folder / FILE).chmod(0o400)
    for command in ("serve", "worker", "doctor", "token create --role admin"):
        told = refused(command, folder)
        assert f"{folder / FILE} may not be written" in told
        assert f"run `chmod 600 {folder / FILE}`" in told


@pytest.mark.parametrize("kind", ["a file", "a link to nothing"])
def test_a_path_that_is_no_folder(tmp_path: Path, shell: Shell, kind: str) -> None:
    path = tmp_path / "data"
    path.touch() if kind == "a file" else path.symlink_to(tmp_path / "nowhere")
    for command in ("mail list", "token create --role admin", "migrate"):
        assert shell(*command.split(), "--data-dir", str(path)) == 1
        assert shell.err == (f"postroom: {path} is {kind}; move it away, or choose another folder with --data-dir\n"), (
            command
        )
    assert shell("doctor", "--data-dir", str(path)) == 1
    assert f"{path} is {kind}" in shell.out
    with pytest.raises(DatabaseReadOnly, match=f"is {kind}"), serve_lock(path):
        pass


def test_a_folder_below_a_file(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "home").touch()
    for command in ("mail list", "migrate"):
        assert shell(*command.split(), "--data-dir", str(tmp_path / "home" / "data")) == 1
        assert f"cannot be created: {tmp_path / 'home'} is a file" in shell.err


@pytest.mark.parametrize(
    ("number", "error", "told"),
    [
        (errno.ENOLCK, DatabaseReadOnly, "has no file locks, which Postroom needs; choose a folder on a local disk"),
        (errno.ENOSPC, DatabaseFull, "is full; free some space"),
    ],
)
def test_a_disk_without_locks_or_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception], told: str
) -> None:
    """As network disks answer, and full ones."""

    def refuses(_descriptor: int, _operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuses)
    with pytest.raises(error, match=told):
        connect_database(tmp_path)
    with pytest.raises(error, match=told), serve_lock(tmp_path):
        pass


@pytest.mark.parametrize(
    ("taken", "file", "looking"),
    [
        (serve_lock, "serve.lock", fcntl.LOCK_SH),
        (sharing_folder, "restore.lock", fcntl.LOCK_EX),
        (exclusive_folder, "restore.lock", fcntl.LOCK_EX),
    ],
)
def test_a_process_that_only_looks_at_a_lock_keeps_no_other_from_starting(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    taken: Callable[[Path], AbstractContextManager[object]],
    file: str,
    looking: int,
) -> None:
    with (tmp_path / file).open("w") as looker:
        fcntl.flock(looker, looking)

        def looked(_seconds: float) -> None:
            looker.close()

        monkeypatch.setattr("postroom.system.file_locks.time.sleep", looked)
        with taken(tmp_path):
            assert looker.closed


def test_a_disk_so_full_that_the_log_has_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite calls that an I/O error, as it does others."""
    with pytest.raises(StoreError, match="postroom doctor"), translated(tmp_path / FILE):
        raise apsw.IOError

    def nothing_free(_folder: Path) -> SimpleNamespace:
        return SimpleNamespace(free=0)

    monkeypatch.setattr(shutil, "disk_usage", nothing_free)
    with pytest.raises(DatabaseFull, match="free some space"), translated(tmp_path / FILE):
        raise apsw.IOError

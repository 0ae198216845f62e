"""Commands use the same data from every folder, name the folders, and tests cannot reach the home of their user."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.closed_home import open_home
from support.command import environment
from support.shell import Shell
from support.warm_start import run_command

DATA = ".local/share/postroom"


@pytest.fixture
def at_home(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Commands of a person who names no folder, in a folder that is not their home."""
    for name in ("POSTROOM_DATA_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(shell.folder / "home"))
    here = shell.folder / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return shell


def checks(shell: Shell) -> dict[str, list[dict[str, str]]]:
    shell("doctor", "--json")
    found: dict[str, list[dict[str, str]]] = {}
    for each in shell.json():
        found.setdefault(each["name"], []).append(each)
    return found


def test_a_command_has_the_same_data_in_every_folder(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    made = run_command(["token", "create", "--role", "admin", "--json"], one, open_home(tmp_path))
    listed = run_command(["token", "list", "--json"], two, open_home(tmp_path))
    assert json.loads(listed.stdout)["id"] == json.loads(made.stdout)["id"]
    assert (tmp_path / DATA / "postroom.sqlite3").exists()
    assert [*one.iterdir(), *two.iterdir()] == []


def test_a_test_that_names_no_folder_cannot_keep_anything(tmp_path: Path) -> None:
    """Its process would otherwise write into the home of the person who runs the tests."""
    kept = environment(tmp_path, None)
    del kept["POSTROOM_DATA_DIR"]
    refused = run_command(["token", "create", "--role", "admin"], tmp_path, kept)
    assert refused.returncode == 1
    assert os.environ["XDG_DATA_HOME"] in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_data_of_an_earlier_version_is_used_and_moved_by_the_command_that_is_printed(
    at_home: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert at_home("token", "create", "--role", "admin", "--data-dir", "postroom-data") == 0
    Path("postroom.toml").write_text("[web]\nport = 9000\n")
    assert at_home("token", "list") == 0
    assert at_home.err == "", "only a person at a terminal is told"
    before = at_home.out
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert at_home("token", "list", "--json") == 0
    assert at_home.err == ""
    assert at_home("token", "list") == 0
    assert (at_home.out, at_home.err.count("\n")) == (before, 1)
    subprocess.run(at_home.err.partition("run: ")[2], shell=True, check=True)
    monkeypatch.chdir(at_home.folder)
    assert at_home("token", "list") == 0
    assert (at_home.out, at_home.err) == (before, "")
    assert at_home("settings", "--json") == 0
    origins = {each["setting"]: each["from"] for each in at_home.json()}
    assert origins["web.port"] == str(at_home.folder / "home" / DATA / "postroom.toml")


def test_the_doctor_names_the_folder_the_file_and_what_earlier_versions_and_demos_have_left(at_home: Shell) -> None:
    home = at_home.folder / "home"
    for option in ("--data-dir=postroom-data", f"--data-dir={home / DATA}", f"--data-dir={home / DATA}-demo"):
        assert at_home("migrate", option) == 0
    (home / f"{DATA}-demo" / "this-is-a-demo").touch()
    found = checks(at_home)
    assert str(home / DATA) in found["data folder"][0]["found"]
    own = home / ".config/postroom/postroom.toml"
    assert f"it may be {home / DATA / 'postroom.toml'} or {own}" in found["settings file"][0]["found"]
    others = {each["found"].partition(",")[0]: each for each in found["other data"]}
    assert others[f"{home / DATA}-demo"]["verdict"] == "ok"
    earlier = others[str(Path("postroom-data").absolute())]
    assert earlier["verdict"] == "warn"
    assert f"`--data-dir {Path('postroom-data').absolute()}`" in earlier["remedy"]
    own.parent.mkdir(parents=True)
    own.touch()
    assert checks(at_home)["settings file"][0]["found"] == str(own)


def test_the_doctor_says_that_data_depends_on_the_current_folder(at_home: Shell) -> None:
    assert at_home("migrate", "--data-dir", "postroom-data") == 0
    found = checks(at_home)
    assert found["current folder"][0]["verdict"] == "warn"
    assert "mv " in found["current folder"][0]["remedy"]
    assert str(Path("postroom-data").absolute()) in found["data folder"][0]["found"]

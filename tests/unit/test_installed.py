"""Which command replaces this program, and what changed since the version that ran last."""

from pathlib import Path

import pytest

from postroom import __version__
from postroom.operations.installation.changelog import changes_since, lines_above
from postroom.operations.installation.installed import command_for, removal_for

FROM_FILE = {"url": "file:///tmp/postroom-0.1.0-py3-none-any.whl", "archive_info": {}}
CHANGES = """\
# Changelog

## [Unreleased]

## [0.3.0]

### Added
- Undo for [two weeks](docs/how-to/undo.md).

## [0.2.0]
- Older.

## [0.1.0]
- First.
"""


@pytest.mark.parametrize(
    ("marker", "origin", "command"),
    [
        ("uv-receipt.toml", {}, "uv tool upgrade postroom"),
        ("uv-receipt.toml", FROM_FILE, "uv tool install --constraints dist/constraints.txt dist/postroom-*.whl"),
        ("pipx_metadata.json", {}, "pipx upgrade postroom"),
        (
            "pipx_metadata.json",
            FROM_FILE,
            'pipx install --force --pip-args="--constraint $PWD/dist/constraints.txt" dist/postroom-*.whl',
        ),
        ("pyvenv.cfg", {}, "{prefix}/bin/pip install --upgrade postroom"),
    ],
)
def test_each_installer_replaces_what_it_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str, origin: dict[str, object], command: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path.parents[1]))
    (tmp_path / marker).touch()
    assert command_for(tmp_path, origin) == command.format(prefix=tmp_path)


@pytest.mark.parametrize(
    ("marker", "command"),
    [
        ("uv-receipt.toml", "uv tool uninstall postroom"),
        ("pipx_metadata.json", "pipx uninstall postroom"),
        ("pyvenv.cfg", "{prefix}/bin/pip uninstall postroom"),
    ],
)
def test_each_installer_removes_what_it_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marker: str, command: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path.parents[1]))
    (tmp_path / marker).touch()
    assert removal_for(tmp_path, FROM_FILE) == command.format(prefix=tmp_path)


def test_what_pipx_installed_for_all_users_is_replaced_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix, commands = tmp_path / "opt/pipx/venvs/postroom", tmp_path / "usr bin"
    for each in (prefix, commands, tmp_path / "home"):
        each.mkdir(parents=True)
    (prefix / "pipx_metadata.json").touch()
    (commands / "postroom").touch(0o755)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(commands))
    places = f"PIPX_HOME={tmp_path}/opt/pipx PIPX_BIN_DIR='{commands}'"
    assert command_for(prefix, {}) == f"{places} pipx upgrade postroom"
    assert removal_for(prefix, {}) == f"{places} pipx uninstall postroom"

    def writable_elsewhere(path: Path, _mode: int) -> bool:
        return Path(path) != prefix

    monkeypatch.setattr("os.access", writable_elsewhere)
    assert command_for(prefix, {}) == f"sudo {places} pipx upgrade postroom"


def test_a_clone_is_pulled_and_a_container_is_started_anew(tmp_path: Path) -> None:
    origin = {"url": "file:///home/ada/my%20clone", "dir_info": {"editable": True}}
    assert command_for(tmp_path, origin) == "git -C '/home/ada/my clone' pull && make -C '/home/ada/my clone' setup"
    assert "new image" in command_for(tmp_path, {}, in_container=True)


def test_changes_are_those_of_all_versions_above_the_one_that_ran_last() -> None:
    assert lines_above(CHANGES, "0.2.0") == [
        "## [Unreleased]",
        "## [0.3.0]",
        "### Added",
        "- Undo for two weeks.",
    ]
    assert lines_above(CHANGES, "0.1.0")[-1] == "- Older."


def test_the_changelog_has_a_heading_for_this_version() -> None:
    assert not any(__version__ in line for line in changes_since(__version__) if line.startswith("## "))
    assert any(line.startswith(f"## [{__version__}]") for line in changes_since("a version that never was"))

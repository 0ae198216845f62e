"""The data folder and the settings file are where the user's folders are, wherever a command is run."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.core.errors import SettingsError
from postroom.operations.installation.demo import demo_folder
from postroom.settings.locations import Locations, advise_moving, find_locations, other_folders, user_folders
from postroom.settings.reading import load_settings

DATA = ".local/share/postroom"
CONFIG = ".config/postroom"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The current folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def used(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "postroom.sqlite3").touch()
    return folder


def written(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "postroom.toml").write_text("[web]\nport = 9000\n")
    return folder / "postroom.toml"


def locations(home: Path, here: Path, named: object = None, **environ: str) -> Locations:
    return find_locations(named, {"HOME": str(home), **environ}, here)


def advice(home: Path, here: Path, named: str | None = None) -> str | None:
    environ = {"HOME": str(home)}
    settings = load_settings({"data_dir": named}, environ=environ, cwd=here)
    return advise_moving(find_locations(named, environ, here), settings.data_dir, environ)


@pytest.mark.parametrize(
    ("environ", "platform", "data", "config"),
    [
        ({"HOME": "/h"}, "linux", "/h/.local/share/postroom", "/h/.config/postroom"),
        ({"HOME": "/h", "XDG_DATA_HOME": "/d"}, "linux", "/d/postroom", "/h/.config/postroom"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "linux", "/h/.local/share/postroom", "/c/postroom"),
        ({"HOME": "/h", "XDG_DATA_HOME": "d", "XDG_CONFIG_HOME": ""}, "linux", "/h/.local/share/postroom", None),
        ({"XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"}, "linux", "/d/postroom", "/c/postroom"),
        ({"HOME": "/h"}, "darwin", "/h/Library/Application Support/Postroom", None),
    ],
)
def test_the_folders_are_those_of_the_platform(
    environ: dict[str, str], platform: str, data: str, config: str | None
) -> None:
    found = user_folders(environ, platform)
    assert found is not None
    assert found.data == Path(data)
    assert found.config == Path(config or {"linux": "/h/.config/postroom"}.get(platform, data))


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "home"}, {"XDG_DATA_HOME": "/d"}])
def test_without_a_home_a_folder_must_be_named(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="set HOME, or choose a folder with --data-dir or POSTROOM_DATA_DIR"):
        load_settings(environ=environ, cwd=tmp_path)
    assert load_settings({"data_dir": "x"}, environ=environ, cwd=tmp_path).data_dir == tmp_path / "x"


def test_a_home_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="write the whole path"):
        load_settings({"data_dir": "~nobody-of-this-name/x"}, environ={}, cwd=tmp_path)


@given(st.data())
def test_the_same_locations_are_found_from_every_folder_once_there_is_data_or_a_file(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever earlier versions have left in the current folder."""
    root = tmp_path_factory.mktemp("locations")
    home, folders = root / "home", (root / "one", root / "two")
    used(home / DATA) if data.draw(st.booleans(), "has data") else written(home / CONFIG)
    for folder in folders:
        folder.mkdir()
        if data.draw(st.booleans(), "earlier data"):
            used(folder / "postroom-data")
        if data.draw(st.booleans(), "earlier file"):
            written(folder)
    first, second = (load_settings(environ={"HOME": str(home)}, cwd=folder) for folder in folders)
    assert first == second
    assert first.data_dir == home / DATA


def test_the_file_in_the_data_folder_comes_before_the_users_and_both_before_the_current_folders(
    home: Path, here: Path
) -> None:
    here_file, own = written(here), written(home / CONFIG)
    assert locations(home, here, here / "data").file == own
    in_data = written(here / "data")
    assert locations(home, here, here / "data").file == in_data
    assert locations(home, here).file == own
    in_default = written(home / DATA)
    assert locations(home, here).file == in_default
    assert locations(home, here, POSTROOM_CONFIG="postroom.toml").file == here_file


def test_data_of_an_earlier_version_is_used_where_it_is_until_the_home_holds_something(home: Path, here: Path) -> None:
    earlier, file = used(here / "postroom-data"), written(here)
    found = locations(home, here)
    assert (found.data, found.file, found.in_cwd) == (earlier, file, (earlier, file))
    used(home / DATA)
    assert (locations(home, here).data, locations(home, here).file) == (home / DATA, None)
    assert other_folders(home / DATA, {"HOME": str(home)}, here) == [earlier]


def test_a_settings_file_of_an_earlier_version_keeps_its_data_beside_it(home: Path, here: Path) -> None:
    """Were its data in the home, the home would hold something, and the second start would not read the file."""
    file = written(here)
    for _ in range(2):
        assert (locations(home, here).data, locations(home, here).file) == (here / "postroom-data", file)
        (here / "postroom-data").mkdir(exist_ok=True)


def test_an_empty_folder_of_that_name_is_not_an_earlier_version(home: Path, here: Path) -> None:
    (here / "postroom-data").mkdir()
    assert locations(home, here).data == home / DATA


def test_the_advice_moves_everything(home: Path, here: Path) -> None:
    earlier = used(here / "postroom-data")
    written(here)
    (earlier / "keys.json").touch()
    told = advice(home, here)
    assert told is not None
    assert str(earlier) in told.partition(";")[0]
    subprocess.run(told.partition("run: ")[2], shell=True, check=True)
    found = locations(home, here)
    assert (found.data, found.file, found.in_cwd) == (home / DATA, home / DATA / "postroom.toml", ())
    assert (home / DATA / "keys.json").exists()
    assert (home / DATA).stat().st_mode & 0o777 == 0o700
    assert advice(home, here) is None


def test_a_file_in_the_current_folder_is_named_where_it_counts(home: Path, here: Path) -> None:
    file = written(here)
    for named in (None, "data"):
        told = advice(home, here, named)
        assert told is not None
        assert f"{file}; to use them from any folder, move the file to {home / CONFIG}, or set POSTROOM_CONFIG" in told
    file.write_text('data_dir = "mail"\n')
    told = advice(home, here)
    assert told is not None
    assert "POSTROOM_CONFIG" in told


def test_who_depends_on_no_folder_gets_no_advice(home: Path, here: Path) -> None:
    assert advice(home, here) is None
    used(here / "postroom-data")
    assert advice(home, here, "postroom-data") is None
    written(home / CONFIG)
    assert advice(home, home / CONFIG) is None
    assert advice(home, home / CONFIG, "elsewhere") is None


@pytest.mark.parametrize(
    ("data_dir", "demo"),
    [
        ("home/.local/share/postroom", "home/.local/share/postroom-demo"),
        ("home/.local/share/postroom-demo", "home/.local/share/postroom-demo"),
        ("named", "named/.postroom-demo"),
        ("here/postroom-data", "here/.postroom-demo"),
        ("here/.postroom-demo", "here/.postroom-demo"),
    ],
)
def test_the_demo_is_beside_the_users_data_or_in_the_folder_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: str, demo: str
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert demo_folder(tmp_path / data_dir) == tmp_path / demo


def test_what_another_user_has_put_into_the_current_folder_does_not_count(
    home: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (used(here / "postroom-data"), written(here)):
        if os.geteuid() == 0:
            os.chown(path, 4321, 4321)
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    assert (locations(home, here).data, locations(home, here).file) == (home / DATA, None)

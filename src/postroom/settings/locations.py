"""Where the data folder and `postroom.toml` are: in the user's own folders, from wherever a command is run.

`$XDG_DATA_HOME/postroom` and `$XDG_CONFIG_HOME/postroom`; without these variables `~/.local/share/postroom` and
`~/.config/postroom`, on macOS `~/Library/Application Support/Postroom` for both. Earlier versions kept everything in
the current folder; its owner still gets that until the user's folders hold something (docs/decisions/0138-one-home.md).
"""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from postroom.core.errors import SettingsError
from postroom.system.folder_errors import folder_error
from postroom.system.private_files import holds_data

CONFIG = "POSTROOM_CONFIG"
FILE_NAME = "postroom.toml"
DEFAULT_DATA_DIR = Path("~/.local/share/postroom")
EARLIER_DATA_DIR = "postroom-data"
EARLIER_DEMO = ".postroom-demo"
SERVICE_DATA_DIR = Path("/var/lib/postroom")
NO_HOME = "HOME names no folder for Postroom's data; set HOME, or choose a folder with --data-dir or POSTROOM_DATA_DIR"


@dataclass(frozen=True, slots=True)
class UserFolders:
    """The folders that are used when none is named."""

    data: Path
    config: Path

    @property
    def demo(self) -> Path:
        return self.data.with_name(f"{self.data.name}-demo")

    @property
    def are_used(self) -> bool:
        return holds_data(self.data) or any(os.path.exists(each / FILE_NAME) for each in (self.data, self.config))


@dataclass(frozen=True, slots=True)
class Locations:
    """The data folder, unless the settings file names another; the settings file, if there is one; where it may be.

    `in_cwd` are those of both that are used because a command was run in their folder, as in earlier versions.
    """

    data: Path
    file: Path | None
    searched: tuple[Path, ...]
    in_cwd: tuple[Path, ...] = ()


def user_folders(environ: Mapping[str, str], platform: str = sys.platform) -> UserFolders | None:
    """The user's folders; None if there is no home. As XDG has it, a variable with a relative path is ignored."""
    home = Path(environ.get("HOME", ""))

    def folder(variable: str, default: str) -> Path | None:
        named = Path(environ.get(variable, ""))
        if named.is_absolute():
            return named / "postroom"
        default = "Library/Application Support/Postroom" if platform == "darwin" else default
        return home / default if home.is_absolute() else None

    data, config = folder("XDG_DATA_HOME", ".local/share/postroom"), folder("XDG_CONFIG_HOME", ".config/postroom")
    return None if data is None or config is None else UserFolders(data, config)


def find_locations(named: object, environ: Mapping[str, str], cwd: Path) -> Locations:
    """`named` is the data folder that the command line or the environment names; None if neither does."""
    own = user_folders(environ)
    earlier = cwd / EARLIER_DATA_DIR
    if named is not None:
        data = cwd / expand_home(Path(str(named)))
    elif own is None:
        raise SettingsError(NO_HOME)
    else:
        data = own.data if own.are_used or not _has_earlier(cwd) else earlier
    if config := environ.get(CONFIG):
        file = cwd / expand_home(Path(config))
        if not file.is_file():
            raise SettingsError(f"{CONFIG}: there is no file {file}; name an existing file or unset the variable")
        return Locations(data, file, (file,), (earlier,) if named is None and data == earlier else ())
    searched = [folder / FILE_NAME for folder in ([data] if own is None else [data, own.config])]
    # A service or a container has a folder of its own, and often a home that it may not look into.
    has_own = named is not None
    file = next((each for each in searched if _is_file(each, data, or_hidden=has_own)), None)
    in_cwd = [earlier] if named is None and data == earlier else []
    if file is None and (own is None or data != own.data):
        searched.append(cwd / FILE_NAME)
        if _has_earlier_file(cwd):
            file = searched[-1]
            in_cwd.append(file)
    return Locations(data, file, tuple(searched), tuple(in_cwd))


def locations_of_command(data_dir: Path | None) -> Locations:
    """The locations of a command with this `--data-dir`."""
    return find_locations(data_dir or os.environ.get("POSTROOM_DATA_DIR") or None, os.environ, Path.cwd())


def expand_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        raise SettingsError(f"{path}: there is no such home folder; write the whole path") from None


def other_folders(data_dir: Path, environ: Mapping[str, str], cwd: Path) -> list[Path]:
    """Data folders in the usual locations that are not this one."""
    own = user_folders(environ)
    usual = [] if own is None else [own.data, own.demo]
    usual += [data_dir / EARLIER_DEMO, cwd / EARLIER_DATA_DIR, cwd / EARLIER_DEMO, SERVICE_DATA_DIR]
    return [each for each in dict.fromkeys(usual) if each != data_dir and holds_data(each)]


def advise_moving(locations: Locations, data_dir: Path, environ: Mapping[str, str]) -> str | None:
    """A line for those whose data or settings depend on the current folder, as in earlier versions."""
    own = user_folders(environ)
    if own is not None and data_dir in locations.in_cwd and holds_data(data_dir):
        home, moved = shlex.quote(str(own.data)), f"{shlex.quote(str(data_dir))}/*"
        moved += f" {shlex.quote(str(locations.file))}" if locations.file in locations.in_cwd else ""
        return (
            f"using the data in {data_dir}, where earlier versions kept it; to use it from any folder, stop Postroom "
            f"and run: mkdir -m 700 -p {home} && mv {moved} {home}/"
        )
    if locations.file in locations.in_cwd:
        moved = "" if own is None else f"move the file to {own.config}, or "
        return f"using the settings in {locations.file}; to use them from any folder, {moved}set {CONFIG} to its path"
    return None


def _is_file(path: Path, data: Path, *, or_hidden: bool) -> bool:
    """Whether it is a file. If that cannot be told, it may hold settings, and to go on without them may be wrong."""
    try:
        return path.is_file()
    except OSError as error:
        if path.parent == data:
            raise folder_error(data, error) from error
        if or_hidden:
            return False
        remedy = f"let this user look into {path.parent}, or choose a folder for data and settings with --data-dir"
        raise SettingsError(f"{path}: cannot be read ({error.strerror}); {remedy}") from error


def _has_earlier(cwd: Path) -> bool:
    """Whether an earlier version kept its data or its settings in this folder."""
    data = cwd / EARLIER_DATA_DIR
    return (_is_trusted(data) and holds_data(data)) or _has_earlier_file(cwd)


def _has_earlier_file(cwd: Path) -> bool:
    return os.path.isfile(cwd / FILE_NAME) and _is_trusted(cwd / FILE_NAME)


def _is_trusted(path: Path) -> bool:
    """Whether the user or the administrator put it there: in a shared folder, it may be anyone's."""
    try:
        return path.stat().st_uid in (os.geteuid(), 0)
    except OSError:
        return False

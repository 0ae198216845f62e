"""User folders in which Postroom can keep nothing: a test that names no folder of its own fails.

Other programs find theirs as outside. A file is where Postroom's folder would be, so that not even root can make it.
"""

import os
import tempfile
from pathlib import Path

CLOSED = ("postroom", "postroom-demo")


def close_home() -> "tempfile.TemporaryDirectory[str]":
    """Point this process and its children to such folders, for as long as the answer is kept."""
    kept = tempfile.TemporaryDirectory(prefix="postroom-closed-home-", ignore_cleanup_errors=True)
    for variable, usual in (("XDG_DATA_HOME", ".local/share"), ("XDG_CONFIG_HOME", ".config")):
        real = Path(os.environ.get(variable) or Path.home() / usual)
        folder = Path(kept.name, variable)
        folder.mkdir()
        for entry in real.iterdir() if real.is_dir() else ():
            if entry.name not in CLOSED:
                (folder / entry.name).symlink_to(entry)
        for name in CLOSED:
            (folder / name).write_text("Tests keep their data in folders of their own.")
        os.environ[variable] = str(folder)
    return kept


def open_home(folder: Path) -> dict[str, str]:
    """The environment of a person who lives in this folder, without any setting."""
    kept = {name: each for name, each in os.environ.items() if not name.startswith(("POSTROOM_", "XDG_"))}
    return kept | {"HOME": str(folder)}

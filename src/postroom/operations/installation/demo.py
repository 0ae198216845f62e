"""The folder of `postroom demo`, which is never the user's own: sample rules must not meet real mail."""

from pathlib import Path

from postroom.settings.reading import DEFAULT_DATA_DIR
from postroom.system.private_files import DATABASE

FOLDER = ".postroom-demo"
MARKER = "this-is-a-demo"


def demo_folder(data_dir: Path) -> Path:
    """The demo's folder: beside the default data folder, or in the one that was named."""
    if data_dir.name == FOLDER:
        return data_dir
    return data_dir.with_name(FOLDER) if data_dir.name == DEFAULT_DATA_DIR.name else data_dir / FOLDER


def has_demo(folder: Path) -> bool:
    return (folder / DATABASE).exists()

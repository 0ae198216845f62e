"""The folder of `postroom demo`, which is never the user's own: sample rules must not meet real mail."""

import os
from pathlib import Path

from postroom.settings.locations import EARLIER_DATA_DIR, EARLIER_DEMO, user_folders

MARKER = "this-is-a-demo"


def demo_folder(data_dir: Path) -> Path:
    """The demo's folder: beside the user's data folder, or in the one that was named."""
    own = user_folders(os.environ)
    if own is not None and data_dir in (own.data, own.demo):
        return own.demo
    if data_dir.name in (EARLIER_DATA_DIR, EARLIER_DEMO):
        return data_dir.with_name(EARLIER_DEMO)
    return data_dir / EARLIER_DEMO


def is_demo(folder: Path) -> bool:
    return (folder / MARKER).exists()

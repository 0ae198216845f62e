from pathlib import Path

from postroom.cli.preview_output import Shown


def write_page(path: Path, shown: Shown) -> None:
    raise NotImplementedError

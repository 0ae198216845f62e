"""Small files in a connector's state folder: replaced as a whole, so that a crash leaves the old one or the new one."""

import contextlib
import os
from pathlib import Path
from typing import Any, cast

import orjson


def replace_file(path: Path, content: bytes) -> None:
    """On disk when this returns. Only the owner can read it: it tells whom the user knows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    with contextlib.suppress(OSError):  # not every file system can sync a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in the file; empty when there is none, or when it makes no sense."""
    try:
        content: object = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}

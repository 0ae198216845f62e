"""Small files in a connector's state folder: replaced as a whole, so that a crash leaves the old one or the new one."""

from datetime import datetime
from pathlib import Path
from typing import Any, cast

import orjson

from postroom.system.private_files import private_folder, replace_private


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file durably. Only the owner can read it, since it may contain the user's contacts."""
    private_folder(path.parent)
    replace_private(path, content)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in the file; empty if the file is missing or malformed."""
    try:
        content: object = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def read_moment(given: object) -> datetime | None:
    """The time that such a file holds as text; None if it is malformed or has no time zone."""
    try:
        moment = datetime.fromisoformat(str(given))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None

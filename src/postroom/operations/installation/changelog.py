"""The changes between two versions, from the CHANGELOG: part of the wheel, or beside the sources of a clone."""

import re
from importlib.resources import files
from pathlib import Path

import postroom

_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\]", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def changes_since(version: str) -> list[str]:
    """The lines of all versions above this one, newest first; none if the file is not there."""
    return lines_above(_changelog(), version)


def lines_above(text: str, version: str) -> list[str]:
    """The lines above the heading of the version, with headings and without addresses of links."""
    headings = list(_HEADING.finditer(text))
    end = next((each.start() for each in headings if each["version"] == version), len(text))
    above = text[headings[0].start() : end] if headings else ""
    return [_LINK.sub(r"\1", line).rstrip() for line in above.splitlines() if line.strip()]


def _changelog() -> str:
    for place in (files("postroom") / "CHANGELOG.md", Path(postroom.__file__).parents[2] / "CHANGELOG.md"):
        if place.is_file():
            return place.read_text("utf-8")
    return ""

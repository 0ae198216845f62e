"""Ingestion rules from a file, as `postroom filters list --json` writes them or written by hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from postroom.core.errors import BadInput
from postroom.core.plain_yaml import read_yaml
from postroom.interfaces.cli.files import read_bytes

if TYPE_CHECKING:
    from postroom.core.mail.ingestion import IngestionRule

OPTION = "--filters"
LARGEST_FILE = 4 * 1024 * 1024
REMEDY = "give the output of `postroom filters list --json`, a list of such objects in JSON or YAML, or the word own"
# Shown in the list, but not part of the rule.
_SHOWN_ONLY = ("condition", "origin", "enabled")


def rules_in(path: Path) -> "list[IngestionRule]":
    """Read the rules in the file that are enabled. BadInput names the rule that is wrong, and why."""
    from postroom.core.mail.ingestion import parse_rule

    rules: list[IngestionRule] = []
    for place, entry in enumerate(_entries(_text_of(path)), 1):
        if not isinstance(entry, Mapping):
            raise BadInput(OPTION, f"entry {place} is not an object with the fields of a rule", REMEDY)
        given = cast("Mapping[object, object]", entry)
        try:
            rule = parse_rule(_fields(given))
        except BadInput as error:
            problem = f"entry {place}: {error.field} {error.problem}"
            raise BadInput(OPTION, problem, error.remedy) from None
        if given.get("enabled", True) is not False:
            rules.append(rule)
    return rules


def _text_of(path: Path) -> str:
    content = read_bytes(path, LARGEST_FILE + 1, OPTION, REMEDY)
    if len(content) > LARGEST_FILE:
        raise BadInput(OPTION, f"{str(path)!r} is larger than {LARGEST_FILE // 2**20} MiB", REMEDY)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(OPTION, f"{str(path)!r} is not text", REMEDY) from None


def _entries(text: str) -> list[object]:
    """Read one JSON object per line, or one JSON list, or YAML."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        found: list[object] = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        try:
            found = [read_yaml(text, "the filters")]
        except BadInput as error:
            raise BadInput(
                OPTION, f"the file is neither JSON nor YAML ({error.field} {error.problem})", REMEDY
            ) from None
    return cast("list[object]", found[0]) if len(found) == 1 and isinstance(found[0], list) else found


def _fields(entry: Mapping[object, object]) -> dict[str, object]:
    """Return the fields of the rule; users know its priority as its position."""
    names = {"position": "number"}
    return {
        names.get(str(name), str(name)): value
        for name, value in entry.items()
        if name not in _SHOWN_ONLY and value is not None
    }

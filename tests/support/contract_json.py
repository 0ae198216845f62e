"""What commands print with `--json`, as shapes: the keys and the kinds of their values, not the values."""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest

from postroom.interfaces.cli import run
from postroom.store.engine.opening import open_database
from support.contract_house import House, standing_still
from support.shell import RecordingApplication

VCARD = "BEGIN:VCARD\nVERSION:3.0\nFN:Uta\nEMAIL:uta@home.example\nEND:VCARD\n"
RULES = '[{"name": "fig", "if": {"sender_domain": "fig.example"}, "then": "archive"}]'
FILES = {"contacts.vcf": VCARD, "rules.json": RULES, "mail.eml": "From: a@fig.example\nSubject: Fig\n\nHello\n"}
TEXTS = {"id": re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7"), "time": re.compile(r"\d{4}-\d\d-\d\dT\d\d:")}
"""Kinds of text, by how they begin."""
SCRIPT = """
settings
account list
account pause mara@lindqvist.example
account resume mara@lindqvist.example
mail list
mail search alder
mail show @message
mail why @message
mail why @decided
approvals list
approvals show @approvals list/id
approvals reject @approvals list/id
actions list
actions explain @decided
undo --rule shops --dry-run
reclassify @decided
contacts import contacts.vcf
contacts list
labels list
labels describe alder Trees
labels deny alder
backfill plan
backfill list
backfill show @backfill list/id
backfill pause @backfill list/id
backfill resume @backfill list/id
backfill cancel @backfill list/id
rules list
rules show @rules list/name
rules add rules.json
rules test mail.eml
rules test --message @message
rules export
rules check rules.json
rules diff rules.json
rules disable fig
rules enable fig
rules remove fig
rules starter list
simulate rules.json
shadow begin --model
shadow list
shadow report --model
shadow end --model
proposals list
proposals show @proposals list/id
proposals dismiss @proposals list/id
filters list
filters add --name fig --tier skip --sender-domain fig.example
filters remove fig
protect list
protect add sender fig@fig.example
protect remove sender fig@fig.example
model status
model calls
model-rules add fig Figs
model-rules list
model-rules disable fig
model-rules remove fig
directions add Figs
directions list
directions disable @directions list/id
directions remove @directions list/id
connector list
connector refused
pause
resume
queue stats
queue peek gateway
jobs list
jobs list --state failed
jobs show @jobs list --state failed/id
jobs retry @jobs list --state failed/id
jobs cancel @jobs list --state failed/id
retention show
retention preview
person list
person add fig
person sessions
person role fig operator
person remove fig
token list
token create --role agent --name fig
token revoke @token create --role agent --name fig/id
audit list
key list
migrate
outbound list
outbound show @outbound list/id
outbound recipients @outbound list/id
outbound stats
outbound cancel @outbound list/id
tenant list
tenant add fig
tenant show fig
tenant pause fig
tenant resume fig
tenant weight fig 2
sender list
sender show grace@alder.example
sender throttle grace@alder.example
sender release grace@alder.example
sender disable grace@alder.example
sender enable grace@alder.example
suppression list
suppression strikes
suppression add fig fig@fig.example
suppression remove fig fig@fig.example
destination list
destination pause fig.example
destination resume fig.example
dkim list
dkim remove sender.example s1
"""
"""Commands in order. `@some command/key` is that key in the first row that the earlier command printed."""


def json_shapes(folder: Path) -> str:
    """The shape of what each command prints, on a house with something in most lists."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
    with (
        patch.dict(os.environ, kept, clear=True),
        standing_still() as time,
        patch("postroom.telemetry.logs.configure_logging"),
        chdir(folder),
    ):
        known = asyncio.run(_filled(folder))
        time.move_to(known.clock(), tick=False)
        for name, text in FILES.items():
            (folder / name).write_text(text)
        printed: dict[str, list[Any]] = {
            "message": [known.box.ids["m0"]],
            "decided": [known.box.ids["done"]],
        }
        return "\n\n".join(_printed(line, folder, printed) for line in SCRIPT.strip().splitlines()) + "\n"


async def _filled(folder: Path) -> House:
    database = await open_database(folder)
    house = House(database, folder)
    try:
        await house.fill()
    finally:
        await database.close()
    return house


def _printed(line: str, folder: Path, printed: dict[str, list[Any]]) -> str:
    before, _, named = line.partition(" @")
    arguments = [*before.split(), *([_named(named, printed)] if named else [])]
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        run(RecordingApplication(), [*arguments, "--json", "--data-dir", str(folder)])
    rows = _read(out.getvalue())
    printed[line] = rows
    said = [f"$ postroom {line} --json"]
    said += (
        [f"exit {code}: {err.getvalue().strip()}".replace(str(folder), "FOLDER")] if (code := ended.value.code) else []
    )
    return "\n".join([*said, *(shape_of(rows) if rows else ["(nothing)"])])


def _read(text: str) -> list[Any]:
    """The values in a text: one per line, or one over several lines."""
    found, decoder = list[Any](), json.JSONDecoder()
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def _named(named: str, printed: Mapping[str, Sequence[Any]]) -> str:
    command, _, key = named.partition("/")
    first = printed[command][0]
    return str(first[key] if key else first)


def shape_of(rows: Sequence[Any]) -> list[str]:
    """One line for each path into the rows, with the kinds of values there; `?` if some rows lack it."""
    kinds, counts, within = dict[str, set[str]](), Counter[str](), dict[str, str]()

    def collect(value: object, path: str) -> None:
        counts[path] += 1
        found = kinds.setdefault(path, set())
        match value:
            case dict():
                found.add("object")
                for key, each in cast("dict[str, object]", value).items():
                    within[f"{path}.{key}"] = path
                    collect(each, f"{path}.{key}")
            case list():
                found.add("list")
                for each in cast("list[object]", value):
                    collect(each, f"{path}[]")
            case _:
                found.add(_kind(value))

    for row in rows:
        collect(row, "")
    lines: list[str] = []
    for path in sorted(kinds):
        lacking = "?" if path in within and counts[path] < counts[within[path]] else ""
        lines.append(f"  {path or '.'}{lacking}: {' or '.join(sorted(kinds[path]))}")
    return lines


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "whole number"
        case float():
            return "number"
        case _:
            return next((kind for kind, form in TEXTS.items() if form.match(str(value))), "text")

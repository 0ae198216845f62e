"""The contract of Postroom in files: everything that people and programs meet, as the product answers now.

`tests/contract` holds the description of the JSON API, the tools of the MCP endpoint, the help of every command, the
shape of what commands print as JSON, and an outline of every page.
`python tests/integration/test_contract.py` writes the files again; their diff is the visible change.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping
from difflib import unified_diff
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for a run as a program

from support.contract import command_help, openapi_text, tools_text
from support.contract_house import page_texts
from support.contract_json import json_shapes

FILES = Path(__file__).parents[1] / "contract"
Texts = Mapping[str, str]
"""Files by their names."""


def openapi(_folder: Path) -> Texts:
    return {"openapi.json": openapi_text()}


def tools(folder: Path) -> Texts:
    return {"tools.json": asyncio.run(tools_text(folder))}


def commands(_folder: Path) -> Texts:
    return {"help.txt": command_help()}


def shapes(folder: Path) -> Texts:
    return {"json.txt": json_shapes(folder)}


PARTS: dict[str, Callable[[Path], Texts]] = {
    "openapi": openapi,
    "tools": tools,
    "commands": commands,
    "json": shapes,
    "pages": page_texts,
}


@pytest.mark.parametrize("part", PARTS)
def test_the_product_answers_as_the_files_say(part: str, tmp_path: Path) -> None:
    texts = PARTS[part](tmp_path)
    changes = [line for name in sorted({*texts, *files_of(part)}) for line in changes_of(name, texts.get(name, ""))]
    assert not changes, "\n".join(["if this is meant, run python tests/integration/test_contract.py", "", *changes])


def files_of(part: str) -> list[str]:
    """The files of a part that has a folder."""
    return [str(each.relative_to(FILES)) for each in (FILES / part).glob("*")]


def changes_of(name: str, text: str) -> list[str]:
    file = FILES / name
    known = file.read_text("utf-8") if file.exists() else ""
    return list(unified_diff(known.splitlines(), text.splitlines(), f"tests/contract/{name}", "now", lineterm=""))


def write() -> None:
    for part, made in PARTS.items():
        with tempfile.TemporaryDirectory() as folder:
            texts = made(Path(folder))
        for name in {*files_of(part)} - texts.keys():
            (FILES / name).unlink()
        for name, text in texts.items():
            (FILES / name).parent.mkdir(parents=True, exist_ok=True)
            (FILES / name).write_text(text, "utf-8")


if __name__ == "__main__":
    write()

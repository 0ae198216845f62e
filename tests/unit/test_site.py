"""The site of the documentation builds without a warning, lists every page, and loads nothing from elsewhere."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SETTINGS = ROOT / "zensical.toml"
LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^"' >]+""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from a copy: no other test, and no person, builds it at the same place."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    shutil.copy(SETTINGS, folder)
    zensical = Path(sys.executable).with_name("zensical")
    done = subprocess.run([zensical, "build", "--strict"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-500:]
    return folder / "build/site"


def listed(entry: object) -> Iterator[str]:
    match entry:
        case str():
            yield entry
        case dict():
            for value in entry.values():
                yield from listed(value)
        case list():
            for each in entry:
                yield from listed(each)
        case _:
            raise AssertionError(entry)


def test_every_page_stands_in_the_navigation_once():
    pages = sorted(listed(tomllib.loads(SETTINGS.read_text("utf-8"))["project"]["nav"]))
    wanted = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert pages == sorted(page for page in wanted if not re.match(r"decisions/\d", page))


def test_it_builds_without_a_warning_and_a_reader_can_search_it(site: Path):
    assert len(json.loads((site / "search.json").read_text("utf-8"))["items"]) > 500
    assert "<h1" in (site / "how-to/imap/index.html").read_text("utf-8")


def test_no_block_of_code_has_a_word_behind_its_language():
    """Other readers of Markdown ignore it, but the site would make a paragraph of the block."""
    assert [
        page for page in DOCS.rglob("*.md") if re.search(r"^ *```\w+ ", page.read_text("utf-8"), re.MULTILINE)
    ] == []


def test_its_pages_load_nothing_from_elsewhere(site: Path):
    assert [found for page in site.rglob("*.html") for found in LOADED.findall(page.read_text("utf-8"))] == []

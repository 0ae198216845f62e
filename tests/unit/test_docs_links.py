"""Every link in the documentation leads somewhere, every page is listed, and every `make` target it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")])

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
MAKE = re.compile(r"(?:^|[`\n;&]) *(?:\$ )?make((?: +[a-z]+\b(?!=))+)")
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def links(page: Path) -> list[str]:
    """The targets of all links that stay in the repository."""
    prose = INLINE.sub("", FENCED.sub("", page.read_text("utf-8")))
    return [link for link in LINK.findall(prose) if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """The headings as links name them."""
    titles = HEADING.findall(FENCED.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def code(page: Path) -> str:
    """What stands between backticks: prose may well say "make sure"."""
    text = page.read_text("utf-8")
    return "\n".join([*FENCED.findall(text), *INLINE.findall(FENCED.sub("", text))])


@each_page
def test_every_link_leads_to_a_file_and_a_heading_that_exist(page: Path):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@each_page
def test_every_make_target_that_a_page_names_exists(page: Path):
    named = {target for group in MAKE.findall(code(page)) for target in group.split()}
    assert named <= set(TARGET.findall((ROOT / "Makefile").read_text("utf-8")))


def test_every_page_is_listed_in_the_index():
    listed = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "README.md")}
    assert {page for page in DOCS.rglob("*.md") if page.name != "README.md"} - listed == set()


def test_the_pages_do_name_targets_and_links():
    """Lest the patterns above silently find nothing."""
    assert {"run", "test"} <= {word for group in MAKE.findall(code(ROOT / "README.md")) for word in group.split()}
    assert "docs/architecture.md" in links(ROOT / "README.md")

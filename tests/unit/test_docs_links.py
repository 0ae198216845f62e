"""Every link in the documentation leads somewhere, every page is listed, and the files and targets it names exist."""

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
FILE = re.compile(r"(?<![\w/.<*~:-])(?:[\w.-]+/)*(?:[\w-]+\.(?:py|sql|toml|lock)\b|(?<=/)(?=[`\s,;)]))")
MODULE = re.compile(r"(?<![\w./-])(?:postroom|postroom_sandbox|postroom_simulator|support)(?:\.[a-z_]+)+(?![\w.*-])")
NAMED_IN = re.compile(r"`(\w+)` in `([\w/]+\.(?:py|sql))`")
# Files that a person, a build or a running Postroom makes.
MADE = {
    "connectors/",
    "backups/",
    "postroom.toml",
    "serve.lock",
    "restore.lock",
    "dist/",
    "digest.py",
    "NNNN_name.sql",
} | {"connectors/gmail-ADDRESS/"}
# Where a path that a page names may begin.
ROOTS = (ROOT, ROOT / "src", ROOT / "src/postroom", ROOT / "src/postroom/store", ROOT / "tests", DOCS)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)

# Decisions name the files of their time.
LASTING = [page for page in PAGES if "decisions" not in page.parts]
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


def exists(name: str) -> bool:
    """Whether there is a file or a folder of this name; a name alone may be that of any file."""
    if "/" in name:
        return any((root / name).exists() for root in ROOTS)
    return (ROOT / name).exists() or any(next(root.rglob(name), None) for root in (ROOT / "src", ROOT / "tests"))


def is_module(name: str) -> bool:
    """Whether the name is that of a module, or of something in one."""
    whole = Path(*name.split("."))
    places = [root / path for root in ROOTS for path in (whole, whole.parent)]
    return any(place.exists() or place.with_suffix(".py").exists() for place in places)


@pytest.mark.parametrize("page", LASTING, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_module_that_a_page_names_exists(page: Path):
    named = code(page)
    assert [name for name in FILE.findall(named) if name not in MADE and not exists(name)] == []
    assert [name for name in MODULE.findall(named) if not is_module(name)] == []


@pytest.mark.parametrize("page", LASTING, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_finds_in_a_file_is_there(page: Path):
    """As in "`lease` in `store/intake/inbox.py`"."""
    for name, path in NAMED_IN.findall(page.read_text("utf-8")):
        files = [root / path for root in ROOTS if (root / path).exists()]
        assert any(re.search(rf"\b{name}\b", file.read_text("utf-8")) for file in files), f"{name} in {path}"


def test_every_decision_is_listed_in_the_index():
    """The other pages stand in the navigation of the site."""
    listed = {(DOCS / "decisions" / link).resolve() for link in links(DOCS / "decisions/README.md")}
    assert {page for page in (DOCS / "decisions").glob("*.md") if page.name != "README.md"} - listed == set()


def test_the_pages_do_name_targets_and_links():
    """Lest the patterns above silently find nothing."""
    assert {"run", "test"} <= {word for group in MAKE.findall(code(ROOT / "README.md")) for word in group.split()}
    assert "docs/architecture.md" in links(ROOT / "README.md")
    assert "core/actions/safety.py" in FILE.findall(code(DOCS / "architecture.md"))
    assert ("lease", "store/intake/inbox.py") in NAMED_IN.findall((DOCS / "architecture.md").read_text("utf-8"))

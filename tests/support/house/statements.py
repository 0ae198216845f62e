"""Named statements of the store: which both databases share, and which pairs say nearly the same."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

from support.house.figures import Section
from support.house.lines import without_sql_comments
from support.house.names import COMMON, DIALECTS, MIGRATIONS
from support.house.tree import Tree

_HEADER = re.compile(r"^-- (name|part): (\w+).*$", re.MULTILINE)
NEARLY = 0.85


def statements(tree: Tree) -> Section:
    found: dict[str, dict[str, str]] = {name: {} for name in (COMMON, *DIALECTS)}
    for path in sorted(tree.product.rglob("*.sql")):
        name = path.relative_to(tree.product)
        if (dialect := _dialect(name)) is not None and not MIGRATIONS & set(name.parts):
            found[dialect].update(_blocks(path.read_text("utf-8")))
    ours, theirs = (found[dialect] for dialect in DIALECTS)
    pairs = {name: _likeness(ours[name], theirs[name]) for name in ours if name in theirs}
    near = {name: likeness for name, likeness in pairs.items() if likeness >= NEARLY}
    numbers = {name: len(blocks) for name, blocks in found.items()}
    numbers |= {"pairs of the two databases": len(pairs), f"pairs that are {NEARLY:.0%} the same": len(near)}
    return Section("Statements", numbers, [f"{near[name]:.0%} {name}" for name in sorted(near)])


def _dialect(name: Path) -> str | None:
    parts = name.with_suffix("").parts
    return next((dialect for dialect in (COMMON, *DIALECTS) if dialect in parts), None)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each statement by its name, in one line and without comments; not the parts that statements share."""
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=False):
        if header[1] == "name":
            yield header[2], " ".join(without_sql_comments(text[header.end() : end]).split())


@cache
def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()

"""How many files a change touches: what it costs to add an action, a setting, a page."""

from collections import Counter
from pathlib import Path

from support.house.tables import print_table
from support.house.tree import git

PARTS = ("src", "tests", "docs")


def print_touched(root: Path, base: str, ranges: list[str], is_listed: bool) -> None:
    rows: list[list[object]] = []
    for each in ranges:
        files = touched(root, base, each)
        counted = Counter(part_of(name) for name in files)
        rows.append([each, *(counted[part] for part in PARTS), counted["other"], len(files)])
    print_table("Files touched", ["change", *PARTS, "other", "all"], rows)
    if is_listed:
        print("".join(f"  {each}: {name}\n" for each in ranges for name in touched(root, base, each)))


def touched(root: Path, base: str, given: str) -> list[str]:
    """The files that differ. A range is taken as it is, a branch since it left its base; a renamed file is one."""
    span = given if ".." in given else f"{base}...{given}"
    return git(root, "diff", "--name-only", "-M", span).decode().splitlines()


def part_of(name: str) -> str:
    first = name.partition("/")[0]
    return first if first in PARTS else "docs" if name.endswith(".md") else "other"

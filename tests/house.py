"""Counts the house: how much there is, and how often the same thing is said again.

    .venv/bin/python tests/house.py                          the files as they are
    .venv/bin/python tests/house.py --against COMMIT         the same for a commit: before, after, difference
    .venv/bin/python tests/house.py --list                   with everything that was counted
    .venv/bin/python tests/house.py --touched BRANCH A..B    files that a branch (since main) or a range touches

Most numbers are read from the sources and need no working product; those of the interfaces are asked of the product
itself, and only of the one that is installed here. Names that the counts rely on are in `support/house/names.py`.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from support.house.contracts import exemptions
from support.house.figures import Section
from support.house.lines import Lines, lines_by_package
from support.house.shapes import equal_shapes, mail_shapes
from support.house.statements import statements
from support.house.tables import print_table
from support.house.touched import print_touched
from support.house.tree import Tree, tree_of
from support.house.words import names, phrases, provider_literals

ROOT = Path(__file__).parents[1]
BASE = "main"
ALL = "all"
COUNTS: tuple[Callable[[Tree], Section], ...] = (
    equal_shapes,
    mail_shapes,
    statements,
    names,
    phrases,
    provider_literals,
    exemptions,
)


def main() -> None:
    options = _options()
    if options.touched:
        print_touched(ROOT, options.base, options.touched, options.list)
        return
    now = Tree(ROOT)
    if options.against is None:
        _print_lines(now)
        _print_sections(None, [count(now) for count in COUNTS], options.list)
    else:
        with tree_of(ROOT, options.against) as before:
            _print_lines_compared(before, now, options.against)
            sections = [count(before) for count in COUNTS]
            _print_sections(sections, [count(now) for count in COUNTS], options.list)
    _print_interfaces(options.list)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--against", metavar="COMMIT", help="count this commit too, and show the difference")
    parser.add_argument("--list", action="store_true", help="show everything that was counted")
    parser.add_argument("--touched", nargs="+", metavar="RANGE", help="only count the files that these touch")
    parser.add_argument("--base", default=BASE, help="the branch that those of --touched began at (%(default)s)")
    return parser.parse_args()


def _print_lines(tree: Tree) -> None:
    heading = ["", "files", "python", "sql", "templates", "lines", "with comments"]
    packages = lines_by_package(tree)
    for package, folders in packages.items():
        print_table(f"Lines of {package}", heading, [_row(*each) for each in _with_sum(folders)])
    print_table("Lines of all packages", heading, [_row(*each) for each in _with_sum(_sums(packages))])


def _row(name: str, lines: Lines) -> list[object]:
    return [name, lines.files, lines.python, lines.sql, lines.templates, lines.code, lines.whole]


def _print_lines_compared(before: Tree, after: Tree, commit: str) -> None:
    old, new = lines_by_package(before), lines_by_package(after)
    for package in sorted(old.keys() | new.keys()):
        _print_compared(f"Lines of {package}, before at {commit}", old.get(package, {}), new.get(package, {}))
    _print_compared(f"Lines of all packages, before at {commit}", _sums(old), _sums(new))


def _print_compared(title: str, before: dict[str, Lines], after: dict[str, Lines]) -> None:
    heading = ["", "files before", "after", "difference", "lines before", "after", "difference"]
    old, new = dict(_with_sum(before)), dict(_with_sum(after))
    rows = [*sorted(before.keys() | after.keys()), ALL]
    print_table(title, heading, [_compared(name, old.get(name, Lines()), new.get(name, Lines())) for name in rows])


def _compared(name: str, before: Lines, after: Lines) -> list[object]:
    return [
        name,
        *(before.files, after.files, _signed(after.files - before.files)),
        *(before.code, after.code, _signed(after.code - before.code)),
    ]


def _sums(packages: dict[str, dict[str, Lines]]) -> dict[str, Lines]:
    return {package: sum(folders.values(), Lines()) for package, folders in packages.items()}


def _with_sum(folders: dict[str, Lines]) -> list[tuple[str, Lines]]:
    return [*sorted(folders.items()), (ALL, sum(folders.values(), Lines()))]


def _print_sections(before: list[Section] | None, after: list[Section], is_listed: bool) -> None:
    for number, section in enumerate(after):
        old = before[number].numbers if before is not None else None
        _print_section(old, section, is_listed)


def _print_interfaces(is_listed: bool) -> None:
    from support.house.interfaces import interfaces  # loads the whole product, which other counts do without

    _print_section(None, interfaces(), is_listed)


def _print_section(before: dict[str, int] | None, section: Section, is_listed: bool) -> None:
    if before is None:
        print_table(section.title, ["", "number"], [[name, number] for name, number in section.numbers.items()])
    else:
        rows = [[name, *_change(before.get(name, 0), number)] for name, number in section.numbers.items()]
        print_table(section.title, ["", "before", "after", "difference"], rows)
    if is_listed or section.is_short:
        print("".join(f"  {line}\n" for line in section.found))


def _change(before: int, after: int) -> Iterator[object]:
    yield from (before, after, _signed(after - before))


def _signed(number: int) -> str:
    return f"{number:+,}" if number else "0"


if __name__ == "__main__":
    main()

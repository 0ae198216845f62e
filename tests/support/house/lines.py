"""Lines of code: those of Python, SQL and templates that are left without blanks, comments, docstrings and migrations.

A docstring is any string that stands as a statement, so one below an attribute is one too. A line with code and a
comment counts. The `-- name:` above a statement is a comment to SQL and is not counted.
"""

import ast
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

from support.house.names import MIGRATIONS, TEMPLATES
from support.house.tree import Tree

TOP = "(top)"
_NO_CODE = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT})
# What is quoted comes first: a comment's sign within quotes is none.
_SQL = re.compile(r"""('(?:[^']|'')*'|"[^"]*")|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_TEMPLATE_COMMENT = re.compile(r"\{#.*?#\}|<!--.*?-->", re.DOTALL)
Position = tuple[int, int]


@dataclass(frozen=True)
class Lines:
    """Files, their lines of code by language, and all their lines."""

    files: int = 0
    python: int = 0
    sql: int = 0
    templates: int = 0
    whole: int = 0

    @property
    def code(self) -> int:
        return self.python + self.sql + self.templates

    def __add__(self, other: "Lines") -> "Lines":
        return Lines(
            self.files + other.files,
            self.python + other.python,
            self.sql + other.sql,
            self.templates + other.templates,
            self.whole + other.whole,
        )


def lines_by_package(tree: Tree) -> dict[str, dict[str, Lines]]:
    """For each package of the sources, the lines of the folders directly in it."""
    packages = sorted(path for path in tree.sources.iterdir() if (path / "__init__.py").is_file())
    return {package.name: _lines_by_folder(package) for package in packages}


def _lines_by_folder(package: Path) -> dict[str, Lines]:
    found: dict[str, Lines] = {}
    for path in sorted(package.rglob("*")):
        within = path.relative_to(package)
        if (counted := lines_of(within, path)) is not None:
            folder = within.parts[0] if len(within.parts) > 1 else TOP
            found[folder] = found.get(folder, Lines()) + counted
    return found


def lines_of(name: Path, path: Path) -> Lines | None:
    """None for what is not counted."""
    if path.suffix == ".sql" and MIGRATIONS & set(name.parts):
        return None
    if path.suffix not in (".py", ".sql", *TEMPLATES):
        return None
    text = path.read_text("utf-8")
    whole = len(text.split("\n")) - 1
    match path.suffix:
        case ".py":
            return Lines(1, python=python_lines(text), whole=whole)
        case ".sql":
            return Lines(1, sql=sql_lines(text), whole=whole)
        case _:
            return Lines(1, templates=template_lines(text), whole=whole)


@cache
def python_lines(text: str) -> int:
    """The lines with code. Within a text of several lines, blank ones are blank."""
    docstrings = list(_docstrings(text))
    lines = text.split("\n")
    counted: set[int] = set()
    for token in tokenize.generate_tokens(StringIO(text).readline):
        is_docstring = token.type == tokenize.STRING and any(begin <= token.start < end for begin, end in docstrings)
        if token.type not in _NO_CODE and not is_docstring:
            counted.update(range(token.start[0], token.end[0] + 1))
    return sum(1 for number in counted if number <= len(lines) and lines[number - 1].strip())


def _docstrings(text: str) -> Iterator[tuple[Position, Position]]:
    """Where each begins and ends."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                yield (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
            case _:
                pass


def sql_lines(text: str) -> int:
    return _filled(without_sql_comments(text))


def without_sql_comments(text: str) -> str:
    return _SQL.sub(lambda found: found[1] or "", text)


def template_lines(text: str) -> int:
    return _filled(_TEMPLATE_COMMENT.sub("", text))


def _filled(text: str) -> int:
    return sum(1 for line in text.split("\n") if line.strip())

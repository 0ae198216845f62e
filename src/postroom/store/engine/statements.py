"""Named SQL in files: `queries/common` for both databases, `queries/sqlite` and `queries/postgres` for one.

A block begins with its name and its parameters, which the text uses as `:name`:

    -- name: select_job(id)
    SELECT seq, state FROM jobs WHERE id = :id

A block may hold several statements, each ended by a semicolon at the end of its line; their rows are joined. A text
that several blocks of a file share is a part, given before them, and put where its name stands in braces:

    -- part: open
    state IN ('pending', 'claimed')

    -- name: count_open(queue)
    SELECT count(*) FROM jobs WHERE {open} AND queue = :queue

Braces also hold what PostgreSQL spells differently from SQLite (`spellings.py`). Where a statement of both databases
differs in one place only, that place is a part, given in the file of the same name of each database.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from postroom.store.engine.database import Dialect
from postroom.store.engine.spellings import spell

_HEADER = re.compile(r"^-- name: (\w+)\(([\w, ]*)\)\s*$", re.MULTILINE)
_SHARED = re.compile(r"^-- part: (\w+)\s*$(.*?)(?=^-- (?:part|name): |\Z)", re.MULTILINE | re.DOTALL)
_SHARED_USE = re.compile(r"\{(\w+)\}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_GIVES_ROWS = re.compile(r"\A(SELECT|WITH|PRAGMA|EXPLAIN)\b|\bRETURNING\b")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Compiled:
    """One statement of a block: its text with numbered placeholders, and which parameters fill them."""

    text: str
    picks: tuple[int, ...] | None
    gives_rows: bool

    def arguments(self, parameters: tuple[object, ...]) -> tuple[object, ...]:
        return parameters if self.picks is None else tuple(parameters[pick] for pick in self.picks)


Block = tuple[Compiled, ...]


@cache
def blocks(dialect: Dialect) -> dict[str, Block]:
    """Every named block of one dialect. Raises on duplicate names, unknown parameters and unknown spellings: bugs."""
    found: dict[str, Block] = {}
    queries = files("postroom.store") / "queries"
    for folder in ("common", dialect):
        for entry in sorted((queries / folder).iterdir(), key=lambda each: each.name):
            if entry.name.endswith(".sql"):
                own = queries / dialect / entry.name
                parts = _parts_of(own.read_text("utf-8")) if folder == "common" and own.is_file() else ""
                for name, block in _read(f"{folder}/{entry.name}", parts + entry.read_text("utf-8"), dialect):
                    if name in found:
                        raise ValueError(f"the statement {name} is defined twice for {dialect}")
                    found[name] = block
    return found


@cache
def _headers() -> dict[str, tuple[str, ...]]:
    queries = files("postroom.store") / "queries"
    texts = (entry.read_text("utf-8") for folder in ("common", "sqlite") for entry in (queries / folder).iterdir())
    return {header[1]: tuple(_parameters_of(header)) for text in texts for header in _HEADER.finditer(text)}


def parameters(name: str) -> tuple[str, ...]:
    """The parameters of a named block in the order of its header, which is the same for both databases."""
    return _headers()[name]


def _parameters_of(header: re.Match[str]) -> list[str]:
    return header[2].replace(",", " ").split()


def _read(path: str, text: str, dialect: Dialect) -> list[tuple[str, Block]]:
    try:
        return _parse(text, dialect)
    except ValueError as error:
        raise ValueError(f"queries/{path}: {error}") from error


def _parse(text: str, dialect: Dialect) -> list[tuple[str, Block]]:
    text = _with_parts(text)
    headers = list(_HEADER.finditer(text))
    ends = [*(header.start() for header in headers), len(text)][1:]
    return [
        (header[1], _compile(header[1], _parameters_of(header), text[header.end() : end], dialect))
        for header, end in zip(headers, ends, strict=True)
    ]


def _parts_of(text: str) -> str:
    """The parts of a text, without its statements."""
    return "".join(f"{part[0]}\n" for part in _SHARED.finditer(text))


def _with_parts(text: str) -> str:
    """The text with each part where it is used. A part may use those before it. Other braces are spellings."""
    parts: dict[str, str] = {}

    def put(used: re.Match[str]) -> str:
        return parts.get(used[1], used[0])

    for part in _SHARED.finditer(text):
        parts[part[1]] = _SHARED_USE.sub(put, _COMMENT.sub("", part[2]).strip())
    return _SHARED_USE.sub(put, _SHARED.sub("", text))


def _compile(name: str, declared: list[str], body: str, dialect: Dialect) -> Block:
    spelled = spell(name, _COMMENT.sub("", body), dialect)
    parts = [part.strip() for part in re.split(r";\s*$", spelled, flags=re.MULTILINE)]
    compiled = tuple(_number(name, declared, part, dialect) for part in parts if part)
    used = set(_PARAMETER.findall(_COMMENT.sub("", body)))  # SQLite may do without one: a lock on a name
    if used != set(declared):
        raise ValueError(f"the statement {name} declares {sorted(declared)} and uses {sorted(used)}")
    return compiled


def _number(name: str, declared: list[str], text: str, dialect: Dialect) -> Compiled:
    order: list[str] = []

    def placeholder(match: re.Match[str]) -> str:
        parameter = match[1]
        if parameter not in declared:
            raise ValueError(f"the statement {name} uses :{parameter}, which its header does not declare")
        if parameter not in order:
            order.append(parameter)
        return f"{'?' if dialect == 'sqlite' else '$'}{order.index(parameter) + 1}"

    numbered = _PARAMETER.sub(placeholder, text)
    picks = tuple(declared.index(parameter) for parameter in order)
    gives_rows = _GIVES_ROWS.search(numbered) is not None
    return Compiled(numbered, None if picks == tuple(range(len(declared))) else picks, gives_rows)

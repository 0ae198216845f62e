"""The parts of a raw message, found in one pass over its lines, within limits that no honest mail reaches.

Only lines that begin with `--` are examined, each once, against the boundaries that are open at that point; so the time
is linear for any nesting. What lies beyond a limit is left out and reported.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from postroom.core.mail.fields import Fields, read_fields
from postroom.core.mail.headers import value_text

DEEPEST = 50
MOST_PARTS = 1000
MOST_DASHED_LINES = 200_000
LARGEST_PART_HEAD = 65_536

_END = re.compile(rb"\n\r*+\n")
_EMPTY_LINE = re.compile(rb"\r*+\n")
_CONTENT_HEADER = re.compile(
    rb"^content-(type|transfer-encoding|disposition|id)[ \t]*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)",
    re.MULTILINE | re.IGNORECASE,
)
_CONTENT_ID = re.compile(r"<([!#-;=?-~]{1,250})>")


@dataclass(slots=True)
class Part:
    """One part: its `content`, still encoded, or its `parts` if it is a multipart.

    `size` is set where only the size of the content is known, as in Gmail's answers.
    """

    fields: Fields
    content: bytes = field(default=b"", repr=False)
    parts: list["Part"] = field(default_factory=list["Part"])
    size: int | None = None

    @property
    def is_multipart(self) -> bool:
        return self.fields.content_type.startswith("multipart/")

    @property
    def is_file(self) -> bool:
        """Whether it is attached, and no text that a reader sees."""
        if self.fields.attached or self.fields.filename:
            return True
        return self.fields.content_type not in ("text/plain", "text/html") and not self.is_multipart

    def leaves(self) -> list["Part"]:
        """The parts without parts, in the order of the message. Not recursive: parts may be nested deeply."""
        found: list[Part] = []
        waiting: list[Part] = [self]
        while waiting:
            part = waiting.pop()
            if part.parts:
                waiting += reversed(part.parts)
            else:
                found.append(part)
        return found


def find_parts(raw: bytes, block: bytes, body_at: int) -> tuple[Part, tuple[str, ...]]:
    """The root part of a message whose head is `block`, and the problems in its structure."""
    root = Part(content_fields(block))
    walk = _Walk(raw, root, body_at)
    walk.run()
    return root, tuple(walk.problems)


def content_fields(block: bytes, otherwise: str = "text/plain") -> Fields:
    """The fields of a part, from the first header of each kind."""
    found: dict[bytes, str] = {}
    for name, value in _CONTENT_HEADER.findall(block):
        found.setdefault(name.lower(), value_text(value))
    fields = read_fields(
        found.get(b"type", ""), found.get(b"transfer-encoding", ""), found.get(b"disposition", ""), otherwise
    )
    named = _CONTENT_ID.fullmatch(found.get(b"id", "").strip())
    return fields if named is None else replace(fields, content_id=named[1])


class _Walk:
    """One pass over a message. `_open` holds the multiparts around the current position, outermost first."""

    def __init__(self, raw: bytes, root: Part, body_at: int) -> None:
        self._raw = raw
        self._open: list[tuple[bytes, Part]] = []
        self._depths: dict[bytes, int] = {}
        self._leaf: Part | None = None
        self._leaf_at = body_at
        self._parts = 1
        self.problems: dict[str, None] = {}
        self._enter(root, body_at)

    def run(self) -> None:
        if self._open:
            for line_at, content_at, mark in self._dashed_lines():
                if not self._meet(line_at, content_at, mark):
                    break
            else:
                if self._open:
                    self.problems["it ends within a multipart"] = None
        self._end_leaf(len(self._raw))

    def _meet(self, line_at: int, content_at: int, mark: bytes) -> bool:
        """Handle a line that begins with `--`, which may open or close a part. False when no more parts can follow."""
        closes = False
        depth = self._depths.get(mark)
        if depth is None and mark.endswith(b"--"):
            depth, closes = self._depths.get(mark[:-2]), True
        if depth is None:
            return True
        self._end_leaf(line_at)
        parent = self._open[depth][1]
        self._leave(depth if closes else depth + 1)
        if closes:
            return bool(self._open)
        if self._parts >= MOST_PARTS:
            self.problems[f"it has more than {MOST_PARTS:,} parts"] = None
            self._leave(0)
            return False
        self._parts += 1
        self._begin(parent, content_at)
        return True

    def _begin(self, parent: Part, at: int) -> None:
        raw = self._raw
        otherwise = "message/rfc822" if parent.fields.content_type == "multipart/digest" else "text/plain"
        block, body_at = b"", at
        if empty := _EMPTY_LINE.match(raw, at):
            body_at = empty.end()
        elif found := _END.search(raw, at, at + LARGEST_PART_HEAD):
            block, body_at = raw[at : found.start()], found.end()
        else:
            self.problems["a part has no end to its head"] = None
            block = raw[at : at + LARGEST_PART_HEAD]
        part = Part(content_fields(block, otherwise))
        parent.parts.append(part)
        self._enter(part, body_at)

    def _enter(self, part: Part, body_at: int) -> None:
        boundary = part.fields.boundary.encode("utf-8", "surrogatepass")
        if part.is_multipart and boundary and len(self._open) < DEEPEST:
            # A boundary that is already open belongs to the outer multipart.
            self._depths.setdefault(boundary, len(self._open))
            self._open.append((boundary, part))
            return
        if part.is_multipart:
            why = f"parts are nested deeper than {DEEPEST}" if boundary else "a multipart has no boundary"
            self.problems[why] = None
        self._leaf, self._leaf_at = part, body_at

    def _leave(self, depth: int) -> None:
        for boundary, _ in self._open[depth:]:
            if self._depths.get(boundary, -1) >= depth:
                del self._depths[boundary]
        del self._open[depth:]

    def _end_leaf(self, at: int) -> None:
        if self._leaf is not None:
            end = at
            while end > self._leaf_at and self._raw[end - 1 : end] == b"\r":
                end -= 1
            self._leaf.content = self._raw[self._leaf_at : max(end, self._leaf_at)]
            self._leaf = None

    def _dashed_lines(self) -> Iterator[tuple[int, int, bytes]]:
        """For each line with `--`: the position of the line break before it, of the next line, and the text behind."""
        raw = self._raw
        at = max(self._leaf_at - 1, 0)
        for _ in range(MOST_DASHED_LINES):
            at = raw.find(b"\n--", at)
            if at < 0:
                return
            end = raw.find(b"\n", at + 1)
            end = len(raw) if end < 0 else end
            if end - at < 300:
                yield at, end + 1, raw[at + 3 : end].rstrip()
            at = end
        self.problems["it has too many lines that look like boundaries"] = None

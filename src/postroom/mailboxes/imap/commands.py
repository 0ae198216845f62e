"""Writes IMAP commands: what must be sent, and where the server is waited for. Pure.

Values from outside (folder names, search words, passwords) are quoted, or sent as literals; never as they are.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from postroom.mailboxes.imap.errors import BadAnswer

LONGEST_QUOTED = 1_000
LARGEST_UID = 2**32 - 1
# A set of this many parts is written into one command: servers limit a command's length.
MOST_IN_SET = 500
_QUOTABLE = re.compile(rb"[\x20-\x7e]*")
_RANGE = re.compile(r"(\d{1,10})(?::(\d{1,10}))?")


@dataclass(frozen=True, slots=True)
class Literal:
    """Content that is sent with its length before it."""

    content: bytes


Part = bytes | Literal
"""A part of a command: as it is, or as a literal."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command without its tag. Only its name appears in errors."""

    name: str
    parts: tuple[Part, ...]

    def __repr__(self) -> str:
        return f"Command({self.name})"


def command(name: str, *parts: Part) -> Command:
    """The parts are separated by spaces."""
    spaced: list[Part] = [name.encode()]
    for part in parts:
        spaced += [b" ", part]
    return Command(name, tuple(_join_bytes(spaced)))


def _join_bytes(parts: Iterable[Part]) -> Iterator[Part]:
    """Neighbouring bytes as one part."""
    text = b""
    for part in parts:
        if isinstance(part, Literal):
            if text:
                yield text
            yield part
            text = b""
        else:
            text += part
    if text:
        yield text


def string(value: str | bytes) -> Part:
    """A value from outside: quoted if that is possible, otherwise a literal."""
    raw = value.encode() if isinstance(value, str) else value
    if len(raw) <= LONGEST_QUOTED and _QUOTABLE.fullmatch(raw):
        return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
    return Literal(raw)


def is_keyword(name: str) -> bool:
    """Whether a flag may have this name: an atom, which is plain ASCII without spaces and brackets."""
    return _KEYWORD.fullmatch(name) is not None


_KEYWORD = re.compile(r"[A-Za-z0-9$._+/=:&~^!@#',;<>?|`-]{1,100}")


def flag_list(flags: Collection[str]) -> bytes:
    """Flags in parentheses: system flags such as \\Seen, and keywords."""
    for each in flags:
        if not is_keyword(each.removeprefix("\\")):
            raise ValueError(f"{each[:50]!r} is not a flag")
    return f"({' '.join(sorted(flags))})".encode()


def wire_pieces(parts: Sequence[Part], tag: str, literal_plus: int) -> list[bytes]:
    """The pieces to send: before each but the first, the server's continuation is waited for.

    A literal of up to `literal_plus` bytes is sent without waiting (LITERAL+, LITERAL-).
    """
    pieces, current = list[bytes](), tag.encode() + b" "
    for part in parts:
        if isinstance(part, bytes):
            current += part
        elif len(part.content) <= literal_plus:
            current += b"{%d+}\r\n" % len(part.content) + part.content
        else:
            pieces.append(current + b"{%d}\r\n" % len(part.content))
            current = part.content
    return [*pieces, current + b"\r\n"]


def uid_set(uids: Collection[int]) -> str:
    """The UIDs as a set, neighbours as ranges."""
    ranges: list[list[int]] = []
    for uid in sorted(set(uids)):
        if ranges and ranges[-1][1] == uid - 1:
            ranges[-1][1] = uid
        else:
            ranges.append([uid, uid])
    return ",".join(f"{first}:{last}" if last > first else f"{first}" for first, last in ranges)


def read_ranges(text: str) -> list[tuple[int, int]]:
    """The ranges of a set of UIDs from the server, as they are written. Raises BadAnswer for anything else."""
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        given = _RANGE.fullmatch(part)
        if given is None:
            raise BadAnswer("a set of UIDs is malformed")
        first, last = int(given.group(1)), int(given.group(2) or given.group(1))
        if not (1 <= first <= LARGEST_UID and 1 <= last <= LARGEST_UID):
            raise BadAnswer("a set of UIDs is out of range")
        found.append((first, last))
    return found


def read_uid_set(text: str, most: int = 300_000) -> list[int]:
    """The UIDs of a set from the server, in its order. Raises BadAnswer for anything else, or for more than `most`."""
    found: list[int] = []
    for first, last in read_ranges(text):
        if len(found) + abs(last - first) >= most:
            raise BadAnswer("a set of UIDs is out of range")
        found += range(first, last + 1) if first <= last else range(first, last - 1, -1)
    return found

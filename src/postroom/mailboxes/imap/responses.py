"""Reads what an IMAP server sends: bytes in, responses out. Pure: no socket, no clock.

Everything is bounded, since a server may be hostile or broken: the length of a line, of a literal and of a whole
response, how deep lists are nested, and how many values a response has. Memory never grows beyond those bounds, and
work is linear in the bytes. Anything that is not IMAP raises BadAnswer, after which the reader must not be used again.

A value is an atom (`str`), a string (`bytes`, from a quoted string or a literal), a list (`tuple`) or NIL (`None`).
"""

import re
from dataclasses import dataclass
from typing import Literal

from postroom.mailboxes.imap.errors import AnswerTooLarge, BadAnswer

Value = str | bytes | None | tuple["Value", ...]
Kind = Literal["OK", "NO", "BAD", "BYE", "PREAUTH"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one response."""

    line: int = 4 * 2**20
    literal: int = 2 * 2**20
    response: int = 8 * 2**20
    literals: int = 1_000
    values: int = 300_000
    depth: int = 32


@dataclass(frozen=True, slots=True)
class Status:
    """OK, NO, BAD, BYE or PREAUTH: the end of a command if it has a tag. The text may say anything."""

    tag: str | None
    kind: Kind
    code: str | None = None
    arguments: tuple[Value, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Data:
    """An untagged response with data, such as `* 12 FETCH (…)`: number 12, kind FETCH. `size` is its bytes."""

    kind: str
    number: int | None
    values: tuple[Value, ...]
    size: int = 0


@dataclass(frozen=True, slots=True)
class Continuation:
    """The server waits for the rest of a command."""

    text: bytes


Response = Status | Data | Continuation

_LITERAL = re.compile(rb"~?\{(\d{1,20})\+?\}\Z")
_STATUS = re.compile(rb"(\S{1,64}) (OK|NO|BAD|BYE|PREAUTH)(?: |\Z)", re.IGNORECASE)
_CODE = re.compile(rb"\[([A-Za-z0-9._/=+-]{1,64})(?: ([^\]]*))?\] ?")
_NUMBER = re.compile(r"\d{1,20}")
# An atom, as lenient as servers are; brackets with their content belong to it, as in BODY[HEADER.FIELDS (DATE)]<0>.
_ATOM = re.compile(rb'[^\s(){"\[\x00]*(?:\[[^\]\r\n\x00]*\](?:<\d+>)?)?[^\s(){"\x00]*')
_QUOTED = re.compile(rb'"((?:[^"\\\r\n\x00]++|\\[^\r\n\x00])*+)"')
_ESCAPED = re.compile(rb"\\(.)")


class ResponseReader:
    """Collects bytes into responses."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._buffer = bytearray()
        self._searched = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._line = 0
        self._wanted: int | None = None

    @property
    def is_between_responses(self) -> bool:
        return not self._buffer and not self._parts and self._wanted is None

    def feed(self, data: bytes) -> list[Response]:
        """The responses that are complete with these bytes."""
        self._buffer += data
        found: list[Response] = []
        while (response := self._next()) is not None:
            found.append(response)
        return found

    def _next(self) -> Response | None:
        while True:
            if self._wanted is not None:
                if len(self._buffer) < self._wanted:
                    return None
                self._take(self._wanted)
                self._wanted = None
            end = self._buffer.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(self._buffer)
                self._check_line(len(self._buffer))
                return None
            self._check_line(end)
            self._line += end
            line = self._take(end + 1)
            self._parts[-1] = line = line.rstrip(b"\r\n")
            literal = None if _is_text(self._parts[0]) else _LITERAL.search(line)
            if literal is None:
                return self._finish()
            self._parts[-1] = line[: literal.start()]
            self._begin_literal(int(literal.group(1)))

    def _check_line(self, size: int) -> None:
        if self._line + size > self._limits.line:
            raise AnswerTooLarge(f"a line has more than {self._limits.line:,} bytes")

    def _begin_literal(self, size: int) -> None:
        if len(self._parts) > 2 * self._limits.literals:
            raise AnswerTooLarge(f"a response has more than {self._limits.literals:,} literals")
        if size > self._limits.literal:
            raise AnswerTooLarge(
                f"a literal of {size:,} bytes was announced; at most {self._limits.literal:,} were asked for"
            )
        if self._size + size > self._limits.response:
            raise AnswerTooLarge(f"a response has more than {self._limits.response:,} bytes")
        self._wanted = size

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        self._searched = 0
        self._size += count
        if self._size > self._limits.response:
            raise AnswerTooLarge(f"a response has more than {self._limits.response:,} bytes")
        self._parts.append(taken)
        return taken

    def _finish(self) -> Response:
        parts, size = self._parts, self._size
        self._parts, self._size, self._line = [], 0, 0
        return _response(parts, size, self._limits)


def _is_text(line: bytes) -> bool:
    """Whether the line ends in text for people, in which braces mean nothing."""
    return line.startswith(b"+") or _STATUS.match(line) is not None


def _response(parts: list[bytes], size: int, limits: Limits) -> Response:
    line = parts[0]
    if line.startswith(b"+"):
        return Continuation(line[1:].strip())
    if (status := _STATUS.match(line)) is not None:
        return _status(status, line, limits)
    if not line.startswith(b"* "):
        raise BadAnswer("a line is neither a response nor the end of a command")
    values = _Values(parts, limits, begin=2).all()
    match values:
        case (str() as number, str() as kind, *rest) if _NUMBER.fullmatch(number):
            return Data(kind.upper(), int(number), tuple(rest), size)
        case (str() as kind, *rest) if kind:
            return Data(kind.upper(), None, tuple(rest), size)
        case _:
            raise BadAnswer("an untagged response has no name")


def _status(found: re.Match[bytes], line: bytes, limits: Limits) -> Status:
    tag, kind = _text(found.group(1)), _text(found.group(2)).upper()
    rest = line[found.end() :]
    code, arguments = None, ()
    if (given := _CODE.match(rest)) is not None:
        code, rest = _text(given.group(1)).upper(), rest[given.end() :]
        try:
            arguments = _Values([given.group(2) or b""], limits).all()
        except BadAnswer:
            # Its name is what matters; some servers write text where values belong.
            arguments = ()
    tagged = None if tag == "*" else tag
    for each in ("OK", "NO", "BAD", "BYE", "PREAUTH"):
        if each == kind:
            return Status(tagged, each, code, arguments, _text(rest))
    raise BadAnswer("a status is unknown")


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


class _Values:
    """The values of one response, whose odd parts are literals. Not recursive: hostile nesting must not exhaust the
    stack.
    """

    def __init__(self, parts: list[bytes], limits: Limits, begin: int = 0) -> None:
        self._parts = parts
        self._limits = limits
        self._begin = begin
        self._count = 0
        self._open: list[list[Value]] = [[]]

    def all(self) -> tuple[Value, ...]:
        for number, part in enumerate(self._parts):
            if number % 2:
                self._add(part)
            else:
                self._read(part, self._begin if number == 0 else 0)
        if len(self._open) != 1:
            raise BadAnswer("a list is not closed")
        return tuple(self._open[0])

    def _add(self, value: Value) -> None:
        self._count += 1
        if self._count > self._limits.values:
            raise AnswerTooLarge(f"a response has more than {self._limits.values:,} values")
        self._open[-1].append(value)

    def _read(self, line: bytes, at: int) -> None:
        end = len(line)
        while at < end:
            match line[at]:
                case 0x20:
                    at += 1
                case 0x28:  # (
                    if len(self._open) > self._limits.depth:
                        raise BadAnswer(f"lists are nested more than {self._limits.depth} deep")
                    self._open.append([])
                    at += 1
                case 0x29:  # )
                    if len(self._open) == 1:
                        raise BadAnswer("a list is closed that was not opened")
                    closed = tuple(self._open.pop())
                    self._add(closed)
                    at += 1
                case 0x22:  # "
                    quoted = _QUOTED.match(line, at)
                    if quoted is None:
                        raise BadAnswer("a quoted string has no end")
                    text = quoted.group(1)
                    self._add(_ESCAPED.sub(rb"\1", text) if b"\\" in text else text)
                    at = quoted.end()
                case _:
                    at = self._read_atom(line, at)

    def _read_atom(self, line: bytes, at: int) -> int:
        found = _ATOM.match(line, at)
        if found is None or found.end() == at:
            raise BadAnswer("a value begins with a character that no value begins with")
        atom = _text(found.group())
        self._add(None if atom.upper() == "NIL" else atom)
        return found.end()

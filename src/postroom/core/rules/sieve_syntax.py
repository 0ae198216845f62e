"""The syntax of Sieve (RFC 5228): commands, tests and arguments, each with its line, without their meaning.

A comment `# rule:[name]` before a command, as webmail programs write it, names that command.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from postroom.core.errors import BadInput

LARGEST_SCRIPT = 1024 * 1024
MOST_TOKENS = 200_000
DEEPEST_SCRIPT = 15
LONGEST_NUMBER = 15
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_TOKEN = re.compile(
    r"""
    (?P<blank>  [ \t\r\n]++ )
  | \#[ \t]*rule:\[(?P<named>[^\]\n]*)\][^\n]*+
  | (?P<comment> \#[^\n]*+ | /\*(?s:.*?)\*/ )
  | text:[ \t]*(?:\#[^\n]*)?\r?\n(?P<lines>(?s:.*?)\r?\n|)\.\r?(?:\n|$)
  | "(?P<quoted>(?:[^"\\]|\\(?s:.))*+)"
  | (?P<number> \d++[KMGkmg]? )
  | (?P<tag>    :[A-Za-z_]\w*+ )
  | (?P<word>   [A-Za-z_]\w*+ )
  | (?P<mark>   [\[\](){},;] )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Token(NamedTuple):
    kind: str
    text: str
    line: int


class Tag(NamedTuple):
    """A tagged argument, such as `:copy`, without its colon."""

    name: str


Argument = Tag | int | list[str]


@dataclass(slots=True)
class Call:
    """A test or a command: its name, its arguments in order, and the tests and commands inside it."""

    line: int
    name: str
    arguments: list[Argument] = field(default_factory=list[Argument])
    tests: "list[Call]" = field(default_factory=lambda: list[Call]())
    block: "list[Call] | None" = None
    title: str | None = None


def read_sieve(text: str) -> list[Call]:
    """The commands of a script. Raises BadInput, which names the line."""
    if len(text) > LARGEST_SCRIPT or len(text.encode("utf-8", "replace")) > LARGEST_SCRIPT:
        raise BadInput("script", "is larger than 1 MiB", "divide it")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadInput(f"line {line}", "has a NUL character", "give the script itself, as plain text")
    return _Parser(_tokens(text)).commands(0)


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise BadInput(f"line {line}", "is not understood", "fix it; the script must be Sieve")
        kind = found.lastgroup or ""
        content = found[kind] if kind else ""
        if kind == "quoted":
            tokens.append(Token("string", _ESCAPE.sub(r"\1", content), line))
        elif kind == "lines":
            tokens.append(Token("string", re.sub(r"^\.\.", ".", content, flags=re.MULTILINE), line))
        elif kind not in ("blank", "comment") and not (kind == "named" and tokens and tokens[-1].text not in "{};"):
            tokens.append(Token(kind, content, line))
        if len(tokens) > MOST_TOKENS:
            raise BadInput(f"line {line}", "has one token too many", "divide the script")
        line += text.count("\n", at, found.end())
        at = found.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def commands(self, depth: int) -> list[Call]:
        """The commands up to the end of the block, or of the script."""
        found: list[Call] = []
        title: str | None = None
        while (token := self._next()) is not None:
            if token.kind == "named":
                title = token.text.strip() or None
            elif token.text == "}" and depth and token.kind == "mark":
                return found
            elif token.kind == "word":
                found.append(self._command(token, depth))
                found[-1].title, title = title, None
            else:
                raise _wrong(token)
        if depth:
            raise BadInput("script", "ends inside a block", "close it with }")
        return found

    def _command(self, name: Token, depth: int) -> Call:
        call = self._call(name, depth)
        end = self._next()
        if end is None:
            raise BadInput(f"line {name.line}", f"{name.text} does not end", "end it with ; or a block")
        if end.kind == "mark" and end.text == "{":
            if depth >= DEEPEST_SCRIPT:
                raise BadInput(f"line {end.line}", "is nested too deep", "flatten it")
            call.block = self.commands(depth + 1)
        elif end.text != ";" or end.kind != "mark":
            raise _wrong(end)
        return call

    def _call(self, name: Token, depth: int) -> Call:
        """A name with its arguments, and the tests that follow them."""
        if depth > 2 * DEEPEST_SCRIPT:
            raise BadInput(f"line {name.line}", "is nested too deep", "flatten it")
        call = Call(name.line, name.text.lower())
        while (token := self._peek()) is not None:
            if token.kind == "tag":
                call.arguments.append(Tag(token.text[1:].lower()))
            elif token.kind == "string":
                call.arguments.append([token.text])
            elif token.kind == "number":
                call.arguments.append(_number(token))
            elif token.kind == "mark" and token.text == "[":
                self._at += 1
                call.arguments.append(self._strings())
                continue
            else:
                break
            self._at += 1
        self._inner(call, token, depth)
        return call

    def _inner(self, call: Call, token: Token | None, depth: int) -> None:
        if token is None:
            return
        if token.kind == "word":
            self._at += 1
            call.tests = [self._call(token, depth + 1)]
        elif token.kind == "mark" and token.text == "(":
            while token.text != ")":
                self._at += 1
                name = self._next()
                if name is None or name.kind != "word":
                    raise _wrong(name)
                call.tests.append(self._call(name, depth + 1))
                token = self._peek()
                if token is None or token.text not in (",", ")"):
                    raise _wrong(token)
            self._at += 1

    def _strings(self) -> list[str]:
        found: list[str] = []
        while (token := self._next()) is not None and token.kind == "string":
            found.append(token.text)
            end = self._next()
            if end is not None and end.text == "]" and end.kind == "mark":
                return found
            if end is None or end.text != "," or end.kind != "mark":
                raise _wrong(end)
        raise _wrong(token)

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> Token | None:
        token = self._peek()
        self._at += 1
        return token


def _number(token: Token) -> int:
    digits = token.text.rstrip("KMGkmg")
    if len(digits) > LONGEST_NUMBER:
        raise BadInput(f"line {token.line}", "has a number that is too large", "write a smaller one")
    return int(digits) * UNITS[token.text[len(digits) :].lower()]


def _wrong(token: Token | None) -> BadInput:
    if token is None:
        return BadInput("script", "ends too early", "finish it")
    return BadInput(f"line {token.line}", f"{token.text[:40]!r} is in the wrong place", "fix that line")

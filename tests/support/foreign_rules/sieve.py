"""An interpreter of Sieve, written from RFC 5228 (with 3894 `copy`, 5232 `imap4flags`, 5173 `body`) for tests.

It shares nothing with the importer: it has its own lexer and parser, runs the script on one message, and returns what
a mail server would do.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.utils import getaddresses
from typing import Any

TOKENS = re.compile(
    r'\s+|#[^\n]*|/\*.*?\*/|(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>\d+[KMG]?)|(?P<tag>:\w+)|(?P<name>\w+)|(?P<mark>[\[\](){},;])',
    re.DOTALL,
)
SCALE = {"K": 1024, "M": 1024**2, "G": 1024**3}


class Stop(Exception):
    """The script stops."""


@dataclass
class Result:
    """The actions that a server takes."""

    folders: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    inbox: frozenset[str] | None = None
    redirects: set[str] = field(default_factory=set[str])


def run(script: str, message: EmailMessage) -> Result:
    """Run a script on a message."""
    machine = _Machine(message)
    with contextlib.suppress(Stop):
        machine.block(_Parser(script).block(end=None))
    if machine.implicit_keep:
        machine.result.inbox = frozenset(machine.flags)
    return machine.result


class _Parser:
    """Commands and tests as tuples: (name, [arguments], [tests], block)."""

    def __init__(self, script: str) -> None:
        self.tokens = [(found.lastgroup, found.group()) for found in TOKENS.finditer(script) if found.lastgroup]

    def block(self, end: str | None) -> list[Any]:
        commands: list[Any] = []
        while self.tokens and self.tokens[0][1] != end:
            name, arguments, tests = self.call()
            inside: list[Any] = []
            if self.take() == "{":
                inside = self.block("}")
                self.take()
            commands.append((name, arguments, tests, inside))
        return commands

    def take(self) -> str:
        return self.tokens.pop(0)[1]

    def call(self) -> tuple[str, list[Any], list[Any]]:
        name = self.take().lower()
        arguments: list[Any] = []
        while self.tokens[0][0] in ("text", "number", "tag") or self.tokens[0][1] == "[":
            arguments.append(self.argument())
        tests: list[Any] = []
        if self.tokens[0][1] == "(":
            while self.take() != ")":
                tests.append(self.call())
        elif self.tokens[0][0] == "name":
            tests.append(self.call())
        return name, arguments, tests

    def argument(self) -> Any:
        kind, text = self.tokens.pop(0)
        if kind == "text":
            return [re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)]
        if kind == "number":
            return int(text.rstrip("KMG")) * SCALE.get(text[-1], 1)
        if kind == "tag":
            return text.lower()
        found: list[str] = []
        while text != "]":
            found += self.argument()
            text = self.take()
        return found


class _Machine:
    def __init__(self, message: EmailMessage) -> None:
        self.message = message
        self.size = len(message.as_bytes())
        self.flags: set[str] = set()
        self.implicit_keep = True
        self.result = Result()

    def block(self, commands: list[Any]) -> None:
        chosen = False
        for name, arguments, tests, inside in commands:
            if name in ("if", "elsif", "else"):
                if name == "if":
                    chosen = False
                if not chosen and (name == "else" or self.test(tests[0])):
                    chosen = True
                    self.block(inside)
            else:
                self.act(name, arguments)

    def act(self, name: str, arguments: list[Any]) -> None:
        strings = [each for each in arguments if isinstance(each, list)]
        match name:
            case "stop":
                raise Stop
            case "keep":
                self.result.inbox = frozenset(self.flags)
                self.implicit_keep = False
            case "discard":
                self.implicit_keep = False
            case "fileinto":
                [[folder]] = strings
                if folder.upper() == "INBOX":
                    self.result.inbox = frozenset(self.flags)
                else:
                    self.result.folders[folder] = frozenset(self.flags)
                self.implicit_keep = self.implicit_keep and ":copy" in arguments
            case "redirect":
                self.result.redirects.update(strings[0])
                self.implicit_keep = self.implicit_keep and ":copy" in arguments
            case "addflag":
                self.flags.update(flag.lower() for flag in strings[0])
            case "setflag":
                self.flags = {flag.lower() for flag in strings[0]}
            case "removeflag":
                self.flags.difference_update(flag.lower() for flag in strings[0])
            case "require":
                pass
            case _:
                raise AssertionError(f"no such command: {name}")

    def test(self, call: Any) -> bool:
        name, arguments, tests = call
        strings = [each for each in arguments if isinstance(each, list)]
        match name:
            case "true" | "false":
                return name == "true"
            case "not":
                return not self.test(tests[0])
            case "allof":
                return all(self.test(each) for each in tests)
            case "anyof":
                return any(self.test(each) for each in tests)
            case "exists":
                return all(header in self.message for header in strings[0])
            case "size":
                limit = next(each for each in arguments if isinstance(each, int))
                return self.size > limit if ":over" in arguments else self.size < limit
            case "header":
                names, keys = strings[-2:]
                values = [value.strip() for name in names for value in self.values(name)]
                return any(_matches(arguments, value, key) for value in values for key in keys)
            case "address":
                names, keys = strings[-2:]
                parts = [_part(arguments, each) for name in names for each in self.addresses(name)]
                return any(_matches(arguments, part, key) for part in parts for key in keys)
            case _:
                raise AssertionError(f"no such test: {name}")

    def values(self, name: str) -> Iterator[str]:
        for value in self.message.get_all(name, []):
            yield str(make_header(decode_header(str(value))))

    def addresses(self, name: str) -> Iterator[str]:
        for _, address in getaddresses([str(value) for value in self.message.get_all(name, [])]):
            if "@" in address:
                yield address


def _part(arguments: list[Any], address: str) -> str:
    local, _, domain = address.rpartition("@")
    if ":localpart" in arguments:
        return local
    return domain if ":domain" in arguments else address


def _matches(arguments: list[Any], value: str, key: str) -> bool:
    if ["i;octet"] not in arguments:
        value, key = _ascii_lower(value), _ascii_lower(key)
    if ":contains" in arguments:
        return key in value
    if ":matches" in arguments:
        return _like(key, value)
    return key == value


def _ascii_lower(text: str) -> str:
    return "".join(chr(ord(each) + 32) if "A" <= each <= "Z" else each for each in text)


def _like(pattern: str, value: str) -> bool:
    """Wildcards by dynamic programming: `*` any characters, `?` one, `\\` takes the next literally."""
    parts: list[str | bool | None] = []
    characters = iter(pattern)
    for each in characters:
        parts.append({"*": True, "?": None}.get(each, each) if each != "\\" else next(characters, "\\"))
    reached = {0}
    for part in parts:
        if part is True:
            reached = set(range(min(reached), len(value) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(value) and part in (None, value[at])}
    return len(value) in reached

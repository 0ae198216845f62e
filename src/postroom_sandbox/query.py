"""Gmail's search language, as much of it as the sandbox understands.

    all = either+    either = term ("OR" term)*    term = "-"? (operator ":")? (word | "(" all ")" | "{" term* "}")

Adjacent terms must all match; OR binds more tightly: `a OR b c` is `(a or b) and c`. Braces are an OR of their content;
parentheses group, also after an operator: `subject:(dinner movie)`. A leading minus negates, quotes hold words
together. A colon after anything but an operator is a mark like any other: `https://post.example` is searched as text.
"""

import re
from dataclasses import dataclass

from postroom_sandbox.refusal import invalid
from postroom_sandbox.search_terms import (
    ANY_TIME,
    OPERATORS,
    Found,
    Received,
    Setting,
    Test,
    either,
    every,
    opposite,
    term,
)

_TOKEN = re.compile(
    rf"""\s*(?:(?P<minus>-)(?=[^\s)}}])|(?P<mark>[(){{}}])|(?P<operator>{"|".join(sorted(OPERATORS))}):(?=[^\s)}}])
    |"(?P<quoted>[^"]*)"?|(?P<bare>[^\s(){{}}"]+))""",
    re.IGNORECASE | re.VERBOSE,
)
_OUT_OF_SIGHT = frozenset({"anywhere", "spam", "trash"})
DEEPEST_GROUP = 50


@dataclass(frozen=True)
class Query:
    """A parsed search. `everywhere` is set if it names spam or trash; nothing outside of `received` can match."""

    test: Test = lambda _message: True
    everywhere: bool = False
    received: Received = ANY_TIME

    def matches(self, message: Found) -> bool:
        return self.test(message)


def parse_query(text: str, setting: Setting) -> Query:
    reader = _Reader(text, setting)
    tests = reader.tests_until("")
    limits = [test for test in tests if isinstance(test, Received)]
    received = Received(
        max((each.since for each in limits), default=ANY_TIME.since),
        min((each.before for each in limits), default=ANY_TIME.before),
    )
    return Query(every(tests), reader.everywhere, received)


def parse_field(operator: str, text: str, setting: Setting) -> Test:
    """Parse the content of a field such as From in a filter: as if it stood in parentheses after its operator."""
    return every(_Reader(text, setting).tests_until("", operator))


def parse_all(text: str, setting: Setting) -> Test:
    return every(_Reader(text, setting).tests_until(""))


def parse_any(text: str, setting: Setting) -> Test:
    """Parse a search of which any term may match, as if it stood in braces."""
    return _Reader(text, setting).any_until("")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


class _Reader:
    """Parses a search from left to right."""

    def __init__(self, text: str, setting: Setting) -> None:
        self.everywhere = False
        self._tokens = [_token(found) for found in _TOKEN.finditer(text)]
        self._next = 0
        self._depth = 0
        self._setting = setting

    def tests_until(self, end: str, operator: str = "") -> list[Test]:
        """Parse terms up to a closing mark; all must match, apart from alternatives joined by OR."""
        groups: list[list[Test]] = []
        joined = False
        while (token := self._take()) is not None and not (token.kind == "mark" and token.text == end):
            if token.kind == "bare" and token.text == "OR":
                joined = bool(groups)
            elif token.kind == "bare" and token.text == "AND":
                joined = False
            else:
                test = self._term(token, operator)
                if joined:
                    groups[-1].append(test)
                else:
                    groups.append([test])
                joined = False
        return [either(group) for group in groups]

    def any_until(self, end: str, operator: str = "") -> Test:
        tests: list[Test] = []
        while (token := self._take()) is not None and not (token.kind == "mark" and token.text == end):
            if not (token.kind == "bare" and token.text in ("OR", "AND")):
                tests.append(self._term(token, operator))
        return either(tests)

    def _term(self, token: _Token, operator: str, negated: bool = False) -> Test:
        match token.kind, token.text:
            case "minus", _:
                return opposite(self._term(self._value(), operator, negated=not negated))
            case "operator", name:
                return self._term(self._value(), name.lower(), negated)
            case "mark", "(" | "{" as mark:
                return self._group(mark, operator)
            case "mark", mark:
                raise invalid(f"Invalid search: unexpected {mark}")
            case _, value:
                self.everywhere |= not negated and operator in ("in", "label") and value.lower() in _OUT_OF_SIGHT
                if not operator and token.kind == "bare" and value == "AROUND":
                    raise invalid("The sandbox does not know AROUND")
                return term(operator, value, self._setting, quoted=token.kind == "quoted")

    def _group(self, mark: str, operator: str) -> Test:
        self._depth += 1
        if self._depth > DEEPEST_GROUP:
            raise invalid("Invalid search: nested too deeply")
        test = every(self.tests_until(")", operator)) if mark == "(" else self.any_until("}", operator)
        self._depth -= 1
        return test

    def _value(self) -> _Token:
        token = self._take()
        if token is None:
            raise invalid("Invalid search: something is missing at the end")
        return token

    def _take(self) -> _Token | None:
        if self._next >= len(self._tokens):
            return None
        self._next += 1
        return self._tokens[self._next - 1]


def _token(found: re.Match[str]) -> _Token:
    kind = found.lastgroup or "bare"
    return _Token(kind, found[kind])

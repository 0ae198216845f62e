"""How single conditions are written as tests of Sieve. Sieve ignores the case of ASCII letters only."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from postroom.core.rules.condition_spec import Inexpressible, SieveTerm

_LITERAL = re.compile(r"(?:[^\\.+*?()|\[\]{}^$]|\\[\\.+*?()|\[\]{}^$])*")
# Expressions that mean the same in POSIX and in RE2: no classes with a backslash, no escaped letters or digits.
_SAME_EXPRESSION = re.compile(r"(?:[^\\\[\]{}]|\\[^\w\s]|\[\^?\]?[^\\\[\]]*\])*")


def address(*headers: str, before: str = "") -> SieveTerm:
    """One address, or one domain, in one of the headers."""

    def write(argument: str, needs: set[str]) -> str:
        wanted = f"{before}{argument}".strip()
        part, text = ("domain", wanted[1:]) if wanted.startswith("@") else ("all", wanted)
        return f"address :is :{part} {quoted_list(headers)} {quoted(_ascii(text))}"

    return write


def header_contains(name: str) -> SieveTerm:
    return lambda argument, needs: f'header :contains "{name}" {quoted(_ascii(argument))}'


def text_contains(argument: str, needs: set[str]) -> str:
    needs.add("body")
    return f"body :text :contains {quoted(_ascii(argument))}"


def header_pattern(name: str) -> SieveTerm:
    return lambda argument, needs: header_match({"name": name, "pattern": argument}, needs)


def header_match(argument: Mapping[str, Any], needs: set[str]) -> str:
    name = quoted(argument["name"].rstrip(":"))
    if "pattern" not in argument:
        return f"exists {name}"
    pattern = _ascii(argument["pattern"])
    for match, text in ((":contains", pattern), (":is", pattern.removeprefix("^").removesuffix("$"))):
        if _LITERAL.fullmatch(text) and (match == ":contains" or f"^{text}$" == pattern):
            return f"header {match} {name} {quoted(_unescape(text))}"
    if not is_same_expression(pattern):
        raise Inexpressible("the pattern may mean something else in Sieve")
    needs.add("regex")
    return f"header :regex {name} {quoted(pattern)}"


def is_same_expression(pattern: str) -> bool:
    """Whether a regular expression means the same in Sieve, which uses POSIX, and here."""
    return pattern.isascii() and "(?" not in pattern and _SAME_EXPRESSION.fullmatch(pattern) is not None


def quoted_list(texts: Sequence[str]) -> str:
    return quoted(texts[0]) if len(texts) == 1 else f"[{', '.join(map(quoted, texts))}]"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unescape(pattern: str) -> str:
    return re.sub(r"\\(.)", r"\1", pattern)


def _ascii(text: str) -> str:
    if not text.isascii():
        raise Inexpressible("Sieve ignores the case of ASCII letters only")
    return text

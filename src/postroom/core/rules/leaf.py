"""A single condition, and the checks of its argument that all of them share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from postroom.core.errors import PostroomError
from postroom.core.mail.addresses import canonical_domain
from postroom.core.rules.facts import Seen
from postroom.core.rules.patterns import Pattern, PatternRefused, pattern_of
from postroom.core.suggestions import did_you_mean

LONGEST_TEXT = 1_000

Key = tuple[str, str]
Test = Callable[[Seen], bool]


class BrokenRule(PostroomError):
    """A rule is invalid. Names the field, the problem and the remedy."""

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Check:
    """A condition whose argument was checked: its test, and the keys that a message has for which it holds.

    For the index in core/rules/rule_index.py: such a message has at least one of `keys`, and all of `needs`.
    """

    test: Test
    keys: tuple[Key, ...] | None = None
    pattern: Pattern | None = None
    needs: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single condition with its argument, such as `sender_domain: shop.example`, and its check."""

    kind: str
    argument: object
    test: Test
    keys: tuple[Key, ...] | None = None
    pattern: Pattern | None = None
    needs: tuple[Key, ...] = ()


def suggestion(given: str, known: tuple[str, ...]) -> str:
    """The remedy for a name that does not exist."""
    return did_you_mean(given[:80], known, f"use one of {', '.join(known)}")


def text_of(field: str, argument: Any) -> str:
    if not isinstance(argument, str) or not argument.strip():
        raise BrokenRule(field, "is not a text, or is empty", "give a text")
    if len(argument) > LONGEST_TEXT:
        raise BrokenRule(field, f"is longer than {LONGEST_TEXT:,} characters", "shorten it")
    if "\0" in argument or not _encodable(argument):
        raise BrokenRule(field, "contains characters that no message has", "leave them out")
    return argument


def yes_or_no(field: str, argument: object) -> bool:
    if not isinstance(argument, bool):
        raise BrokenRule(field, "is neither true nor false", "write true or false")
    return argument


def one_of(field: str, argument: object, known: tuple[str, ...]) -> str:
    wanted = text_of(field, argument).strip().lower()
    if wanted not in known:
        raise BrokenRule(field, "is unknown", suggestion(wanted, known))
    return wanted


def domain_of(field: str, text: str) -> str:
    domain = canonical_domain(text.removeprefix("@").rstrip("."))
    if not domain or "@" in domain or " " in domain:
        raise BrokenRule(field, "is not a domain", "write it as shop.example")
    return domain


def pattern_in(field: str, argument: object) -> Pattern:
    try:
        return pattern_of(text_of(field, argument))
    except PatternRefused as refused:
        raise BrokenRule(field, refused.problem, refused.remedy) from None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

"""The conditions of rules: a tree that is parsed once, refused if it is invalid, and then tested on many messages.

    {"and": [{"sender_domain": "shop.example"}, {"not": {"subject_contains": "invoice"}}]}

Parsing gives nodes: `All`, `AnyOf` and `Not` over leaves. A leaf has a test and, for the index in
`core/rules/rulebook.py`, its keys: a message for which the leaf holds has at least one of them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from postroom.core.errors import PostroomError
from postroom.core.mail.addresses import addresses, canonical, canonical_domain
from postroom.core.mail.headers import Headers, values
from postroom.core.rules.patterns import Pattern, PatternRefused, pattern_of
from postroom.core.strict import shown_name
from postroom.core.suggestions import did_you_mean

DEEPEST = 20
MOST_CONDITIONS = 1_000
LONGEST_TEXT = 1_000
RECIPIENT_HEADERS = ("to", "cc")
HOURS = {"h": 1, "d": 24, "w": 7 * 24}
_AGE = re.compile(r"([1-9]\d{0,4})([hdw])")
_HEADER_NAME = re.compile(r"[!-9;-~]+")

Key = tuple[str, str]


class BrokenRule(PostroomError):
    """A rule is invalid. Names the field, the problem and the remedy."""

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """The facts about a message that conditions look at.

    `labels` are ids as they are, and casefolded names. `to` are the canonical addresses in To and Cc, as `recipients`
    returns them.
    """

    sender: str
    subject: str
    headers: Headers
    labels: frozenset[str]
    body_text: str = ""
    has_attachment: bool = False
    to: tuple[str, ...] = ()
    sent_at: datetime | None = None

    @property
    def domain(self) -> str:
        return self.sender.rpartition("@")[2]


def recipients(headers: Headers) -> tuple[str, ...]:
    """The canonical addresses in To and Cc, each once."""
    found = [each for name in RECIPIENT_HEADERS for value in values(headers, name) for each in addresses(value)]
    return tuple(dict.fromkeys(found))


class Seen:
    """One message while rules look at it. Values that many conditions need are computed once, on first use."""

    __slots__ = ("_body", "_headers", "_subject", "domain", "message", "now", "sender")

    def __init__(self, message: MessageFacts, now: datetime | None) -> None:
        self.message = message
        self.now = now
        self.sender = message.sender.lower()
        self.domain = self.sender.rpartition("@")[2]
        self._subject: str | None = None
        self._body: str | None = None
        self._headers: dict[str, list[str]] | None = None

    @property
    def subject(self) -> str:
        """Casefolded."""
        if self._subject is None:
            self._subject = self.message.subject.casefold()
        return self._subject

    @property
    def body(self) -> str:
        """Casefolded."""
        if self._body is None:
            self._body = self.message.body_text.casefold()
        return self._body

    @property
    def headers(self) -> dict[str, list[str]]:
        """The values of each header, by its lower-case name."""
        if self._headers is None:
            found: dict[str, list[str]] = {}
            for name, value in self.message.headers:
                found.setdefault(name.lower(), []).append(value)
            self._headers = found
        return self._headers


Test = Callable[[Seen], bool]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single condition, such as `sender_domain`."""

    kind: str
    argument: object
    test: Test
    keys: tuple[Key, ...] | None = None
    pattern: Pattern | None = None


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: "Node"


Node = Leaf | All | AnyOf | Not


def read_conditions(conditions: object) -> Node:
    """Parse and check the whole tree. Raises BrokenRule."""
    return _Reading().node(conditions, "if", 0)


def as_test(node: Node) -> Test:
    """One function that tests the whole tree."""
    match node:
        case Leaf():
            return node.test
        case Not(part):
            inner = as_test(part)
            return lambda seen: not inner(seen)
        case All(parts):
            tests = tuple(map(as_test, parts))
            return lambda seen: all(test(seen) for test in tests)
        case AnyOf(parts):
            tests = tuple(map(as_test, parts))
            return lambda seen: any(test(seen) for test in tests)


class _Reading:
    """Parses one tree and counts its conditions."""

    def __init__(self) -> None:
        self._count = 0

    def node(self, given: object, field: str, depth: int) -> Node:
        self._count += 1
        if depth > DEEPEST:
            raise BrokenRule(field, f"is nested deeper than {DEEPEST}", "flatten it")
        if self._count > MOST_CONDITIONS:
            raise BrokenRule(field, f"has more than {MOST_CONDITIONS:,} conditions", "make several rules of it")
        if not isinstance(given, Mapping) or len(cast("Mapping[object, object]", given)) != 1:
            several = isinstance(given, Mapping) and bool(cast("Mapping[object, object]", given))
            remedy = (
                "put them into a list under 'and' or 'or'" if several else 'write {"sender_domain": "shop.example"}'
            )
            raise BrokenRule(field, "is not an object with one key", remedy)
        ((kind, argument),) = cast("Mapping[object, object]", given).items()
        inside = f"{field}.{shown_name(str(kind))}"
        match kind:
            case "and":
                return All(self._nodes(argument, inside, depth))
            case "or":
                return AnyOf(self._nodes(argument, inside, depth))
            case "not":
                return Not(self.node(argument, inside, depth + 1))
            case str() if kind in LEAVES:
                return LEAVES[kind](inside, argument)
            case _:
                raise BrokenRule(inside, "is not a known condition", suggestion(str(kind), KINDS))

    def _nodes(self, given: object, field: str, depth: int) -> tuple[Node, ...]:
        if not isinstance(given, list) or not given:
            raise BrokenRule(field, "is not a list of conditions, or is empty", "give a list of at least one")
        parts = cast("list[object]", given)
        return tuple(self.node(part, f"{field}[{number}]", depth + 1) for number, part in enumerate(parts))


def suggestion(given: str, known: tuple[str, ...]) -> str:
    """The remedy for a name that does not exist."""
    return did_you_mean(given[:80], known, f"use one of {', '.join(known)}")


def _sender_email(field: str, argument: object) -> Leaf:
    wanted = canonical(_text(field, argument))
    if wanted is None:
        raise BrokenRule(field, "is not an address", "write it as ida@shop.example; for a domain use sender_domain")
    return Leaf("sender_email", argument, lambda seen: seen.sender == wanted, (("sender", wanted),))


def _sender_domain(field: str, argument: object) -> Leaf:
    wanted = _domain(field, _text(field, argument))
    return Leaf("sender_domain", argument, lambda seen: seen.domain == wanted, (("domain", wanted),))


def _to(field: str, argument: object) -> Leaf:
    text = _text(field, argument)
    if text.startswith("@"):
        at = f"@{_domain(field, text)}"
        return Leaf("to", argument, lambda seen: any(each.endswith(at) for each in seen.message.to), (("to", at),))
    wanted = canonical(text)
    if wanted is None:
        raise BrokenRule(field, "is not an address", "write ida@shop.example, or @shop.example for a whole domain")
    return Leaf("to", argument, lambda seen: wanted in seen.message.to, (("to", wanted),))


def _subject_contains(field: str, argument: object) -> Leaf:
    wanted = _text(field, argument).casefold()
    return Leaf("subject_contains", argument, lambda seen: wanted in seen.subject, (("subject", wanted),))


def _body_contains(field: str, argument: object) -> Leaf:
    wanted = _text(field, argument).casefold()
    return Leaf("body_contains", argument, lambda seen: wanted in seen.body, (("body", wanted),))


def _subject_regex(field: str, argument: object) -> Leaf:
    pattern = _pattern(field, argument)
    keys = (("pattern", pattern.text),)
    return Leaf("subject_regex", argument, lambda seen: pattern.finds(seen.message.subject), keys, pattern)


def _header_match(field: str, argument: object) -> Leaf:
    """`{"name": "Precedence"}` tests that the header exists; with `"pattern"`, that one of its values matches."""
    if not isinstance(argument, Mapping):
        raise BrokenRule(field, "is not an object", 'write {"name": "Precedence", "pattern": "bulk|list"}')
    wanted = cast("Mapping[object, object]", argument)
    for name in wanted:
        if name not in ("name", "pattern"):
            problem, remedy = "is not a field of header_match", suggestion(str(name), ("name", "pattern"))
            raise BrokenRule(f"{field}.{shown_name(str(name))}", problem, remedy)
    name = _text(f"{field}.name", wanted.get("name")).rstrip(":").lower()
    if not _HEADER_NAME.fullmatch(name):
        raise BrokenRule(f"{field}.name", "is not a header name", "write it as List-Id")
    keys = (("header", name),)
    if "pattern" not in wanted:
        return Leaf("header_match", wanted, lambda seen: name in seen.headers, keys)
    pattern = _pattern(f"{field}.pattern", wanted["pattern"])
    return Leaf("header_match", wanted, lambda seen: pattern.finds(*seen.headers.get(name, ())), keys, pattern)


def _label_present(field: str, argument: object) -> Leaf:
    """A label, by its exact id or by its name in any case."""
    wanted = _text(field, argument)
    folded = wanted.casefold()
    keys = tuple({("label", wanted): None, ("label", folded): None})
    return Leaf(
        "label_present",
        argument,
        lambda seen: wanted in seen.message.labels or folded in seen.message.labels,
        keys,
    )


def _list_id(field: str, argument: object) -> Leaf:
    wanted = _text(field, argument).casefold()
    return Leaf(
        "list_id",
        argument,
        lambda seen: any(wanted in value.casefold() for value in seen.headers.get("list-id", ())),
        (("header", "list-id"),),
    )


def _has_attachment(field: str, argument: object) -> Leaf:
    if not isinstance(argument, bool):
        raise BrokenRule(field, "is neither true nor false", "write true or false")
    return Leaf("has_attachment", argument, lambda seen: seen.message.has_attachment is argument)


def _older_than(field: str, argument: object) -> Leaf:
    age = age_of(argument)
    if age is None:
        raise BrokenRule(field, "is not an age", "write hours, days or weeks, such as 12h, 7d or 2w")

    def is_older(seen: Seen) -> bool:
        sent_at = seen.message.sent_at
        return sent_at is not None and seen.now is not None and seen.now - sent_at >= age

    return Leaf("older_than", argument, is_older)


def age_of(given: object) -> timedelta | None:
    """Parse an age such as `12h`, `7d` or `2w`; None for anything else."""
    found = _AGE.fullmatch(given) if isinstance(given, str) else None
    return timedelta(hours=int(found[1]) * HOURS[found[2]]) if found else None


LEAVES: Mapping[str, Callable[[str, object], Leaf]] = {
    "sender_email": _sender_email,
    "sender_domain": _sender_domain,
    "subject_contains": _subject_contains,
    "subject_regex": _subject_regex,
    "body_contains": _body_contains,
    "header_match": _header_match,
    "label_present": _label_present,
    "to": _to,
    "list_id": _list_id,
    "has_attachment": _has_attachment,
    "older_than": _older_than,
}
KINDS: tuple[str, ...] = ("and", "or", "not", *LEAVES)


def _domain(field: str, text: str) -> str:
    domain = canonical_domain(text.removeprefix("@").rstrip("."))
    if not domain or "@" in domain or " " in domain:
        raise BrokenRule(field, "is not a domain", "write it as shop.example")
    return domain


def _pattern(field: str, argument: object) -> Pattern:
    try:
        return pattern_of(_text(field, argument))
    except PatternRefused as refused:
        raise BrokenRule(field, refused.problem, refused.remedy) from None


def _text(field: str, argument: Any) -> str:
    if not isinstance(argument, str) or not argument.strip():
        raise BrokenRule(field, "is not a text, or is empty", "give a text")
    if len(argument) > LONGEST_TEXT:
        raise BrokenRule(field, f"is longer than {LONGEST_TEXT:,} characters", "shorten it")
    if "\0" in argument or not _encodable(argument):
        raise BrokenRule(field, "contains characters that no message has", "leave them out")
    return argument


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

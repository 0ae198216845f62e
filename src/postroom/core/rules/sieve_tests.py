"""Converts Sieve tests to conditions, with exactly the same meaning or not at all.

Sieve compares parts of headers as they are, ignoring the case of ASCII letters only, and `address` looks at the
addresses of exactly the header that it names. So most tests become patterns on one header. core/rules/sieve_writing.py
does the opposite.
"""

import math
import re
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from postroom.core.mail.addresses import canonical
from postroom.core.rules.condition_spec import Inexpressible
from postroom.core.rules.conditions import MOST_CONDITIONS
from postroom.core.rules.facts import ADDRESS_HEADERS as CONDITION_HEADERS
from postroom.core.rules.logic import Logic, every, negated, some
from postroom.core.rules.measures import LARGEST_SIZE
from postroom.core.rules.sieve_syntax import Call, Tag
from postroom.core.rules.sieve_terms import is_same_expression

MATCH_TYPES = ("is", "contains", "matches", "regex")
PARTS = ("all", "localpart", "domain")
IGNORES_CASE, COUNTS_CASE = "i;ascii-casemap", "i;octet"
# The headers that Sieve knows to hold addresses.
ADDRESS_HEADERS = frozenset({"from", "to", "cc", "bcc", "sender", "reply-to", "resent-from", "resent-to"})
EXACT_ADDRESS = {
    header: kind for kind, (header, *more) in CONDITION_HEADERS.items() if header in ADDRESS_HEADERS and not more
}
LOCAL = "[^@]"  # a character on one side of the @
_GLOB = re.compile(r"\\(.)|([*?])|(.)", re.DOTALL)
_ESCAPED = frozenset(r"\.+*?()|[]{}^$")


class Extensions(NamedTuple):
    """The extensions that a script requires."""

    names: Set[str]

    def check(self, name: str, wanted_by: str) -> None:
        if name not in self.names:
            raise Inexpressible(f"{wanted_by} needs the extension {name}, which the script does not require")

    def check_text(self, text: str) -> None:
        """Refuse text that these extensions would change before it is used."""
        if "${" in text and self.names & {"variables", "encoded-character"}:
            raise Inexpressible("it uses variables or encoded characters, which have no counterpart")


@dataclass(slots=True)
class _Options:
    """The tagged arguments of a test, and the arguments beside them."""

    match: str = "is"
    part: str = "all"
    comparator: str = IGNORES_CASE
    size: str = ""
    given: list[int | list[str]] = field(default_factory=list[int | list[str]])

    @property
    def counts_case(self) -> bool:
        return self.comparator == COUNTS_CASE


def condition_of(test: Call, extensions: Extensions) -> Logic:
    """The conditions for a test. Raises Inexpressible, which names the part without a counterpart."""
    match test.name:
        case "true" | "false":
            _no_arguments(test)
            return test.name == "true"
        case "allof":
            return every([condition_of(each, extensions) for each in _inner(test)])
        case "anyof":
            return some([condition_of(each, extensions) for each in _inner(test)])
        case "not":
            if len(_inner(test)) != 1:
                raise Inexpressible("not has more than one test")
            return negated(condition_of(test.tests[0], extensions))
        case "exists":
            [names] = _strings(test, _options(test, ()), 1, extensions)
            return every([{"header_match": {"name": _header_name(name)}} for name in names])
        case "header":
            return _header(test, extensions)
        case "address":
            return _address(test, extensions)
        case "size":
            return _size(test)
        case "body":
            return _body(test, extensions)
        case _:
            raise Inexpressible(f"the test {test.name} has no counterpart among conditions")


def _inner(test: Call) -> list[Call]:
    if not test.tests or test.arguments:
        raise Inexpressible(f"{test.name} does not consist of tests")
    return test.tests


def _no_arguments(test: Call) -> None:
    if test.arguments or test.tests:
        raise Inexpressible(f"{test.name} has arguments")


def _options(test: Call, allowed: tuple[str, ...]) -> _Options:
    """Read the arguments in order. Raises Inexpressible for a tag that is not among those allowed."""
    found = _Options()
    left = list(test.arguments)
    if test.tests:
        raise Inexpressible(f"{test.name} has tests inside")
    while left:
        match left.pop(0):
            case Tag("comparator") if "comparator" in allowed and left and isinstance(left[0], list):
                found.comparator = _comparator(left.pop(0))
            case Tag(name) if name in allowed and name in MATCH_TYPES:
                found.match = name
            case Tag(name) if name in allowed and name in PARTS:
                found.part = name
            case Tag(name) if name in allowed and name in ("over", "under"):
                found.size = name
            case Tag("text") if "text" in allowed:
                pass
            case Tag(name):
                raise Inexpressible(f":{name} has no counterpart among conditions")
            case value:
                found.given.append(value)
    return found


def _comparator(given: object) -> str:
    for known in (IGNORES_CASE, COUNTS_CASE):
        if given == [known]:
            return known
    raise Inexpressible(f"only the comparators {IGNORES_CASE} and {COUNTS_CASE} are known")


def _strings(test: Call, options: _Options, count: int, extensions: Extensions) -> list[list[str]]:
    found = [each for each in options.given if isinstance(each, list)]
    if len(found) != count or len(found) != len(options.given):
        raise Inexpressible(f"{test.name} does not have {count} texts or lists of texts")
    if math.prod(map(len, found)) > MOST_CONDITIONS:
        raise Inexpressible(f"it compares more than {MOST_CONDITIONS:,} texts; make several tests of it")
    for text in (text for each in found for text in each):
        extensions.check_text(text)
    return found


def _size(test: Call) -> Logic:
    options = _options(test, ("over", "under"))
    match options.size, options.given:
        case "over", [int(size)]:
            return _constant(size, over=True) if not 0 < size <= LARGEST_SIZE else {"larger": size}
        case "under", [int(size)]:
            return _constant(size, over=False) if not 0 < size <= LARGEST_SIZE else {"smaller": size}
        case _:
            raise Inexpressible("size does not have :over or :under and a number")


def _constant(size: int, *, over: bool) -> bool:
    """Every message is larger than nothing, and smaller than the largest size."""
    return (size == 0) is over


def _body(test: Call, extensions: Extensions) -> Logic:
    extensions.check("body", "the test body")
    options = _options(test, (*MATCH_TYPES, "comparator", "text"))
    if options.match != "contains" or options.counts_case:
        raise Inexpressible("the text of a message can only be searched with :contains, ignoring case")
    [keys] = _strings(test, options, 1, extensions)
    if not all(key.isascii() and key.strip() for key in keys):
        raise Inexpressible("the text of a message can only be searched for ASCII characters")
    return some([{"body_contains": key} for key in keys])


def _header(test: Call, extensions: Extensions) -> Logic:
    options = _options(test, (*MATCH_TYPES, "comparator"))
    names, keys = _strings(test, options, 2, extensions)
    if options.match == "regex":
        extensions.check("regex", ":regex")
    return some([_header_test(_header_name(name), key, options) for name in names for key in keys])


def _header_test(name: str, key: str, options: _Options) -> Logic:
    if (options.match == "contains" and not key) or (options.match == "matches" and key and not key.strip("*")):
        return {"header_match": {"name": name}}  # every value contains nothing at all
    match options.match:
        case "is":
            pattern = f"^{literal(key)}$"
        case "contains":
            pattern = literal(key)
        case "regex":
            pattern = _same_expression(key)
        case _:
            pattern = f"^{_glob(key)}$"
    return {"header_match": {"name": name, "pattern": _with_case(pattern, options)}}


def _header_name(name: str) -> str:
    if not re.fullmatch(r"[!-9;-~]+", name):
        raise Inexpressible("a header has a name that no message has")
    return name.lower()


def _with_case(pattern: str, options: _Options) -> str:
    return f"(?-i){pattern}" if options.counts_case else pattern


def _address(test: Call, extensions: Extensions) -> Logic:
    options = _options(test, (*MATCH_TYPES, *PARTS, "comparator"))
    names, keys = _strings(test, options, 2, extensions)
    if options.match == "regex":
        raise Inexpressible(":regex over addresses has no counterpart among conditions")
    if options.counts_case:
        raise Inexpressible("addresses are compared without regard to case; this test does otherwise")
    for name in names:
        if name.lower() not in ADDRESS_HEADERS:
            raise Inexpressible(f"address looks at {name[:40]!r}, which does not hold addresses")
    return some([_address_test(name.lower(), key, options) for name in names for key in keys])


def _address_test(name: str, key: str, options: _Options) -> Logic:
    if not key.isascii():
        raise Inexpressible("it compares an address with letters outside ASCII")
    if options.match == "matches" and options.part == "all" and re.fullmatch(r"\*@[^*?\\@]+", key):
        options = _Options("is", "domain")
        key = key[2:]
    if options.match == "is" and (exact := _exact(name, key, options.part)) is not None:
        return exact
    pattern = _ADDRESS_PATTERNS[options.match](key, options.part)
    return pattern if isinstance(pattern, bool) else {"address_match": {"name": name, "pattern": pattern}}


def _exact(name: str, key: str, part: str) -> dict[str, Any] | None:
    """A condition for one address or one domain, where there is one for this header."""
    if name not in EXACT_ADDRESS or part == "localpart":
        return None
    address = key if part == "all" else f"x@{key}"
    if canonical(address) != address.lower():
        return None
    return {EXACT_ADDRESS[name]: key if part == "all" else f"@{key}"}


def _is_pattern(key: str, part: str) -> str | bool:
    if not key or (part != "all" and "@" in key):
        return False
    return {"localpart": f"^{literal(key)}@", "domain": f"@{literal(key)}$"}.get(part, f"^{literal(key)}$")


def _contains_pattern(key: str, part: str) -> str | bool:
    if not key:
        return "@"  # any address at all
    if part != "all" and "@" in key:
        return False
    text = literal(key)
    return {"localpart": f"^{LOCAL}*{text}{LOCAL}*@", "domain": f"@{LOCAL}*{text}{LOCAL}*$"}.get(part, text)


def _glob_pattern(key: str, part: str) -> str | bool:
    if not key:
        return False
    if part == "all":
        return f"^{_glob(key)}$"
    if "@" in key:
        return False
    text = _glob(key, LOCAL)
    return f"^{text}@" if part == "localpart" else f"@{text}$"


_ADDRESS_PATTERNS: dict[str, Callable[[str, str], str | bool]] = {
    "is": _is_pattern,
    "contains": _contains_pattern,
    "matches": _glob_pattern,
}


def literal(text: str) -> str:
    """A pattern that matches exactly this text, ignoring the case of ASCII letters only."""
    return "".join(map(_literal_character, text))


def _literal_character(character: str) -> str:
    if character in _ESCAPED:
        return f"\\{character}"
    if character in "\r\n":
        raise Inexpressible("it searches a header for a line break, which no header has")
    is_cased = not character.isascii() and (character.lower() != character or character.upper() != character)
    return f"(?-i:{character})" if is_cased else character


def _glob(key: str, any_character: str = ".") -> str:
    def translated(found: re.Match[str]) -> str:
        escaped, wild, plain = found.groups()
        if wild is not None:
            return f"{any_character}*" if wild == "*" else any_character
        return literal(escaped if escaped is not None else plain)

    return _GLOB.sub(translated, key)


def _same_expression(key: str) -> str:
    if not is_same_expression(key):
        raise Inexpressible("the expression may mean something else here")
    return key

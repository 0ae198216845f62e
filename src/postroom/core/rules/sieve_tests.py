"""Converts Sieve tests to conditions and back."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from postroom.core.rules.exchange import Inexpressible, all_of, any_of
from postroom.core.rules.gmail_query import escaped
from postroom.core.rules.sieve_syntax import Call

MATCHES = ("is", "contains", "matches", "regex")
PARTS = ("all", "localpart", "domain")
SENDERS = frozenset({"from", "sender"})
RECIPIENTS = frozenset({"to", "cc"})
WITHIN = r"[^\s<>,;]"  # a character of an address
_GLOB = re.compile(r"\\(.)|([*?])|(.)", re.DOTALL)
# Tags that take a value: it comes before the arguments of the test.
VALUED = ("comparator",)


def condition_of(test: Call) -> dict[str, Any]:
    """The conditions for a test. Raises Inexpressible, which names what has no counterpart."""
    match test.name:
        case "allof":
            return all_of([condition_of(each) for each in _inner(test)])
        case "anyof":
            return any_of([condition_of(each) for each in _inner(test)])
        case "not":
            return {"not": condition_of(_inner(test)[0])}
        case "exists":
            [names] = _arguments(test, 1)
            return all_of([{"header_match": {"name": name}} for name in names])
        case "header":
            return _each(test, _header, _kind(test))
        case "address":
            part = next((tag for tag in test.tags if tag in PARTS), "all")
            return _each(test, _address, _kind(test), part)
        case "body":
            return _body(test)
        case _:
            raise Inexpressible(f"the test {test.name} has no counterpart among conditions")


def _inner(test: Call) -> list[Call]:
    if not test.tests:
        raise Inexpressible(f"{test.name} has no test inside")
    return test.tests


def _arguments(test: Call, count: int) -> list[list[str]]:
    given = test.strings[len([tag for tag in test.tags if tag in VALUED]) :]
    if len(given) != count or not all(given):
        raise Inexpressible(f"{test.name} does not have {count} arguments")
    return given


def _kind(test: Call) -> str:
    """The match type of a test. Conditions ignore case, so only comparators that do the same are accepted."""
    comparators = test.strings[: test.tags.count("comparator")]
    if any(each != ["i;ascii-casemap"] for each in comparators):
        raise Inexpressible("conditions ignore case; this test does not")
    strange = [tag for tag in test.tags if tag not in (*MATCHES, *PARTS, *VALUED, "text")]
    if strange:
        raise Inexpressible(f":{strange[0]} has no counterpart among conditions")
    return next((tag for tag in test.tags if tag in MATCHES), "is")


def _each(test: Call, leaf: Callable[..., dict[str, Any]], *how: str) -> dict[str, Any]:
    names, keys = _arguments(test, 2)
    if leaf is _address and frozenset(name.lower() for name in names) == RECIPIENTS:
        names = ["to"]  # the condition looks at both
    return any_of([leaf(name.lower(), key, *how) for name in names for key in keys])


def _header(name: str, key: str, kind: str) -> dict[str, Any]:
    if kind == "contains" and name in ("subject", "list-id"):
        return {"subject_contains" if name == "subject" else "list_id": key}
    pattern = {"is": f"^{escaped(key)}$", "contains": escaped(key), "regex": key}.get(kind) or f"(?s)^{_glob(key)}$"
    return {"subject_regex": pattern} if name == "subject" else {"header_match": {"name": name, "pattern": pattern}}


def _address(name: str, key: str, kind: str, part: str) -> dict[str, Any]:
    if kind == "matches" and part == "all" and key.startswith("*@") and not set(key[2:]) & set("*?\\"):
        kind, part, key = "is", "domain", key[2:]
    if kind == "is" and part != "localpart" and name in SENDERS | RECIPIENTS:
        if name in SENDERS:
            return {"sender_email" if part == "all" else "sender_domain": key}
        return {"to": key if part == "all" else f"@{key}"}
    if kind == "regex":
        raise Inexpressible(":regex over addresses has no counterpart among conditions")
    return {"header_match": {"name": name, "pattern": _address_pattern(key, kind, part)}}


def _address_pattern(key: str, kind: str, part: str) -> str:
    """A pattern for part of an address, in a header that also holds names."""
    if kind == "contains":
        text = escaped(key)
        local, domain = f"{text}{WITHIN}*@", f"@{WITHIN}*{text}"
        whole = text if "@" in key else f"{local}|{domain}"
        return {"localpart": local, "domain": domain}.get(part, whole)
    text = escaped(key) if kind == "is" else _glob(key, WITHIN)
    before, behind = r"(?:^|[\s<,;:])", r"(?:$|[\s>,;])"
    return {"localpart": f"{before}{text}@", "domain": f"@{text}{behind}"}.get(part, f"{before}{text}{behind}")


def _glob(key: str, any_character: str = ".") -> str:
    def translated(found: re.Match[str]) -> str:
        literal, wild, plain = found.groups()
        if wild is not None:
            return f"{any_character}*" if wild == "*" else any_character
        return escaped(literal if literal is not None else plain)

    return _GLOB.sub(translated, key)


def _body(test: Call) -> dict[str, Any]:
    if _kind(test) != "contains":
        raise Inexpressible("the text of a message can only be searched with :contains")
    [keys] = _arguments(test, 1)
    return any_of([{"body_contains": key} for key in keys])


def sieve_test(condition: Mapping[str, Any], needs: set[str]) -> str:
    """The test for these conditions; adds to `needs` the extensions that the script must require."""
    ((kind, argument),) = condition.items()
    match kind:
        case "and" | "or":
            inner = ", ".join(sieve_test(each, needs) for each in argument)
            return f"{'allof' if kind == 'and' else 'anyof'} ({inner})"
        case "not":
            return f"not {sieve_test(argument, needs)}"
        case "sender_email":
            return f'address :is :all "from" {quoted(argument)}'
        case "sender_domain":
            return f'address :is :domain "from" {quoted(argument)}'
        case "to":
            part, text = ("domain", argument[1:]) if argument.startswith("@") else ("all", argument)
            return f'address :is :{part} ["to", "cc"] {quoted(text)}'
        case "subject_contains":
            return f'header :contains "subject" {quoted(argument)}'
        case "list_id":
            return f'header :contains "list-id" {quoted(argument)}'
        case "body_contains":
            needs.add("body")
            return f"body :text :contains {quoted(argument)}"
        case "subject_regex":
            needs.add("regex")
            return f'header :regex "subject" {quoted(argument)}'
        case "header_match" if "pattern" not in argument:
            return f"exists {quoted(argument['name'])}"
        case "header_match":
            needs.add("regex")
            return f"header :regex {quoted(argument['name'])} {quoted(argument['pattern'])}"
        case _:
            raise Inexpressible(f"Sieve cannot express {kind}")


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

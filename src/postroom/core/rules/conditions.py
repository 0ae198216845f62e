"""The conditions of rules: a tree that is parsed once, refused if it is invalid, and then tested on many messages.

    {"and": [{"sender_domain": "shop.example"}, {"not": {"subject_words": "invoice"}}]}

Parsing gives nodes: `All`, `AnyOf` and `Not` over leaves. The kinds of leaves are declared in core/rules/people.py,
texts.py, properties.py and measures.py, one `ConditionSpec` each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from postroom.core.rules import measures, people, properties, texts
from postroom.core.rules.condition_spec import ConditionSpec
from postroom.core.rules.facts import Seen
from postroom.core.rules.leaf import BrokenRule, Leaf, Test, suggestion
from postroom.core.strict import shown_name

DEEPEST = 20
MOST_CONDITIONS = 1_000
SPECS_BY_SUBJECT: Mapping[str, tuple[ConditionSpec, ...]] = {
    "Who": people.SPECS,
    "Words": texts.SPECS,
    "What it is": properties.SPECS,
    "Size and date": measures.SPECS,
}
SPECS: Mapping[str, ConditionSpec] = {spec.kind: spec for specs in SPECS_BY_SUBJECT.values() for spec in specs}
KINDS: tuple[str, ...] = ("and", "or", "not", *SPECS)


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
            return _all_hold(tuple(map(as_test, sorted(parts, key=_cost))))
        case AnyOf(parts):
            return _one_holds(tuple(map(as_test, sorted(parts, key=_cost))))


# Plain loops: they are the innermost of all, and take half the time of `all` and `any`.
def _all_hold(tests: tuple[Test, ...]) -> Test:
    def test(seen: Seen) -> bool:
        for each in tests:  # noqa: SIM110
            if not each(seen):
                return False
        return True

    return test


def _one_holds(tests: tuple[Test, ...]) -> Test:
    def test(seen: Seen) -> bool:
        for each in tests:  # noqa: SIM110
            if each(seen):
                return True
        return False

    return test


def _cost(node: Node) -> int:
    """How much a test costs, roughly: of several, the cheapest goes first."""
    match node:
        case Leaf(kind, pattern=pattern):
            return max(SPECS[kind].cost, int(pattern is not None))
        case Not(part):
            return _cost(part)
        case All(parts) | AnyOf(parts):
            return max(map(_cost, parts))


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
            case str() if kind in SPECS:
                return SPECS[kind].leaf(inside, argument)
            case _:
                raise BrokenRule(inside, "is not a known condition", suggestion(str(kind), KINDS))

    def _nodes(self, given: object, field: str, depth: int) -> tuple[Node, ...]:
        if not isinstance(given, list) or not given:
            raise BrokenRule(field, "is not a list of conditions, or is empty", "give a list of at least one")
        parts = cast("list[object]", given)
        return tuple(self.node(part, f"{field}[{number}]", depth + 1) for number, part in enumerate(parts))

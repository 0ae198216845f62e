"""How much of a message is ingested: all of it, its metadata, or nothing. Rules are data; the lowest number decides.

    {"number": 10, "name": "shop", "kind": "sender_domain_suffix", "value": "shop.example", "tier": "skip"}

A message that no rule matches is ingested in full.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, cast, get_args

from postroom.core.errors import BadInput
from postroom.core.mail.addresses import canonical, canonical_domain
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.mime import ParsedMessage
from postroom.core.mail.tiers import sender_address
from postroom.core.strict import one_line
from postroom.core.suggestions import did_you_mean

Extent = Literal["full", "metadata", "skip"]
ConditionKind = Literal[
    "sender_domain",
    "sender_domain_suffix",
    "sender_address",
    "header_present",
    "header_equals",
    "header_contains",
    "mime_type",
]
DEFAULT_RULE = "default"
LONGEST_TEXT = 512
EXCERPT_START, EXCERPT_END = 1_000, 399
HIGHEST_NUMBER = 1_000_000


@dataclass(frozen=True, slots=True)
class IngestionFacts:
    """The facts about a message that ingestion rules and categories look at.

    `sender` is canonical; `text` is an `excerpt`, empty if the text is not known.
    """

    sender: str
    headers: Headers = field(repr=False)
    mime_types: tuple[str, ...] = ()
    text: str = field(default="", repr=False)

    @classmethod
    def of(cls, parsed: ParsedMessage) -> "IngestionFacts":
        return cls(sender_address(parsed.headers), parsed.headers, parsed.mime_types, excerpt(parsed.text))

    @property
    def domain(self) -> str:
        return self.sender.rpartition("@")[2]


def excerpt(text: str) -> str:
    """The beginning and the end of a text: enough to tell its category."""
    if len(text) <= EXCERPT_START + EXCERPT_END:
        return text
    return f"{text[:EXCERPT_START]}\n{text[-EXCERPT_END:]}"


@dataclass(frozen=True, slots=True)
class IngestionRule:
    """One rule. `header` is the name of the header, for the three kinds that look at one."""

    number: int
    name: str
    kind: ConditionKind
    tier: Annotated[Extent, "How much is stored."]
    value: str = ""
    header: str = ""

    def matches(self, facts: IngestionFacts) -> bool:
        return SPECS[self.kind].matches(self, facts)

    @property
    def clause(self) -> str:
        """The condition in words."""
        return SPECS[self.kind].clause.format(header=self.header, value=self.value)

    @property
    def formula(self) -> str:
        """The condition in a few signs, for a column."""
        return SPECS[self.kind].formula.format(header=self.header, value=self.value)


class IngestionDecision(NamedTuple):
    """How much is ingested, and the name of the rule that decided."""

    tier: Extent
    rule: str


class IngestionPolicy:
    """Rules in order: by number, then by name."""

    def __init__(self, rules: Iterable[IngestionRule] = ()) -> None:
        self.rules = tuple(sorted(rules, key=lambda rule: (rule.number, rule.name)))

    def decide(self, facts: IngestionFacts) -> IngestionDecision:
        """Apply the first rule that matches; without one, the message is ingested in full."""
        for rule in self.rules:
            if rule.matches(facts):
                return IngestionDecision(rule.tier, rule.name)
        return IngestionDecision("full", DEFAULT_RULE)


def parse_rule(data: Mapping[str, object]) -> IngestionRule:
    """Check a rule from outside and normalise its values. Raises BadInput, which names the field."""
    known = ("number", "name", "kind", "value", "header", "tier")
    for key in data:
        if key not in known:
            raise BadInput(str(key), "is not a field of a rule", did_you_mean(str(key), known, "leave it out"))
    number = data.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= HIGHEST_NUMBER:
        raise BadInput(
            "number", f"is {number!r}", f"give a whole number from 0 to {HIGHEST_NUMBER:,}; lowest goes first"
        )
    kind = cast("ConditionKind", _one_of("kind", data.get("kind"), get_args(ConditionKind)))
    tier = cast("Extent", _one_of("tier", data.get("tier"), get_args(Extent)))
    name = one_line("name", data.get("name"), LONGEST_TEXT)
    spec = SPECS[kind]
    header = one_line("header", data.get("header"), LONGEST_TEXT).rstrip(":").lower() if spec.has_header else ""
    value = spec.read(one_line("value", data.get("value"), LONGEST_TEXT)) if spec.has_value else ""
    return IngestionRule(number, name, kind, tier, value, header)


def as_data(rule: IngestionRule) -> dict[str, object]:
    """The rule as `parse_rule` reads it."""
    data: dict[str, object] = {"number": rule.number, "name": rule.name, "kind": rule.kind, "tier": rule.tier}
    return data | {name: value for name, value in (("value", rule.value), ("header", rule.header)) if value}


def _domain(text: str) -> str:
    domain = canonical_domain(text.removeprefix("@").removeprefix("*").strip("."))
    if not domain or "@" in domain:
        raise BadInput("value", f"{text!r} is not a domain", "give a domain such as shop.example")
    return domain


def _address(text: str) -> str:
    address = canonical(text)
    if address is None:
        raise BadInput("value", f"{text!r} is not an address", "give an address such as ida@shop.example")
    return address


def _mime_type(text: str) -> str:
    if text.count("/") != 1:
        raise BadInput("value", f"{text!r} is not a MIME type", "give a type such as text/calendar or image/*")
    return text.lower()


def _fits(wanted: str, kind: str) -> bool:
    return kind == wanted or (wanted.endswith("/*") and kind.startswith(wanted[:-1]))


def _one_of(name: str, given: object, allowed: tuple[str, ...]) -> str:
    if given not in allowed:
        remedy = did_you_mean(str(given), allowed, f"use one of {', '.join(allowed)}")
        raise BadInput(name, f"is {given!r}", remedy)
    return str(given)


@dataclass(frozen=True, slots=True)
class FilterSpec:
    """One kind of condition: its test, how people read it, the check of its value, and the fields that it has."""

    matches: Callable[[IngestionRule, IngestionFacts], bool]
    clause: str
    formula: str
    read: Callable[[str], str] = str.casefold
    has_header: bool = False
    has_value: bool = True


SPECS: Mapping[ConditionKind, FilterSpec] = {
    "sender_domain": FilterSpec(
        lambda rule, facts: facts.domain == rule.value, "it is from {value}", "sender domain {value}", _domain
    ),
    "sender_domain_suffix": FilterSpec(
        lambda rule, facts: f".{facts.domain}".endswith(f".{rule.value}"),
        "it is from {value} or one of its subdomains",
        "sender domain suffix {value}",
        _domain,
    ),
    "sender_address": FilterSpec(
        lambda rule, facts: facts.sender == rule.value, "it is from {value}", "sender address {value}", _address
    ),
    "header_present": FilterSpec(
        lambda rule, facts: bool(values(facts.headers, rule.header)),
        "it has the header {header}",
        "{header} is present",
        has_header=True,
        has_value=False,
    ),
    "header_equals": FilterSpec(
        lambda rule, facts: any(each.strip().casefold() == rule.value for each in values(facts.headers, rule.header)),
        "the header {header} is {value}",
        "{header} = {value}",
        has_header=True,
    ),
    "header_contains": FilterSpec(
        lambda rule, facts: any(rule.value in each.casefold() for each in values(facts.headers, rule.header)),
        "the header {header} contains {value}",
        "{header} ~ {value}",
        has_header=True,
    ),
    "mime_type": FilterSpec(
        lambda rule, facts: any(_fits(rule.value, each) for each in facts.mime_types),
        "a part of it is {value}",
        "mime type {value}",
        _mime_type,
    ),
}

# Bulk mail is ingested as metadata, never skipped. Invitations are ingested in full.
BULK_PACK: tuple[IngestionRule, ...] = (
    IngestionRule(900, "invitation", "mime_type", "full", "text/calendar"),
    IngestionRule(910, "spam-flag", "header_equals", "metadata", "yes", "x-spam-flag"),
    IngestionRule(920, "list-unsubscribe", "header_present", "metadata", header="list-unsubscribe"),
    IngestionRule(930, "list-id", "header_present", "metadata", header="list-id"),
    IngestionRule(940, "precedence-bulk", "header_contains", "metadata", "bulk", "precedence"),
    IngestionRule(941, "precedence-list", "header_contains", "metadata", "list", "precedence"),
    IngestionRule(942, "precedence-junk", "header_contains", "metadata", "junk", "precedence"),
)

DEFAULT_POLICY = IngestionPolicy(BULK_PACK)

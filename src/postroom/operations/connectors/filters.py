"""Filters, which are the ingestion rules: how much of a message is stored."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, NamedTuple

from postroom.core.access import CONNECTORS, OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import Extent, IngestionRule, parse_rule
from postroom.core.views import Done, OrAbsent, Page
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import FILTERS
from postroom.operations.operation import READS, Argument, Limit, Next, command, get, tool
from postroom.store.engine.database import Database
from postroom.store.intake import ingestion_rules
from postroom.store.intake.ingestion_rules import PACK, IngestionRuleView, version_of
from postroom.system.wall_clock import Clock

COLUMNS = ("position", "name", "tier", "condition", "origin", "enabled")
APPLIED = "Connectors apply it within 15 minutes."
OPTIONS = {"number": "--position", "name": "--name", "tier": "--tier", "header": "--header"}
"""The options for the fields of a rule; its value is that of the condition."""
KINDS = {
    "--sender-domain": "sender_domain",
    "--sender-domain-suffix": "sender_domain_suffix",
    "--sender": "sender_address",
    "--mime-type": "mime_type",
}
HEADER_KINDS = {"=": "header_equals", "~": "header_contains"}


# A view of its own: connectors get a rule as `parse_rule` reads it, without the fields that it does not have.
class ExportedFilter(NamedTuple):
    number: int
    name: str
    kind: str
    tier: Extent
    value: OrAbsent[str]
    header: OrAbsent[str]


class ExportedFilters(NamedTuple):
    """`version` changes whenever the rules do."""

    generated_at: datetime
    version: str
    rules: Sequence[ExportedFilter]


@dataclass(frozen=True, slots=True)
class FilterChange:
    """A filter that was added, or a built-in one that is enabled again."""

    name: str
    result: str


def _row(view: IngestionRuleView) -> Mapping[str, object]:
    rule = view.rule
    return {
        "position": rule.number,
        "name": rule.name,
        "tier": rule.tier,
        "condition": rule.formula,
        "kind": rule.kind,
        "header": rule.header or None,
        "value": rule.value or None,
        "origin": view.origin,
        "enabled": view.enabled,
    }


@FILTERS.operation(READ, command("filters list", *COLUMNS, row=_row))
async def list_filters(database: Database, /) -> list[IngestionRuleView]:
    """List the filters in the order in which they are tried, yours and the built-in ones."""
    return await database.run(ingestion_rules.list_ingestion_rules())


@FILTERS.operation(READ, get("/filters"))
async def read_filters(database: Database, /, limit: Limit = 50, next: Next = None) -> Page[IngestionRuleView]:
    """The filters in the order in which they are tried: the user's own, and the built-in ones."""
    place = _place(next)
    found = [each for each in await list_filters(database) if (each.rule.number, each.rule.name) > place]
    shown = found[:limit]
    return Page(shown, f"{shown[-1].rule.number} {shown[-1].rule.name}" if len(found) > limit else None)


@FILTERS.operation(CONNECTORS, tool("filters.export", "Get the ingestion rules", READS))
async def export_filters(database: Database, clock: Clock, /) -> ExportedFilters:
    """Lists the rules that say how much of a message is ingested, in the order in which they are tried: the first match
    decides, and a message without a match is ingested in full. version changes whenever the rules do.
    """
    generated_at = clock()
    rules = [view.rule for view in await list_filters(database) if view.enabled]
    return ExportedFilters(generated_at, version_of(rules), [_exported(each) for each in rules])


def _exported(rule: IngestionRule) -> ExportedFilter:
    return ExportedFilter(rule.number, rule.name, rule.kind, rule.tier, rule.value or None, rule.header or None)


def _place(given: str | None) -> tuple[int, str]:
    """Read the place after which filters are shown: a number and a name."""
    number, _, name = (given or "-1 ").partition(" ")
    try:
        return int(number), name
    except ValueError:
        raise BadInput("after", "is no place in the list", "open the list from its beginning") from None


@FILTERS.operation(OPERATE, command("filters add", line="{name}  {result}", notes=lambda _: (APPLIED,)))
async def add_filter(
    by: Caller,
    /,
    name: Annotated[str, Argument("What the filter is called.")],
    tier: Annotated[
        str | None,
        Argument("How much of a matching message is stored (its ingestion tier): full, metadata or skip."),
    ] = None,
    position: Annotated[int, Argument("Its position: the lowest comes first; built-in filters start at 900.")] = 100,
    sender_domain: Annotated[
        str | None, Argument("Match mail from exactly this domain.", typed_as="--sender-domain DOMAIN")
    ] = None,
    sender_domain_suffix: Annotated[
        str | None,
        Argument("Match mail from this domain and its subdomains.", typed_as="--sender-domain-suffix DOMAIN"),
    ] = None,
    sender: Annotated[str | None, Argument("Match mail from this address.", typed_as="--sender ADDRESS")] = None,
    header: Annotated[
        str | None,
        Argument(
            "Match mail with this header: present, equal to this value, or containing it.",
            typed_as="--header NAME[=VALUE|~VALUE]",
        ),
    ] = None,
    mime_type: Annotated[
        str | None, Argument("Match mail with a part of this type, such as image/*.", typed_as="--mime-type TYPE")
    ] = None,
) -> FilterChange:
    """Add a filter with one condition. With only the name of a built-in filter, enable that filter again."""
    given = {
        "--sender-domain": sender_domain,
        "--sender-domain-suffix": sender_domain_suffix,
        "--sender": sender,
        "--header": header,
        "--mime-type": mime_type,
    }
    conditions = {option: text for option, text in given.items() if text is not None}
    await prepare(by.database)
    if not conditions and tier is None and name in PACK:
        was_off = await by.run(ingestion_rules.restore_pack_rule(name, by.signature, by.clock()))
        return FilterChange(name, "switched on" if was_off else "was on")
    rule = _rule({"name": name, "tier": tier, "number": position}, conditions)
    await by.run(ingestion_rules.add_ingestion_rule(rule, by.signature, by.clock()))
    return FilterChange(name, "added")


def _rule(fields: Mapping[str, object], conditions: Mapping[str, str]) -> IngestionRule:
    """Return the rule; BadInput names the option that is wrong."""
    if len(conditions) != 1:
        problem = "a rule has exactly one condition" if conditions else "a rule needs a condition"
        named = "give one of --sender-domain, --sender-domain-suffix, --sender, --header, --mime-type"
        raise BadInput("filters", f"{problem}; {len(conditions)} are given", named)
    [(option, text)] = conditions.items()
    try:
        return parse_rule({**fields, **_condition(option, text)})
    except BadInput as error:
        raise BadInput(OPTIONS.get(error.field, option), error.problem, error.remedy) from None


def _condition(option: str, text: str) -> Mapping[str, str]:
    if option in KINDS:
        return {"kind": KINDS[option], "value": text}
    match re.split("([=~])", text, maxsplit=1):
        case [name, mark, value]:
            return {"kind": HEADER_KINDS[mark], "header": name, "value": value}
        case _:
            return {"kind": "header_present", "header": text}


@FILTERS.operation(OPERATE, command("filters remove {name}"))
async def remove_filter(
    by: Caller, /, name: Annotated[str, Argument("The filter, as `postroom filters list` shows it.")]
) -> Done:
    """Remove a filter of yours, or disable a built-in one."""
    origin = await by.run(ingestion_rules.remove_ingestion_rule(name, by.signature, by.clock()))
    return Done(f"{'Removed' if origin == 'user' else 'Disabled'}. {APPLIED}")

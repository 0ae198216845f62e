"""Filters, which are the ingestion rules: how much of a message is stored."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

from postroom.core.access import CONNECTORS, OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import Extent, IngestionRule
from postroom.core.views import Done, OrAbsent, Page
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import FILTERS
from postroom.operations.operation import READS, Argument, Limit, Next, command, get, tool
from postroom.store.engine.database import Database
from postroom.store.intake import ingestion_rules
from postroom.store.intake.ingestion_rules import PACK, version_of
from postroom.store.intake.ingestion_rules import IngestionRuleView as IngestionRuleView
from postroom.system.wall_clock import Clock


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


async def list_filters(database: Database) -> list[IngestionRuleView]:
    """List the user's filters and the built-in ones in the order in which they are tried."""
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


def is_shipped(name: str) -> bool:
    return name in PACK


async def add_filter(by: Caller, rule: IngestionRule) -> None:
    """Add one of the user's own filters. Its name must be new."""
    await prepare(by.database)
    await by.run(ingestion_rules.add_ingestion_rule(rule, by.signature, by.clock()))


async def restore_filter(by: Caller, name: str) -> bool:
    """Enable a built-in filter again. Return False if it was enabled."""
    await prepare(by.database)
    return await by.run(ingestion_rules.restore_pack_rule(name, by.signature, by.clock()))


@FILTERS.operation(OPERATE, command("filters remove {name}"))
async def remove_filter(
    by: Caller, /, name: Annotated[str, Argument("The filter, as `postroom filters list` shows it.")]
) -> Done:
    """Remove a filter of yours, or disable a built-in one."""
    origin = await by.run(ingestion_rules.remove_ingestion_rule(name, by.signature, by.clock()))
    return Done(f"{'Removed' if origin == 'user' else 'Disabled'}. Connectors apply it within 15 minutes.")

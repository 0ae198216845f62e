"""Filters, which are the ingestion rules: how much of a message is stored."""

from typing import Annotated

from postroom.core.access import OPERATE, READ
from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import IngestionRule
from postroom.core.views import Done, Page
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import FILTERS
from postroom.operations.operation import Argument, Limit, Next, command, get
from postroom.store.engine.database import Database
from postroom.store.intake import ingestion_rules
from postroom.store.intake.ingestion_rules import PACK
from postroom.store.intake.ingestion_rules import IngestionRuleView as IngestionRuleView


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

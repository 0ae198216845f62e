"""Filters: how mail gets its tier, and how much of it is stored."""

from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Paged
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened, sealed
from postroom.operations.connectors.filters import IngestionRuleView, filter_page
from postroom.operations.connectors.tier_rules import TierRules, load_tier_rules

FILTERS = Noun("Filters and tiers")
LIST = "filters"


@FILTERS.get("/filters")
async def read_filters(call: Call, query: Paged) -> Page[IngestionRuleView]:
    """The filters in the order in which they are tried: the user's own, and the built-in ones."""
    page = await filter_page(call.database, opened(LIST, query.next), query.limit)
    return Page(page.lines, sealed(LIST, page.next))


@FILTERS.get("/filters/tiers")
async def read_tier_rules(call: Call) -> TierRules:
    """How mail gets its priority tier, the guard against starvation, and the state of the contacts."""
    return await load_tier_rules(call.database, call.parts.settings, call.clock)

"""How mail gets its tier, and how much of it is stored: to read, not to change."""

from collections.abc import Mapping

from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.connectors.filters import read_filters
from postroom.operations.connectors.tier_rules import load_tier_rules
from postroom.words.connectors import CONTACT_SOURCES, STORED

MOST_SHOWN = 200


def pages(site: Site) -> list[DashboardPage]:
    return [FiltersPage(site)]


class FiltersPage(DashboardPage):
    address, title, template = "/filters", "Filters", "filters.html"

    async def read(self, visit: Visit) -> Mapping[str, object]:
        page = await read_filters(self._database, MOST_SHOWN, visit.text("after"))
        return {
            "tiers": await load_tier_rules(self._database, self._settings),
            "filters": page.lines,
            "more_after": page.next,
            "sources": CONTACT_SOURCES,
            "stored": STORED,
        }

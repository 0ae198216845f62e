"""How mail gets its tier, and how much of it is stored: to read, not to change."""

from collections.abc import Mapping

from postroom.core.mail.ingestion import IngestionRule
from postroom.interfaces.dashboard.page import Page
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visit import Visit
from postroom.operations.connectors.filters import filter_page
from postroom.operations.connectors.tier_rules import load_tier_rules
from postroom.operations.installation.database import Database
from postroom.settings.reading import Settings
from postroom.words.connectors import CONTACT_SOURCES, STORED

MOST_SHOWN = 200


def page(site: Site, database: Database, settings: Settings) -> Page:
    return FiltersPage(site, database, settings)


class FiltersPage(Page):
    address, title, template = "/filters", "Filters", "filters.html"

    def __init__(self, site: Site, database: Database, settings: Settings) -> None:
        super().__init__(site)
        self._database = database
        self._settings = settings

    async def read(self, visit: Visit) -> Mapping[str, object]:
        page = await filter_page(self._database, visit.text("after"), MOST_SHOWN)
        return {
            "tiers": await load_tier_rules(self._database, self._settings),
            "filters": [(each, _words(each.rule)) for each in page.lines],
            "more_after": page.next,
            "sources": CONTACT_SOURCES,
            "stored": STORED,
        }


def _words(rule: IngestionRule) -> str:
    match rule.kind:
        case "sender_domain":
            return f"it is from {rule.value}"
        case "sender_domain_suffix":
            return f"it is from {rule.value} or one of its subdomains"
        case "sender_address":
            return f"it is from {rule.value}"
        case "header_present":
            return f"it has the header {rule.header}"
        case "header_equals":
            return f"the header {rule.header} is {rule.value}"
        case "header_contains":
            return f"the header {rule.header} contains {rule.value}"
        case "mime_type":
            return f"a part of it is {rule.value}"

"""The pages of rules: the list, the editor, simulations, starter rules and import."""

from postroom.interfaces.dashboard.page import Page
from postroom.interfaces.dashboard.pages.rules.editor import EditorParts, NewRulePage, RulePage
from postroom.interfaces.dashboard.pages.rules.importing import ImportPage
from postroom.interfaces.dashboard.pages.rules.listing import RulesPage
from postroom.interfaces.dashboard.pages.rules.simulation import SimulationPage
from postroom.interfaces.dashboard.pages.rules.starters import StartersPage
from postroom.interfaces.dashboard.site import Site
from postroom.operations.installation.database import Database
from postroom.settings.reading import Settings


def pages(site: Site, database: Database, settings: Settings) -> list[Page]:
    parts = EditorParts(database)
    # Those with `/rules/{rule}` in their addresses come last: it would match the others.
    return [
        NewRulePage(site, parts),
        SimulationPage(site, parts, settings),
        StartersPage(site, database, settings),
        ImportPage(site, database),
        RulesPage(site, database),
        RulePage(site, parts),
    ]

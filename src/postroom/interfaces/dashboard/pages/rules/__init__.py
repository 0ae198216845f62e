"""The pages of rules: the list, the editor, simulations, starter rules and import."""

from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.pages.rules.editor import EditorParts, NewRulePage, RulePage
from postroom.interfaces.dashboard.pages.rules.importing import ImportPage
from postroom.interfaces.dashboard.pages.rules.listing import RulesPage
from postroom.interfaces.dashboard.pages.rules.simulation import SimulationPage
from postroom.interfaces.dashboard.pages.rules.starters import StartersPage
from postroom.interfaces.dashboard.site import Site


def pages(site: Site) -> list[DashboardPage]:
    editor = EditorParts(site.parts)
    return [
        RulesPage(site),
        NewRulePage(site, editor),
        RulePage(site, editor),
        SimulationPage(site, editor),
        StartersPage(site),
        ImportPage(site),
    ]

"""All pages of the product: those of the dashboard, and the simulator's."""

from postroom.interfaces.dashboard.page import Page
from postroom.interfaces.dashboard.pages import dashboard_pages
from postroom.interfaces.dashboard.site import Site
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from postroom_simulator.page import SimulationPage
from postroom_simulator.runs import SimulationRuns


def all_pages(site: Site, database: Database, settings: Settings) -> list[Page]:
    # The simulator first: `/outbound/simulate` is not the mail `simulate`.
    return [SimulationPage(site, SimulationRuns(database)), *dashboard_pages(site, database, settings)]

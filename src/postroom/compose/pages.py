"""All pages of the product: those of the dashboard, and the simulator's."""

from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.pages import dashboard_pages
from postroom.interfaces.dashboard.site import Site
from postroom_simulator.page import SimulationPage


def all_pages(site: Site) -> list[DashboardPage]:
    return [*dashboard_pages(site), SimulationPage(site)]

"""One module per page, with its reader, template and actions. Every module in this folder is served.

Each has a function `pages`, which creates its page, or a list and its details.
"""

import importlib
import pkgutil

from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.site import Site


def dashboard_pages(site: Site) -> list[DashboardPage]:
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return [page for module in modules for page in module.pages(site)]

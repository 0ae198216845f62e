"""One module per page, with its reader, template and actions. Every module in this folder is served.

Each has a function `page`, which creates the page from the arguments given here, or `pages`, which creates several.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING

from postroom.interfaces.dashboard.page import Page
from postroom.interfaces.dashboard.site import Site
from postroom.settings.reading import Settings

if TYPE_CHECKING:
    from postroom.operations.installation.database import Database


def dashboard_pages(site: Site, database: "Database", settings: Settings) -> list[Page]:
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    several = [module.pages(site, database, settings) for module in modules if hasattr(module, "pages")]
    single = [module.page(site, database, settings) for module in modules if hasattr(module, "page")]
    return [*single, *(page for pages in several for page in pages)]

"""All pages over a real database and a real server on this machine, for a browser."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from postroom.compose.pages import all_pages
from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.interfaces.http.serve import serving
from postroom.store.engine.database import Database
from support.page_app import parts_in


@asynccontextmanager
async def served_pages(database: Database, data_dir: Path) -> AsyncGenerator[str]:
    intervals = UpdateIntervals(between_updates=0.01, reread=3600)
    site = Site(parts_in(data_dir, database), "owner@example.org", intervals)
    pages = all_pages(site)
    app = create_application(site, pages, allowed_hosts=["127.0.0.1"])
    async with serving(app, host="127.0.0.1", port=0) as address:
        try:
            yield address
        finally:
            for page in pages:
                page.close()

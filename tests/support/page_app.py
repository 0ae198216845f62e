"""All pages over a real database, as one visitor sees them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send

from postroom.compose.pages import all_pages
from postroom.core.visitors import PersonRole, Visitor
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visiting import OWNER, VISITOR
from postroom.interfaces.http.application import create_application
from postroom.operations.parts import Parts
from postroom.settings.reading import load_settings
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock

HOST = "postroom.test"


def visitor(role: PersonRole, *, is_fresh: bool = True) -> Visitor:
    """A visitor of this role, whose forms `support.page_forms.submit` may submit."""
    return Visitor(f"a {role}", role, OWNER.form_token, is_fresh)


def parts_in(data_dir: Path, database: Database, clock: Clock = wall_clock) -> Parts:
    """The parts of an installation with the usual settings."""
    return Parts(load_settings({"data_dir": data_dir}, environ={}, cwd=data_dir), database, clock)


@asynccontextmanager
async def visiting_pages(
    database: Database, data_dir: Path, visitor: Visitor = OWNER, clock: Clock = wall_clock
) -> AsyncGenerator[httpx2.AsyncClient]:
    site = Site(parts_in(data_dir, database, clock), "owner@example.org")
    app = as_visitor(create_application(site, all_pages(site), allowed_hosts=[HOST]), visitor)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
        yield client


def as_visitor(app: ASGIApp, visitor: Visitor) -> ASGIApp:
    async def visited(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, VISITOR: visitor}, receive, send)

    return visited

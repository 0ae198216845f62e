"""The pages with sign-in on, over real HTTP, and people in front of them.

A test's cookies are kept by hand: Python's jars send no `Secure` cookie over http, as browsers do to this machine.
"""

import contextlib
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from postroom.compose.serve import pages_application
from postroom.compose.sign_in import knows_visitor
from postroom.core.visitors import PersonRole
from postroom.interfaces.http.ready import ready_endpoint
from postroom.interfaces.http.serve import serving
from postroom.interfaces.http.services import Services
from postroom.operations.caller import Caller
from postroom.operations.people.people import LinkAnswer, add_person, offer_first_link
from postroom.settings.reading import Settings
from postroom.store.engine.database import Database
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.store.fault_cases_registry import signed
from support.switchboard import services_on

PASSWORD = "four unrelated words in a row"
TOKEN = re.compile(r'name="form_token" value="([^"]+)"')
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"


@dataclass
class Pages:
    """Running pages, and what a test asks of them."""

    address: str
    app: Starlette
    database: Database
    services: Services
    clock: ManualClock
    http: httpx2.AsyncClient

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def cookie_name(self) -> str:
        return f"__Host-postroom-{self.port}"

    def visitor(self) -> "Visiting":
        return Visiting(self)

    async def first_link(self) -> str:
        secret = await offer_first_link(self.database, self.clock)
        assert secret is not None
        return secret

    async def signed_in(self, name: str = "mara", role: PersonRole = "admin") -> "Visiting":
        """Somebody who has just chosen a password by their link."""
        made = await add_person(Caller(self.database, signed(), self.clock), self.services.settings, name, role)
        person = self.visitor()
        answer = await person.post("/sign-in/once/password", secret=secret_in(made), name=name, password=PASSWORD)
        assert answer.status_code == 303, answer.text
        return person


@dataclass
class Visiting:
    """One browser."""

    pages: Pages
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    headers: dict[str, str] = field(
        default_factory=lambda: {"Sec-Fetch-Site": "same-origin", "User-Agent": CHROME, "Accept": "text/html"}
    )

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        return await self.request("GET", path, headers)

    async def post(self, path: str, /, headers: Mapping[str, str] | None = None, **fields: str) -> httpx2.Response:
        return await self.request("POST", path, headers or {}, data=fields)

    async def script(self, path: str, content: object, headers: Mapping[str, str] | None = None) -> httpx2.Response:
        return await self.request("POST", path, headers or {}, json=content)

    async def submit(self, path: str, **fields: str) -> httpx2.Response:
        """Submit a form with the token of the person's own page."""
        return await self.post(path, None, form_token=await self.form_token(), **fields)

    async def form_token(self) -> str:
        found = TOKEN.search((await self.get("/settings/sign-in")).text)
        assert found is not None
        return found[1]

    async def request(self, method: str, path: str, headers: Mapping[str, str], **more: Any) -> httpx2.Response:
        sent = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = await self.pages.http.request(method, f"{self.pages.address}{path}", headers=sent, **more)
        self.pages.http.cookies.clear()
        for each in answer.headers.get_list("set-cookie"):
            name, _, rest = each.partition("=")
            value = rest.partition(";")[0].strip('"')
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return answer


def secret_in(made: LinkAnswer) -> str:
    """The secret of a one-time link."""
    return made.link.partition("#")[2]


async def _metrics(_request: Request) -> Response:
    return PlainTextResponse("metrics")


async def _hook(_request: Request) -> Response:
    return PlainTextResponse("hook")


@contextlib.asynccontextmanager
async def running_pages(database: Database, clock: ManualClock, folder: Path, **web: object) -> AsyncGenerator[Pages]:
    """Serve to people as `postroom serve` does, with the sign-in of a new installation. `web` are settings."""
    settings = Settings.model_validate({"data_dir": folder, "web": {"port": 0, **web}})
    services = services_on(database, clock, settings=settings)
    routes = [
        Route("/metrics", _metrics),
        Route("/readyz", ready_endpoint(database, None, shows_checks=knows_visitor)),
        Route("/hooks/gmail", _hook, methods=["POST"]),
    ]
    async with (
        pages_application(services, routes) as app,
        serving(app, host="127.0.0.1", port=settings.web.port) as address,
        httpx2.AsyncClient(timeout=PATIENCE_S) as http,
    ):
        yield Pages(address, app, database, services, clock, http)

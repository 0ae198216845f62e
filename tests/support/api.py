"""The JSON API over real HTTP, with something behind every noun, and callers of every kind."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2

from postroom.core.roles import Role
from postroom.interfaces.http.api.operation import PREFIX
from postroom.store.actions.approvals import Approval
from postroom.store.engine.database import Database
from postroom.store.people.tokens import create_token, mint
from support.page_setup import ask, filled_mailbox
from support.signed_in import Pages, Visiting, running_pages
from support.store.fault_cases_registry import signed
from support.store.mail_setup import MailSetup
from support.submission import added_sender

TENANT_SENDER = "grace@example.org"


@dataclass
class RunningApi:
    """A server with a filled mailbox, and its callers."""

    pages: Pages
    box: MailSetup
    asked: Approval
    """An action that waits for a yes."""
    sender_id: int

    async def token(self, role: str = "admin") -> "TokenCaller":
        identity = "webhook:ci" if role == "connector" else None
        minted = mint(Role(role), identity, sender_id=self.sender_id if role == "sender" else None)
        await self.pages.database.run(create_token(minted.token, signed(), self.pages.clock()))
        return TokenCaller(self.pages, minted.text)

    async def person(self, name: str = "mara", role: Any = "admin") -> "SessionCaller":
        visiting = await self.pages.signed_in(name, role)
        visiting.headers["Accept"] = "application/json"
        return SessionCaller(visiting)


@dataclass
class TokenCaller:
    pages: Pages
    text: str

    async def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None, **more: Any
    ) -> httpx2.Response:
        sent = {"Authorization": f"Bearer {self.text}", **(headers or {})}
        given = {} if body is None else {"json": body}
        return await self.pages.http.request(
            method, f"{self.pages.address}{PREFIX}{path}", headers=sent, **given, **more
        )

    async def get(self, path: str, **parameters: Any) -> httpx2.Response:
        return await self.call("GET", path, params=parameters)


@dataclass
class SessionCaller:
    visiting: Visiting

    async def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Call as a script on our own pages does, with the form token of the session."""
        proof = {} if method == "GET" else {"X-Form-Token": await self.form_token()}
        given = {} if body is None else {"json": body}
        return await self.visiting.request(method, f"{PREFIX}{path}", {**proof, **(headers or {})}, **given)

    async def form_token(self) -> str:
        answer = await self.visiting.request("GET", f"{PREFIX}/session", {})
        return str(answer.json()["form_token"])


@contextlib.asynccontextmanager
async def running_api(database: Database, folder: Path) -> AsyncGenerator[RunningApi]:
    box = await filled_mailbox(database)
    asked = await ask(box, about="kept", life=timedelta(hours=1))
    sender = await added_sender(database, TENANT_SENDER, box.setup.clock)
    async with running_pages(database, box.setup.clock, folder) as pages:
        yield RunningApi(pages, box, asked, sender.id)


@contextlib.contextmanager
def served_in_thread(
    opened: Callable[[], Awaitable[Database]], folder: Path, ready: Callable[[RunningApi], Awaitable[Any]]
) -> Generator[Any]:
    """Serve from a thread of its own, for callers that are not asynchronous. Yields the result of `ready`."""
    up, results, failed = threading.Event(), list[Any](), list[BaseException]()
    loop, down = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        database = await opened()
        try:
            async with running_api(database, folder) as api:
                results.append(await ready(api))
                up.set()
                await down.wait()
        finally:
            await database.close()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            failed.append(error)
        finally:
            up.set()
            loop.close()

    thread = threading.Thread(target=run, name="api")
    thread.start()
    up.wait()
    try:
        if failed:
            raise failed[0]
        yield results[0]
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(down.set)
        thread.join()
        if failed:
            raise failed[0]


def known_ids(api: RunningApi) -> Mapping[str, UUID | str]:
    """Something that exists for each name in a path, so that more than 404 is tried."""
    return {"message": str(api.box.ids["done"]), "action": api.asked.id, "queue": "gateway", "username": TENANT_SENDER}

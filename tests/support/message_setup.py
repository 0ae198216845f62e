"""A message in the mailbox of a running product, and what tests do with it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.jobs.job import JobView
from postroom.core.jobs.types import CATALOGUE
from postroom.store.actions import actions, decisions
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import undo_job
from postroom.store.mail import mail
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.action_requests import ActionRequests
from support.patience import PATIENCE_S
from support.product import Product, raw_mail, running_product

PARAMETERS: dict[str, dict[str, Any]] = {
    "apply_label": {"label": "Receipts"},
    "remove_label": {"label": "Old"},
    "snooze": {"amount": 2, "units": "hours"},
}


@dataclass
class MessageSetup:
    """A message in a mailbox, and what a test does with it."""

    product: Product
    gmail_id: str
    id: UUID

    @property
    def database(self) -> Database:
        return self.product.database

    @property
    def labels(self) -> frozenset[str]:
        return self.product.mailbox.get(self.gmail_id).labels

    def signed(self) -> Signature:
        return Signature(new_id(), "test", "admin")

    async def ask(self, action: str, **parameters: Any) -> UUID:
        requests = ActionRequests(self.database, CATALOGUE, Policy(), wall_clock)
        given = parameters or PARAMETERS.get(action, {})
        asked = await requests.ask(
            self.id, action, given, source="user", asked_by="test", why="a test", signed=self.signed()
        )
        return asked.action_id

    async def do(self, action: str, **parameters: Any) -> actions.ActionView:
        return await self.ended(await self.ask(action, **parameters))

    async def ended(self, id: UUID) -> actions.ActionView:
        return await self.until(id, lambda view: view.state in ("completed", "failed", "canceled"))

    async def until(self, id: UUID, holds: Callable[[actions.ActionView], bool]) -> actions.ActionView:
        changed = asyncio.Event()
        channels = (decisions.CHANNEL, jobs.CHANNEL)
        subscriptions = [self.database.subscribe(each, lambda _message: changed.set()) for each in channels]
        try:
            async with asyncio.timeout(self.product.patience_s):
                while True:
                    changed.clear()
                    for view in await self.database.run(actions.list_actions(1000)):
                        if view.id == id and holds(view):
                            return view
                    await signalled(changed, 0.2)
        finally:
            for subscription in subscriptions:
                subscription.close()

    async def undo(self, id: UUID) -> actions.ActionView:
        """Asks for the undo and waits for its end; returns the original as it then stands."""
        view = await self.until(id, lambda _view: True)
        job = undo_job(CATALOGUE, view.account_id, (id,))
        await self.database.run(jobs.enqueue_many([job], wall_clock()))
        return await self.until(id, lambda view: view.undone in ("completed", "failed"))


@asynccontextmanager
async def message_setup(database: Database, folder: Path) -> AsyncGenerator[MessageSetup]:
    async with running_product(database, folder) as product:
        message = product.mailbox.deliver(raw_mail("Hello"))
        old = product.mailbox.labels.create("Old", {}).id
        product.mailbox.modify(message.id, add=[old])
        other = product.mailbox.deliver(raw_mail("Another"))
        await product.live.sync()
        await product.settled(2)
        before = other.labels
        yield MessageSetup(product, message.id, await message_id_of(database, "Hello"))
        assert product.mailbox.get(other.id).labels == before, "another message was touched"


async def message_id_of(database: Database, subject: str) -> UUID:
    for job in await database.run(jobs.list_jobs(state=None, type="classify", limit=10)):
        message = await database.run(mail.load_message(UUID(json.loads(job.payload_json)["message_id"])))
        if message.facts.subject == subject:
            return message.id
    raise AssertionError(f"there is no message {subject!r}")


async def until_job_is(database: Database, id: UUID, holds: Callable[[JobView], bool]) -> JobView:
    changed = asyncio.Event()
    subscription = database.subscribe(jobs.CHANNEL, lambda _message: changed.set())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                changed.clear()
                found = await database.run(jobs.show_job(id))
                if found is not None and holds(found):
                    return found
                await signalled(changed, 0.1)
    finally:
        subscription.close()

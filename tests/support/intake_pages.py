"""The pages of connectors, queues and jobs on a database of the test, with something true in them."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import orjson
from starlette.applications import Starlette
from starlette.requests import Request

from postroom.core.heartbeat import parse_heartbeat
from postroom.core.jobs.types import CATALOGUE
from postroom.core.mail.secret_fields import REFRESH_TOKEN
from postroom.core.visitors import Visitor
from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.dashboard.page import DashboardPage
from postroom.interfaces.dashboard.pages.connectors import ConnectorPage, ConnectorsPage
from postroom.interfaces.dashboard.pages.jobs import BulkPage, JobPage, JobsPage
from postroom.interfaces.dashboard.pages.queues import QueuesPage
from postroom.interfaces.dashboard.said import Said, said_before
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visiting import OWNER
from postroom.interfaces.http.application import create_application
from postroom.jobs.counting import JobCounter
from postroom.mailboxes.gmail.scopes import LEVELS
from postroom.store.accounts.accounts import Consent, GivenAccess, connect_account
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.connectors import record_heartbeat
from postroom.store.intake.queue_depths import DepthSample, keep_depths
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.people.audit import Signature, list_audit
from postroom.vault.sealing import Sealed
from support.clocks import ManualClock
from support.page_app import as_visitor, parts_in
from support.patience import PATIENCE_S
from support.store.inbox_setup import InboxSetup

MARA = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{MARA}"
LEASE = timedelta(minutes=5)


def intake_pages(site: Site, patience_s: float = PATIENCE_S) -> list[DashboardPage]:
    kinds = (ConnectorsPage, ConnectorPage, QueuesPage, BulkPage, JobPage)
    return [JobsPage(site, patience_s), *(kind(site) for kind in kinds)]


def intake_application(
    database: Database, data_dir: Path, clock: ManualClock, intervals: UpdateIntervals | None = None
) -> Starlette:
    site = Site(parts_in(data_dir, database, clock), "owner@example.org", intervals)
    return create_application(site, intake_pages(site), allowed_hosts=("127.0.0.1",))


@asynccontextmanager
async def visiting(setup: "IntakeSetup", visitor: Visitor = OWNER) -> AsyncGenerator[httpx2.AsyncClient]:
    """The pages as this visitor sees them."""
    app = as_visitor(intake_application(setup.database, setup.data_dir, setup.clock), visitor)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8025") as client:
        yield client


def said_in(answer: httpx2.Response) -> Said:
    """Return the sentence of the form for the next page."""
    said = said_before(Request({"type": "http", "headers": [(b"cookie", answer.headers["set-cookie"].encode())]}))
    assert said is not None
    return said


class IntakeSetup:
    """One database, one clock, and short names for what fills the pages."""

    def __init__(self, database: Database, data_dir: Path, clock: ManualClock) -> None:
        self.database = database
        self.data_dir = data_dir
        self.clock = clock
        self.inbox = InboxSetup(database, clock)
        self._token: UUID | None = None

    async def connect(self, email: str = MARA) -> UUID:
        """An account with a consent."""
        id, consent = new_id(), Consent("app", "organise", frozenset(LEVELS["organise"]), self.clock())
        signed = Signature(new_id(), "cli:mara", "admin")
        account = await self.database.run(
            connect_account(
                id, "gmail", email, GivenAccess({REFRESH_TOKEN: Sealed("key", "x")}, consent), signed, self.clock()
            )
        )
        return account.id

    async def report(
        self, identity: str = ENDPOINT, type: str = "gmail", counters: dict[str, int] | None = None, **status: Any
    ) -> None:
        heartbeat = {
            "schema_version": "connector.heartbeat.v1",
            "connector": {"connector_type": type, "endpoint_identity": identity, "instance_id": "host:1"},
            "status": {"state": "healthy", "uptime_s": 60.0, **status},
            "counters": counters or {},
            "checkpoint": {"contacts_generated_at": self.clock().isoformat()} if type == "gmail" else None,
            "sent_at": self.clock().isoformat(),
        }
        await self.database.run(record_heartbeat(parse_heartbeat(heartbeat), self.clock()))

    def refuse(self, *ids: str, reason: str = "TooLarge: payload", email: str = MARA) -> None:
        """Messages that the connector refused for good."""
        folder = self.data_dir / "connectors" / f"gmail-{email}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [orjson.dumps({"id": id, "reason": reason, "at": self.clock().isoformat()}) + b"\n" for id in ids]
        (folder / "refused.jsonl").write_bytes(b"".join(lines))

    def spend(self, units: int, email: str = MARA) -> None:
        folder = self.data_dir / "connectors" / f"gmail-{email}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "quota").write_text(f"{self.clock().timestamp():.3f} {units}\n")

    async def job(self, type: str = "classify", payload: dict[str, Any] | None = None, **options: Any) -> UUID:
        (made,) = await self.database.run(
            jobs.enqueue_many([new_job(CATALOGUE, type, payload or {}, **options)], self.clock())
        )
        return made.id

    async def claim(self, most: int = 1000) -> list[Any]:
        if self._token is None:
            self._token = new_id()
            await self.database.run(
                jobs.open_lease(self._token, "host-1:4711", self.clock(), self.clock() + timedelta(days=1))
            )
        return await self.database.run(jobs.claim(self._token, most, self.clock()))

    async def failed(self, *errors: str, type: str = "classify", payload: dict[str, Any] | None = None) -> list[UUID]:
        """Jobs that failed, one for each error."""
        made: list[UUID] = []
        for error in errors:
            made.append(await self.job(type, payload, priority=900))
            (job,) = await self.claim(1)
            await self.database.run(jobs.fail(job, error, self.clock()))
        return made

    async def completed(self, count: int, type: str = "classify", seconds: float = 0.2) -> None:
        for _ in range(count):
            await self.job(type)
        found = await self.claim(count)
        self.clock.forward(seconds)
        await self.database.run(jobs.finish([job.claim for job in found], [], self.clock()))

    async def count(self) -> None:
        """Let the leader count what has ended."""
        self.clock.forward(10)
        counter = JobCounter(self.database, self.clock)
        while await counter.tick():
            pass

    async def sample(self, *samples: tuple[str, str, int]) -> None:
        await self.database.run(keep_depths([DepthSample(*each) for each in samples], self.clock()))

    async def audited(self) -> Sequence[str]:
        """The actions in the audit log, oldest first, without those of the setup."""
        entries = await self.database.run(list_audit(100))
        return [each.action for each in reversed(entries) if each.actor.startswith("person:")]

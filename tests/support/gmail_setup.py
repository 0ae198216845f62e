"""The Gmail connector between a real emulator and a real switchboard, in one process."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from postroom.core.errors import PostroomError
from postroom.core.mail.ingestion import IngestionPolicy
from postroom.core.roles import Principal, Role
from postroom.core.tally import Tally
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.mailboxes.following.knowledge import Knowledge, SentIdsInMemory
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.operations.jobs.queues import peek
from postroom.settings.reading import Settings
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import McpSwitchboard, switchboard_within
from postroom.sources.runtime import ConnectorHealth
from postroom.sources.switchboard_client import Receipt
from postroom.store.engine.database import Database
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN
from support.switchboard import open_account, services_on

SEED = 7


class WatchedHealth(ConnectorHealth):
    """ConnectorHealth of which a test can wait to be as it wants them."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self._news = asyncio.Event()

    def well(self) -> None:
        super().well()
        self._news.set()

    def reach(self, cursor: str) -> None:
        super().reach(cursor)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()


class ListeningSwitchboard(McpSwitchboard):
    """The real one; what it is told beside mail is also kept here."""

    reports: list[dict[str, Any]]
    people: list[str]
    ingested: int
    before: Callable[[int], None]
    """Called before a batch is handed in, with how many were before it; may raise."""

    async def ingest_batch(self, envelopes: Sequence[Mapping[str, Any]]) -> list[Receipt | PostroomError]:
        self.before(self.ingested)
        results = await super().ingest_batch(envelopes)
        self.ingested += len(envelopes)
        return results

    async def changes(self, reports: Sequence[Any]) -> None:
        self.reports += [dict(each) for each in reports]
        await super().changes(reports)

    async def correspondents(self, addresses: Sequence[str]) -> None:
        self.people += addresses
        await super().correspondents(addresses)


def listening_within(services: Services) -> ListeningSwitchboard:
    plain = switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT)))
    board = ListeningSwitchboard(plain._connect)  # pyright: ignore[reportPrivateUsage]
    board.reports, board.people = [], []
    board.ingested, board.before = 0, lambda _count: None
    return board


@dataclass
class GmailSetup:
    """A mailbox, a switchboard, and connectors between them: each `connector` is a new start on the same folder."""

    folder: Path
    emulator: Emulator
    address: str
    http: httpx2.AsyncClient
    services: Services
    board: ListeningSwitchboard
    clock: ManualClock
    sent: SentIdsInMemory = field(default_factory=SentIdsInMemory)
    contacts: Callable[[], frozenset[str] | None] = frozenset
    policy: Callable[[], IngestionPolicy] = IngestionPolicy
    tally: Tally = field(default_factory=Tally)
    health: WatchedHealth = field(init=False)

    def __post_init__(self) -> None:
        self.health = WatchedHealth(self.clock)

    @property
    def mailbox(self) -> Mailbox:
        return self.emulator.mailbox

    @property
    def calls(self) -> Counter[str]:
        return self.emulator.quota.counters.calls

    def client(self) -> GmailClient:
        async def token() -> str:
            return TOKEN

        return GmailClient(self.http, self.address, token)

    def connector(self, email: str = OWNER, knowledge: Knowledge | None = None, **options: Any) -> GmailConnector:
        return GmailConnector(
            self.client(),
            self.board,
            Checkpoint(self.folder / "checkpoint.json"),
            email=email,
            endpoint_identity=ENDPOINT,
            clock=self.clock,
            tally=self.tally,
            health=self.health,
            knowledge=knowledge or Knowledge([email], sent=self.sent, contacts=self.contacts, policy=self.policy),
            folder=self.folder,
            **options,
        )

    async def waiting(self) -> dict[str, dict[str, Any]]:
        """What the switchboard has, by Gmail's ids."""
        found = await peek(self.services.database, self.services.queues, "email", 100)
        arrived = {each.envelope["event"]["external_event_id"]: each.envelope for each in found}
        assert len(arrived) == len(found), "something came twice"
        return arrived


@contextlib.asynccontextmanager
async def gmail_setup(
    database: Database,
    clock: ManualClock,
    folder: Path,
    search_lag: timedelta = timedelta(0),
    time_zone: str = "UTC",
    **options: Any,
) -> AsyncGenerator[GmailSetup]:
    print(f"seed {SEED}")
    mailbox = Mailbox(OWNER, Random(SEED), clock=clock, search_lag=search_lag)
    emulator = Emulator(mailbox, TOKEN, seed=SEED)
    services = services_on(database, clock, settings=Settings.model_validate({"backfill": {"time_zone": time_zone}}))
    await open_account(services, OWNER)
    async with running_emulator(emulator) as address, httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_S) as http:
        yield GmailSetup(folder, emulator, address, http, services, listening_within(services), clock, **options)

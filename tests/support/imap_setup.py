"""The IMAP connector between a real server and a real switchboard, in one process."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postroom.core.mail.accounts import endpoint_of
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.interfaces.http.services import Services
from postroom.mailboxes.following.knowledge import Knowledge, SentIdsInMemory
from postroom.mailboxes.imap.account import ImapAccount
from postroom.mailboxes.imap.following.live import ImapConnector
from postroom.mailboxes.imap.following.place_index import PlaceIndex
from postroom.operations.jobs.queues import peek
from postroom.sources.mcp_switchboard import switchboard_within
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from support.clocks import ManualClock
from support.gmail_setup import ListeningSwitchboard, WatchedHealth
from support.imap_mailbox import Beside, account_on
from support.imap_server import ImapServer
from support.switchboard import services_on

OWNER = "mara@lindqvist.example"
ENDPOINT = endpoint_of("imap", OWNER)


@dataclass
class ImapSetup:
    """A mailbox, a switchboard, and connectors between them: each `connector` is a new start on the same folder."""

    folder: Path
    server: ImapServer
    user: str
    profile: str
    beside: Beside
    services: Services
    board: ListeningSwitchboard
    clock: ManualClock
    sent: SentIdsInMemory = field(default_factory=SentIdsInMemory)
    port: int | None = None
    _opened: list[tuple[ImapAccount, PlaceIndex]] = field(default_factory=list[tuple[ImapAccount, PlaceIndex]])

    def __post_init__(self) -> None:
        self.health = WatchedHealth(self.clock)

    def account(self) -> ImapAccount:
        return account_on(self.server, self.user, self.profile, self.port)

    def connector(self, **options: Any) -> ImapConnector:
        account, index = self.account(), PlaceIndex(self.folder / "places.db")
        self._opened.append((account, index))
        return ImapConnector(
            account,
            self.board,
            index,
            email=OWNER,
            endpoint_identity=ENDPOINT,
            clock=options.pop("clock", wall_clock),
            health=self.health,
            knowledge=options.pop("knowledge", None) or Knowledge([OWNER], sent=self.sent),
            folder=self.folder,
            **options,
        )

    async def waiting(self) -> dict[str, dict[str, Any]]:
        """What the switchboard has, by the messages' ids."""
        found = await peek(self.services.database, self.services.queues, "email", 100)
        arrived = {each.envelope["event"]["external_event_id"]: each.envelope for each in found}
        assert len(arrived) == len(found), "something came twice"
        return arrived

    async def close(self) -> None:
        for account, index in self._opened:
            await account.log_out()
            index.close()
        await asyncio.to_thread(self.beside.close)


@contextlib.asynccontextmanager
async def imap_setup(
    server: ImapServer,
    database: Database,
    clock: ManualClock,
    folder: Path,
    profile: str = "all",
    port: int | None = None,
) -> AsyncGenerator[ImapSetup]:
    services, user = services_on(database, clock), server.new_user()
    await database.run(keep_account(new_id(), "imap", ENDPOINT, OWNER, clock()))
    plain = switchboard_within(build_server(services, Principal(Role.CONNECTOR, ENDPOINT)))
    board = ListeningSwitchboard(plain._connect)  # pyright: ignore[reportPrivateUsage]
    board.reports, board.people = [], []
    board.ingested, board.before = 0, lambda _count: None
    setup = ImapSetup(folder, server, user, profile, Beside(server, user, profile), services, board, clock, port=port)
    try:
        yield setup
    finally:
        await setup.close()

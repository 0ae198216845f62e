"""The common parts of every mail connector: its folder, what runs beside it, and its work inside the switchboard's
process.
"""

import asyncio
import contextlib
import fcntl
import os
import platform
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import structlog

from postroom import __version__
from postroom.core.errors import BadInput, PostroomError
from postroom.core.mail.accounts import endpoint_of, mailbox_name, provider_of
from postroom.core.tally import Tally
from postroom.mailboxes.backfill.lease import KeptLease
from postroom.mailboxes.backfill.worker import BackfillWorker
from postroom.mailboxes.following.connector import ConnectorTerms, MailConnector
from postroom.mailboxes.following.contact_cache import ContactCache
from postroom.mailboxes.following.filter_cache import FilterCache
from postroom.mailboxes.following.hints import Hints
from postroom.mailboxes.following.knowledge import Knowledge, OtherAddresses
from postroom.mailboxes.following.receiving_hosts import ReceivingHosts
from postroom.mailboxes.following.request_handlers import RequestHandlers
from postroom.mailboxes.following.sent_index import SentIndex
from postroom.mailboxes.following.source import MailSource
from postroom.sources.mcp_switchboard import McpSwitchboard
from postroom.sources.request_server import RequestServer
from postroom.sources.runtime import Connector, ConnectorHealth, Heartbeats, introduce, sending_heartbeats
from postroom.system.boot_clock import since_boot
from postroom.system.private_files import open_private, private_folder
from postroom.system.restore_lock import sharing_folder
from postroom.system.wall_clock import wall_clock

if TYPE_CHECKING:
    from postroom.settings.reading import Settings

# How many requests a connector handles at once besides the newest: none waits behind a long search.
BESIDE = 3

C = TypeVar("C", bound=MailConnector, covariant=True)
S = TypeVar("S", bound=MailSource, covariant=True)
P = TypeVar("P", bound="ConnectorChores[MailConnector, MailSource]")


@dataclass(frozen=True)
class ConnectorChores(Generic[C, S]):
    """The connector, the mailbox that it reads, and what is refreshed beside it."""

    connector: C
    source: S
    contacts: ContactCache
    filters: FilterCache
    backfills: BackfillWorker


@dataclass(frozen=True)
class ConnectorHome:
    """The folder of a connector and what it keeps there, whatever its provider. The mailbox's own address is the first.
    `polls` are the times at which each endpoint asked for a backfill.
    """

    settings: "Settings"
    switchboard: McpSwitchboard
    folder: Path
    health: ConnectorHealth
    identity: str
    addresses: Sequence[str]
    tally: Tally | None
    polls: dict[str, float] | None
    sent: SentIndex
    contacts: ContactCache
    filters: FilterCache
    acts_from: datetime | None = None

    def terms(
        self, hosts: Iterable[str], hints: Hints | None = None, more_addresses: OtherAddresses | None = None
    ) -> ConnectorTerms:
        """The terms of the connector; `hosts` are the known ones that receive its mail."""
        knowledge = Knowledge(
            self.addresses,
            more_addresses=more_addresses,
            sent=self.sent,
            contacts=self.contacts.addresses,
            policy=self.filters.policy,
            fetch_policy=self.filters.refresh,
            hosts=ReceivingHosts(hosts, self.folder),
        )
        return {
            "email": self.addresses[0],
            "endpoint_identity": self.identity,
            "clock": wall_clock,
            "tally": self.tally,
            "health": self.health,
            "knowledge": knowledge,
            "folder": self.folder,
            "hints": hints,
            "acts_from": self.acts_from,
        }

    def chores(self, connector: C, source: S) -> ConnectorChores[C, S]:
        """The connector with what is beside it, the worker for backfills of its mailbox among it."""
        interval = self.settings.backfill.progress_interval
        backfills = BackfillWorker(
            self.switchboard,
            provider_of(self.identity),
            self.identity,
            connector.backfill(self.switchboard, interval, since_boot).begin,
            clock=since_boot,
            polls=self.polls,
            lease=KeptLease(self.folder / "backfill-lease.json"),
            refresh=connector.knowledge.refresh_policy,
        )
        return ConnectorChores(connector, source, self.contacts, self.filters, backfills)


@contextlib.contextmanager
def connector_home(
    settings: "Settings",
    switchboard: McpSwitchboard,
    folder: Path,
    health: ConnectorHealth,
    provider: str,
    addresses: Sequence[str],
    *,
    tally: Tally | None = None,
    polls: dict[str, float] | None = None,
    acts_from: datetime | None = None,
) -> Generator[ConnectorHome]:
    """Open the folder, with contacts and filters as the connector last got them from the switchboard."""
    good_for = timedelta(seconds=settings.connector.contacts_stale_s)
    contacts = ContactCache(folder / "contacts.json", switchboard, wall_clock, good_for)
    health.contacts_generated_at = lambda: contacts.generated_at
    filters = FilterCache(folder / "filters.json", switchboard)
    identity = endpoint_of(provider, addresses[0])
    with contextlib.closing(SentIndex(folder / "sent.db")) as sent:
        yield ConnectorHome(
            settings, switchboard, folder, health, identity, addresses, tally, polls, sent, contacts, filters, acts_from
        )


def connector_folder(settings: "Settings", provider: str, email: str) -> Path:
    return settings.data_dir / "connectors" / f"{provider}-{email}"


def heartbeats_of(switchboard: McpSwitchboard, identity: str, health: ConnectorHealth) -> Heartbeats:
    """The reports of the connector of this endpoint on this machine."""
    host = platform.node() or "postroom"
    return Heartbeats(switchboard, Connector(provider_of(identity), identity, host, __version__), health, wall_clock)


async def watch_within(
    settings: "Settings",
    switchboard: McpSwitchboard,
    provider: str,
    email: str,
    open_parts: Callable[[ConnectorHome], AbstractContextManager[P]],
    poll_s: float,
    *,
    tally: Tally,
    polls: dict[str, float] | None = None,
    acts_from: datetime | None = None,
    more: Callable[[P], Sequence[Coroutine[Any, Any, None]]] = lambda _: (),
) -> None:
    """Watch a mailbox inside the switchboard's process, until canceled. Jobs call it when there is a backfill."""
    health, stop = ConnectorHealth(wall_clock), asyncio.Event()
    heartbeats = heartbeats_of(switchboard, endpoint_of(provider, email), health)
    with (
        held_folder(connector_folder(settings, provider, email)) as folder,
        connector_home(
            settings, switchboard, folder, health, provider, [email], tally=tally, polls=polls, acts_from=acts_from
        ) as home,
        open_parts(home) as parts,
    ):
        await introduce(heartbeats)
        await refresh(parts)
        async with (
            sending_heartbeats(heartbeats, timedelta(seconds=settings.connector.heartbeat_s)),
            beside([*chores(settings, parts, switchboard, stop), *more(parts), parts.backfills.run()]),
        ):
            await parts.connector.run(timedelta(seconds=poll_s), stop)


class FolderInUse(BadInput):
    """Another process runs the connector of this mailbox from the same data folder."""


@contextlib.contextmanager
def held_folder(folder: Path) -> Generator[Path]:
    """Lock the connector's folder for one process: two would overwrite each other's checkpoint.

    The lock belongs to the mailbox, whichever spelling of its address the folder is named after.
    """
    provider, _, email = folder.name.partition("-")
    locked = folder.with_name(f"{provider}-{mailbox_name(email)}")
    for each in {folder, locked}:
        private_folder(each)
    with (
        sharing_folder(folder.parent.parent),
        open(open_private(locked / "lock", os.O_WRONLY | os.O_CREAT), "w") as lock,
    ):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = f"a connector for {email} is already running in {folder.parent}"
            raise FolderInUse("--email", problem, "stop that one first, or give another --data-dir") from None
        yield folder


async def refresh(parts: ConnectorChores[MailConnector, MailSource]) -> None:
    """Refresh contacts and filters before the first round. If that fails, mail is delivered all the same."""
    for refresh in (parts.filters.refresh, parts.contacts.refresh):
        with contextlib.suppress(PostroomError, OSError):
            await refresh()


def chores(
    settings: "Settings",
    parts: ConnectorChores[MailConnector, MailSource],
    switchboard: McpSwitchboard,
    stop: asyncio.Event,
) -> list[Coroutine[Any, Any, None]]:
    """Return the background tasks of the connector. None of them can end it."""
    handlers = RequestHandlers(parts.connector, parts.source, parts.backfills)
    return [
        parts.filters.run(stop),
        parts.contacts.run(stop, timedelta(seconds=settings.connector.contacts_refresh_s)),
        RequestServer(switchboard, handlers.handlers(), BESIDE).run(stop),
        parts.connector.sent_mail.keep_reading(),
    ]


@contextlib.asynccontextmanager
async def beside(works: Sequence[Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    tasks = {asyncio.create_task(work) for work in works}
    for task in tasks:
        task.add_done_callback(_tell_failure)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        structlog.get_logger().error("connector.chore_failed", error=type(error).__name__)

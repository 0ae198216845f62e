"""The common parts of every mail connector: its folder, what runs beside it, and its work inside the switchboard's
process.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import platform
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from postroom import __version__
from postroom.core.errors import BadInput, PostroomError
from postroom.core.mail.accounts import mailbox_name, provider_of
from postroom.system.private_files import open_private, private_folder
from postroom.system.restore_lock import sharing_folder

if TYPE_CHECKING:
    from pathlib import Path

    from postroom.mailboxes.backfill.worker import BackfillWorker
    from postroom.mailboxes.following.connector import MailConnector
    from postroom.mailboxes.following.contact_cache import ContactCache
    from postroom.mailboxes.following.filter_cache import FilterCache
    from postroom.mailboxes.following.source import MailSource
    from postroom.settings.reading import Settings
    from postroom.sources.mcp_switchboard import McpSwitchboard
    from postroom.sources.runtime import ConnectorHealth, Heartbeats

# How many requests a connector handles at once besides the newest: none waits behind a long search.
BESIDE = 3


@dataclass(frozen=True)
class ConnectorChores:
    """The connector, the mailbox that it reads, and what is refreshed beside it."""

    connector: MailConnector
    source: MailSource
    contacts: ContactCache
    filters: FilterCache
    backfills: BackfillWorker


def caches_of(
    settings: Settings, switchboard: McpSwitchboard, folder: Path, health: ConnectorHealth
) -> tuple[ContactCache, FilterCache]:
    """Contacts and filters, as the connector last got them from the switchboard."""
    from postroom.mailboxes.following.contact_cache import ContactCache
    from postroom.mailboxes.following.filter_cache import FilterCache
    from postroom.system.wall_clock import wall_clock

    good_for = timedelta(seconds=settings.connector.contacts_stale_s)
    contacts = ContactCache(folder / "contacts.json", switchboard, wall_clock, good_for)
    health.contacts_generated_at = lambda: contacts.generated_at
    return contacts, FilterCache(folder / "filters.json", switchboard)


def backfill_worker(
    settings: Settings,
    switchboard: McpSwitchboard,
    identity: str,
    connector: MailConnector,
    folder: Path,
    polls: dict[str, float] | None,
) -> BackfillWorker:
    """The worker for backfills of the connector's mailbox."""
    from postroom.mailboxes.backfill.lease import KeptLease
    from postroom.mailboxes.backfill.worker import BackfillWorker
    from postroom.system.boot_clock import since_boot

    return BackfillWorker(
        switchboard,
        provider_of(identity),
        identity,
        connector.backfill(switchboard, settings.backfill.progress_interval, since_boot).begin,
        clock=since_boot,
        polls=polls,
        lease=KeptLease(folder / "backfill-lease.json"),
        refresh=connector.knowledge.refresh_policy,
    )


def connector_folder(settings: Settings, provider: str, email: str) -> Path:
    return settings.data_dir / "connectors" / f"{provider}-{email}"


def heartbeats_of(switchboard: McpSwitchboard, identity: str, health: ConnectorHealth) -> Heartbeats:
    """The reports of the connector of this endpoint on this machine."""
    from postroom.sources.runtime import Connector, Heartbeats
    from postroom.system.wall_clock import wall_clock

    host = platform.node() or "postroom"
    return Heartbeats(switchboard, Connector(provider_of(identity), identity, host, __version__), health, wall_clock)


async def run_within(
    settings: Settings,
    switchboard: McpSwitchboard,
    heartbeats: Heartbeats,
    parts: ConnectorChores,
    poll: timedelta,
    more: Callable[[], Sequence[Coroutine[Any, Any, None]]] = tuple,
) -> None:
    """Run the connector inside the switchboard's process, until canceled. Jobs call it when there is a backfill."""
    from postroom.sources.runtime import introduce, sending_heartbeats

    stop = asyncio.Event()
    await introduce(heartbeats)
    await refresh(parts)
    async with (
        sending_heartbeats(heartbeats, timedelta(seconds=settings.connector.heartbeat_s)),
        beside([*chores(settings, parts, switchboard, stop), *more(), parts.backfills.run()]),
    ):
        await parts.connector.run(poll, stop)


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


async def refresh(parts: ConnectorChores) -> None:
    """Refresh contacts and filters before the first round. If that fails, mail is delivered all the same."""
    for refresh in (parts.filters.refresh, parts.contacts.refresh):
        with contextlib.suppress(PostroomError, OSError):
            await refresh()


def chores(
    settings: Settings, parts: ConnectorChores, switchboard: McpSwitchboard, stop: asyncio.Event
) -> list[Coroutine[Any, Any, None]]:
    """Return the background tasks of the connector. None of them can end it."""
    from postroom.mailboxes.following.request_handlers import RequestHandlers
    from postroom.sources.request_server import RequestServer

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
    import structlog

    if not task.cancelled() and (error := task.exception()) is not None:
        structlog.get_logger().error("connector.chore_failed", error=type(error).__name__)

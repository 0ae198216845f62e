"""Compose the Gmail connector in its own process: mailbox, switchboard, contacts and filters, shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import platform
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from postroom import __version__
from postroom.compose.connector import connector_token, exporting_alone, heartbeat_every, introduce, until_stopped
from postroom.core.errors import BadInput, PostroomError
from postroom.core.mail.accounts import gmail_endpoint, mailbox_name
from postroom.store.restore_lock import sharing_folder
from postroom.system.private_files import open_private, private_folder

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from postroom.connectors.contact_cache import ContactCache
    from postroom.connectors.filter_cache import FilterCache
    from postroom.connectors.gmail.live import GmailConnector
    from postroom.connectors.mail.backfill.worker import BackfillWorker
    from postroom.connectors.mail.hints import Hints
    from postroom.connectors.mail.sent_index import SentIndex
    from postroom.connectors.mcp_switchboard import McpSwitchboard
    from postroom.connectors.runtime import ConnectorHealth
    from postroom.core.tally import Tally
    from postroom.gmail.client import GmailClient
    from postroom.gmail.quota import Quota
    from postroom.gmail.tokens import TokenProvider
    from postroom.settings.reading import Settings


# How many requests a connector handles at once besides the newest: none waits behind a long search.
BESIDE = 3


class WatchedMailbox(TypedDict):
    """The mailbox, the user's other addresses, and whether to run only one round.

    `ready` is called with the identity once the switchboard knows the connector, `report` with the number of new
    messages of one round.
    """

    email: str
    also: tuple[str, ...]
    once: bool
    ready: Callable[[str], None]
    report: Callable[[int], None]


@dataclass(frozen=True)
class ConnectorParts:
    """The connector, and what is refreshed beside it."""

    connector: GmailConnector
    client: GmailClient
    contacts: ContactCache
    filters: FilterCache
    sent: SentIndex
    backfills: BackfillWorker


async def run_gmail_source(settings: Settings, stop: asyncio.Event, **watching: Unpack[WatchedMailbox]) -> None:
    """Watch the mailbox until `stop`, or for one round."""
    import httpx2

    from postroom.connectors.mcp_switchboard import switchboard_at
    from postroom.connectors.runtime import Connector, ConnectorHealth, Heartbeats, sending_heartbeats
    from postroom.store.engine.clock import wall_clock

    email = watching["email"].lower()
    identity = gmail_endpoint(email)
    token = connector_token(settings, identity)
    health = ConnectorHealth(wall_clock)
    with held_folder(settings.data_dir / "connectors" / f"gmail-{email}") as folder:
        async with (
            exporting_alone(settings) as tally,
            httpx2.AsyncClient(timeout=30) as http,
            switchboard_at(settings.connector.switchboard_url, token) as switchboard,
        ):
            host = platform.node() or "postroom"
            heartbeats = Heartbeats(switchboard, Connector("gmail", identity, host, __version__), health, wall_clock)
            await introduce(heartbeats)
            own = [email, *watching["also"]]
            with connector_parts(settings, switchboard, http, folder, health, own, tally=tally) as parts:
                watching["ready"](identity)
                await _refresh(parts)
                if watching["once"]:
                    watching["report"](await parts.connector.sync())
                    await heartbeats.beat()
                    return
                async with (
                    sending_heartbeats(heartbeats, heartbeat_every(settings)),
                    _beside([*_chores(settings, parts, switchboard, stop), parts.backfills.run(stop)]),
                ):
                    poll = timedelta(seconds=settings.gmail.poll_s)
                    await until_stopped(parts.connector.run(poll, stop), stop)


async def watch_within(
    settings: Settings,
    switchboard: McpSwitchboard,
    http: httpx2.AsyncClient,
    email: str,
    *,
    tally: Tally,
    quota: Quota,
    polls: dict[str, float] | None = None,
) -> None:
    """Watch the mailbox inside the switchboard's process, until canceled. Jobs drive its backfills; `polls` are the
    times at which each endpoint asked for one.
    """
    from postroom.connectors.runtime import Connector, ConnectorHealth, Heartbeats, sending_heartbeats
    from postroom.store.engine.clock import wall_clock

    identity, stop = gmail_endpoint(email), asyncio.Event()
    health = ConnectorHealth(wall_clock)
    host = platform.node() or "postroom"
    heartbeats = Heartbeats(switchboard, Connector("gmail", identity, host, __version__), health, wall_clock)
    with (
        held_folder(settings.data_dir / "connectors" / f"gmail-{email}") as folder,
        connector_parts(
            settings, switchboard, http, folder, health, [email], tally=tally, quota=quota, polls=polls
        ) as parts,
    ):
        await introduce(heartbeats)
        await _refresh(parts)
        async with (
            sending_heartbeats(heartbeats, heartbeat_every(settings)),
            _beside(_chores(settings, parts, switchboard, stop)),
        ):
            await parts.connector.run(timedelta(seconds=settings.gmail.poll_s), stop)


@contextlib.contextmanager
def held_folder(folder: Path) -> Generator[Path]:
    """Lock the connector's folder for one process: two would overwrite each other's checkpoint.

    The lock belongs to the mailbox, whichever spelling of its address the folder is named after.
    """
    email = folder.name.removeprefix("gmail-")
    locked = folder.with_name(f"gmail-{mailbox_name(email)}")
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
            raise BadInput("--email", problem, "stop that one first, or give another --data-dir") from None
        yield folder


@contextlib.contextmanager
def connector_parts(
    settings: Settings,
    switchboard: McpSwitchboard,
    http: httpx2.AsyncClient,
    folder: Path,
    health: ConnectorHealth,
    addresses: Sequence[str],
    *,
    tally: Tally | None = None,
    quota: Quota | None = None,
    polls: dict[str, float] | None = None,
) -> Generator[ConnectorParts]:
    from postroom.compose.google import quota_terms
    from postroom.connectors.checkpoint import Checkpoint
    from postroom.connectors.contact_cache import ContactCache
    from postroom.connectors.filter_cache import FilterCache
    from postroom.connectors.gmail.live import GmailConnector
    from postroom.connectors.gmail.send_as import SendAsAddresses
    from postroom.connectors.gmail.spending import RememberedQuota
    from postroom.connectors.mail.backfill.lease import KeptLease
    from postroom.connectors.mail.backfill.worker import BackfillWorker
    from postroom.connectors.mail.knowledge import Knowledge
    from postroom.connectors.mail.sent_index import SentIndex
    from postroom.gmail.client import GmailClient
    from postroom.store.engine.clock import wall_clock
    from postroom.system.boot_clock import since_boot

    email = addresses[0]
    tokens = _tokens(settings, switchboard)
    good_for = timedelta(seconds=settings.connector.contacts_stale_s)
    contacts = ContactCache(folder / "contacts.json", switchboard, wall_clock, good_for)
    health.contacts_generated_at = lambda: contacts.generated_at
    filters = FilterCache(folder / "filters.json", switchboard)
    with (
        contextlib.closing(SentIndex(folder / "sent.db")) as sent,
        contextlib.closing(RememberedQuota(folder / "quota", quota_terms(settings))) as own,
    ):
        client = GmailClient(http, settings.gmail.base_url, tokens, quota=quota or own)
        connector = GmailConnector(
            client,
            switchboard,
            Checkpoint(folder / "checkpoint.json"),
            email=email,
            endpoint_identity=gmail_endpoint(email),
            clock=wall_clock,
            tally=tally,
            health=health,
            knowledge=Knowledge(
                addresses,
                more_addresses=SendAsAddresses(folder / "send_as.json", client, wall_clock),
                sent=sent,
                contacts=contacts.addresses,
                policy=filters.policy,
            ),
            folder=folder,
            hints=_hints(settings, http, email, tokens),
        )
        backfills = BackfillWorker(
            switchboard,
            "gmail",
            gmail_endpoint(email),
            connector.backfill(switchboard, settings.backfill.progress_interval, since_boot).begin,
            poll_interval_s=settings.backfill.poll_interval_s,
            clock=since_boot,
            polls=polls,
            lease=KeptLease(folder / "backfill-lease.json"),
        )
        yield ConnectorParts(connector, client, contacts, filters, sent, backfills)


def _tokens(settings: Settings, switchboard: McpSwitchboard) -> TokenProvider:
    """Return tokens from the switchboard, or the one in the settings, as for the sandbox."""
    from postroom.gmail.scopes import Consented
    from postroom.gmail.tokens import AccessToken, PlainTokens, Tokens
    from postroom.store.engine.clock import wall_clock

    given = settings.gmail.token

    async def plain() -> str:
        return "" if given is None else given.get_secret_value()

    async def fetch(refused: str | None) -> AccessToken:
        asked_at = wall_clock()
        granted = await switchboard.access_token(refused)
        consented = Consented(granted.account, granted.scopes)
        return AccessToken(granted.value, asked_at + granted.expires_in, consented)

    return Tokens(fetch, wall_clock) if given is None else PlainTokens(plain)


def _hints(settings: Settings, http: httpx2.AsyncClient, email: str, tokens: TokenProvider) -> Hints | None:
    """Pull hints as the service account if the settings name its key file, otherwise with the mailbox's consent."""
    from postroom.compose.google import pubsub_key_file
    from postroom.connectors.gmail.hints import PubSubHints
    from postroom.gmail.scopes import PUBSUB
    from postroom.gmail.service_account import service_account_tokens
    from postroom.store.engine.clock import wall_clock

    gmail = settings.gmail
    if gmail.pubsub_subscription is None:
        return None
    if (file := pubsub_key_file(settings)) is not None:
        tokens = service_account_tokens(http, file, (PUBSUB,), wall_clock)
    return PubSubHints(http, gmail.pubsub_subscription, email, tokens, gmail.pubsub_url)


async def _refresh(parts: ConnectorParts) -> None:
    """Refresh contacts and filters before the first round. If that fails, mail is delivered all the same."""
    for refresh in (parts.filters.refresh, parts.contacts.refresh):
        with contextlib.suppress(PostroomError, OSError):
            await refresh()


def _chores(
    settings: Settings, parts: ConnectorParts, switchboard: McpSwitchboard, stop: asyncio.Event
) -> list[Coroutine[Any, Any, None]]:
    """Return the background tasks of the connector. None of them can end it."""
    from postroom.connectors.gmail.watch import keep_watching
    from postroom.connectors.mail.request_handlers import RequestHandlers
    from postroom.connectors.request_server import RequestServer

    handlers = RequestHandlers(parts.connector, parts.client, parts.backfills)
    chores: list[Coroutine[Any, Any, None]] = [
        parts.filters.run(stop),
        parts.contacts.run(stop, timedelta(seconds=settings.connector.contacts_refresh_s)),
        RequestServer(switchboard, handlers.handlers(), BESIDE).run(stop),
        parts.connector.sent_mail.keep_reading(),
    ]
    if settings.gmail.pubsub_topic is not None:
        chores.append(keep_watching(parts.client, settings.gmail.pubsub_topic))
    return chores


@contextlib.asynccontextmanager
async def _beside(works: Sequence[Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    tasks = {asyncio.create_task(work) for work in works}
    for task in tasks:
        task.add_done_callback(_tell_failure)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _tell_failure(task: asyncio.Task[None]) -> None:
    import structlog

    if not task.cancelled() and (error := task.exception()) is not None:
        structlog.get_logger().error("connector.chore_failed", error=type(error).__name__)

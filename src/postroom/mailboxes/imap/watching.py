"""The IMAP connector, put together: mailbox, switchboard, contacts and filters, news, shutdown."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from postroom.core.mail.accounts import endpoint_of
from postroom.mailboxes.following.running import (
    ConnectorChores,
    backfill_worker,
    caches_of,
    connector_folder,
    heartbeats_of,
    held_folder,
    run_within,
)
from postroom.mailboxes.imap.facts import NAME

if TYPE_CHECKING:
    from pathlib import Path

    from postroom.core.tally import Tally
    from postroom.mailboxes.imap.account import ImapAccount, OpenSession
    from postroom.settings.reading import Settings
    from postroom.sources.mcp_switchboard import McpSwitchboard
    from postroom.sources.runtime import ConnectorHealth


async def watch_within(
    settings: Settings,
    switchboard: McpSwitchboard,
    email: str,
    account: ImapAccount,
    open_session: OpenSession,
    *,
    tally: Tally,
    polls: dict[str, float] | None = None,
    hosts: Collection[str] = (),
) -> None:
    """Watch the mailbox inside the switchboard's process, until canceled. `polls` are the times at which each endpoint
    asked for a backfill; `hosts` are the known ones that receive its mail.
    """
    from postroom.sources.runtime import ConnectorHealth
    from postroom.system.wall_clock import wall_clock

    health = ConnectorHealth(wall_clock)
    heartbeats = heartbeats_of(switchboard, endpoint_of(NAME, email), health)
    with (
        held_folder(connector_folder(settings, NAME, email)) as folder,
        connector_parts(
            settings, switchboard, account, open_session, folder, health, [email], tally=tally, polls=polls, hosts=hosts
        ) as parts,
    ):
        await run_within(settings, switchboard, heartbeats, parts, timedelta(seconds=settings.imap.poll_s))


@contextlib.contextmanager
def connector_parts(
    settings: Settings,
    switchboard: McpSwitchboard,
    account: ImapAccount,
    open_session: OpenSession,
    folder: Path,
    health: ConnectorHealth,
    addresses: Sequence[str],
    *,
    tally: Tally | None = None,
    polls: dict[str, float] | None = None,
    hosts: Collection[str] = (),
) -> Generator[ConnectorChores]:
    """The connector. Work is done in `account`; `open_session` opens the connection that waits for news."""
    from postroom.mailboxes.following.knowledge import Knowledge
    from postroom.mailboxes.following.receiving_hosts import ReceivingHosts
    from postroom.mailboxes.following.sent_index import SentIndex
    from postroom.mailboxes.imap.following.idle import IdleHints
    from postroom.mailboxes.imap.following.live import ImapConnector
    from postroom.mailboxes.imap.following.place_index import PlaceIndex
    from postroom.system.wall_clock import wall_clock

    email = addresses[0]
    contacts, filters = caches_of(settings, switchboard, folder, health)
    with (
        contextlib.closing(SentIndex(folder / "sent.db")) as sent,
        contextlib.closing(PlaceIndex(folder / "places.db")) as index,
        contextlib.closing(IdleHints(open_session, settings.imap.poll_s)) as hints,
    ):
        connector = ImapConnector(
            account,
            switchboard,
            index,
            email=email,
            endpoint_identity=endpoint_of(NAME, email),
            clock=wall_clock,
            tally=tally,
            health=health,
            knowledge=Knowledge(
                addresses,
                sent=sent,
                contacts=contacts.addresses,
                policy=filters.policy,
                fetch_policy=filters.refresh,
                hosts=ReceivingHosts(hosts, folder),
            ),
            folder=folder,
            hints=hints,
        )
        backfills = backfill_worker(settings, switchboard, endpoint_of(NAME, email), connector, folder, polls)
        yield ConnectorChores(connector, connector.source, contacts, filters, backfills)

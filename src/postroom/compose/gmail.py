"""Compose the Gmail connector in its own process: mailbox, switchboard, contacts and filters, shutdown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypedDict, Unpack

from postroom.compose.connector import connector_token, exporting_alone, heartbeat_every, until_stopped
from postroom.core.mail.accounts import endpoint_of
from postroom.mailboxes.following.running import (
    beside,
    chores,
    connector_folder,
    connector_home,
    heartbeats_of,
    held_folder,
    refresh,
)
from postroom.mailboxes.gmail.facts import NAME
from postroom.mailboxes.gmail.watching import connector_parts, more_chores

if TYPE_CHECKING:
    import asyncio

    from postroom.settings.reading import Settings


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


async def run_gmail_source(settings: Settings, stop: asyncio.Event, **watching: Unpack[WatchedMailbox]) -> None:
    """Watch the mailbox until `stop`, or for one round."""
    import httpx2

    from postroom.sources.mcp_switchboard import switchboard_at
    from postroom.sources.runtime import ConnectorHealth, introduce, sending_heartbeats
    from postroom.system.wall_clock import wall_clock

    email = watching["email"].lower()
    identity = endpoint_of(NAME, email)
    token = connector_token(settings, identity)
    health = ConnectorHealth(wall_clock)
    with held_folder(connector_folder(settings, NAME, email)) as folder:
        async with (
            exporting_alone(settings) as tally,
            httpx2.AsyncClient(timeout=30) as http,
            switchboard_at(settings.connector.switchboard_url, token) as switchboard,
        ):
            heartbeats = heartbeats_of(switchboard, identity, health)
            await introduce(heartbeats)
            own = [email, *watching["also"]]
            with (
                connector_home(settings, switchboard, folder, health, NAME, own, tally=tally) as home,
                connector_parts(home, http) as parts,
            ):
                watching["ready"](identity)
                await refresh(parts)
                if watching["once"]:
                    watching["report"](await parts.connector.sync())
                    await heartbeats.beat()
                    return
                async with (
                    sending_heartbeats(heartbeats, heartbeat_every(settings)),
                    beside(
                        [
                            *chores(settings, parts, switchboard, stop),
                            *more_chores(settings, parts),
                            parts.backfills.run(settings.backfill.poll_interval_s),
                        ]
                    ),
                ):
                    poll = timedelta(seconds=settings.gmail.poll_s)
                    await until_stopped(parts.connector.run(poll, stop), stop)

"""The Gmail connector, put together: mailbox, switchboard, contacts and filters, hints."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Generator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

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
from postroom.mailboxes.gmail.facts import FACTS, NAME

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from postroom.core.tally import Tally
    from postroom.mailboxes.following.hints import Hints
    from postroom.mailboxes.following.sent_index import SentIndex
    from postroom.mailboxes.gmail.client import GmailClient
    from postroom.mailboxes.gmail.following.live import GmailConnector
    from postroom.mailboxes.gmail.quota import Quota
    from postroom.mailboxes.gmail.tokens import TokenProvider
    from postroom.settings.reading import Settings
    from postroom.sources.mcp_switchboard import McpSwitchboard
    from postroom.sources.runtime import ConnectorHealth


@dataclass(frozen=True)
class ConnectorParts(ConnectorChores):
    """The connector of a Gmail mailbox, and its client."""

    connector: GmailConnector
    client: GmailClient
    sent: SentIndex


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
    """Watch the mailbox inside the switchboard's process, until canceled. `polls` are the times at which each endpoint
    asked for a backfill.
    """
    from postroom.sources.runtime import ConnectorHealth
    from postroom.system.wall_clock import wall_clock

    health = ConnectorHealth(wall_clock)
    heartbeats = heartbeats_of(switchboard, endpoint_of(NAME, email), health)
    with (
        held_folder(connector_folder(settings, NAME, email)) as folder,
        connector_parts(
            settings, switchboard, http, folder, health, [email], tally=tally, quota=quota, polls=polls
        ) as parts,
    ):
        poll = timedelta(seconds=settings.gmail.poll_s)
        await run_within(settings, switchboard, heartbeats, parts, poll, lambda: more_chores(settings, parts))


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
    from postroom.mailboxes.following.knowledge import Knowledge
    from postroom.mailboxes.following.receiving_hosts import ReceivingHosts
    from postroom.mailboxes.following.sent_index import SentIndex
    from postroom.mailboxes.gmail.client import GmailClient
    from postroom.mailboxes.gmail.following.live import GmailConnector
    from postroom.mailboxes.gmail.following.send_as import SendAsAddresses
    from postroom.mailboxes.gmail.following.spending import RememberedQuota
    from postroom.mailboxes.gmail.from_settings import quota_terms
    from postroom.sources.checkpoint import Checkpoint
    from postroom.system.wall_clock import wall_clock

    email = addresses[0]
    tokens = _tokens(settings, switchboard)
    contacts, filters = caches_of(settings, switchboard, folder, health)
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
            endpoint_identity=endpoint_of(NAME, email),
            clock=wall_clock,
            tally=tally,
            health=health,
            knowledge=Knowledge(
                addresses,
                more_addresses=SendAsAddresses(folder / "send_as.json", client, wall_clock),
                sent=sent,
                contacts=contacts.addresses,
                policy=filters.policy,
                fetch_policy=filters.refresh,
                hosts=ReceivingHosts(FACTS.receiving_hosts(None)),
            ),
            folder=folder,
            hints=_hints(settings, http, email, tokens),
        )
        backfills = backfill_worker(settings, switchboard, endpoint_of(NAME, email), connector, folder, polls)
        yield ConnectorParts(
            connector=connector,
            source=client,
            contacts=contacts,
            filters=filters,
            backfills=backfills,
            client=client,
            sent=sent,
        )


def _tokens(settings: Settings, switchboard: McpSwitchboard) -> TokenProvider:
    """Return tokens from the switchboard, or the one in the settings, as for the sandbox."""
    from postroom.mailboxes.gmail.scopes import Consented
    from postroom.mailboxes.gmail.tokens import AccessToken, PlainTokens, Tokens
    from postroom.system.wall_clock import wall_clock

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
    from postroom.mailboxes.gmail.following.hints import PubSubHints
    from postroom.mailboxes.gmail.from_settings import pubsub_key_file
    from postroom.mailboxes.gmail.scopes import PUBSUB
    from postroom.mailboxes.gmail.service_account import service_account_tokens
    from postroom.system.wall_clock import wall_clock

    gmail = settings.gmail
    if gmail.pubsub_subscription is None:
        return None
    if (file := pubsub_key_file(settings)) is not None:
        tokens = service_account_tokens(http, file, (PUBSUB,), wall_clock)
    return PubSubHints(http, gmail.pubsub_subscription, email, tokens, gmail.pubsub_url)


def more_chores(settings: Settings, parts: ConnectorParts) -> list[Coroutine[Any, Any, None]]:
    """Keep Gmail reporting changes, if the settings say where to."""
    from postroom.mailboxes.gmail.following.watch import keep_watching

    topic = settings.gmail.pubsub_topic
    return [] if topic is None else [keep_watching(parts.client, topic)]

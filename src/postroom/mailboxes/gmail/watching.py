"""The Gmail connector, put together: mailbox, switchboard, contacts and filters, hints."""

import contextlib
from collections.abc import Coroutine, Generator
from typing import TYPE_CHECKING, Any

import httpx2

from postroom.mailboxes.following.hints import Hints
from postroom.mailboxes.following.running import ConnectorChores, ConnectorHome
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.facts import FACTS
from postroom.mailboxes.gmail.following.hints import PubSubHints
from postroom.mailboxes.gmail.following.live import GmailConnector
from postroom.mailboxes.gmail.following.send_as import SendAsAddresses
from postroom.mailboxes.gmail.following.spending import RememberedQuota
from postroom.mailboxes.gmail.following.watch import keep_watching
from postroom.mailboxes.gmail.from_settings import pubsub_key_file, quota_terms
from postroom.mailboxes.gmail.quota import Quota
from postroom.mailboxes.gmail.scopes import PUBSUB, Consented
from postroom.mailboxes.gmail.service_account import service_account_tokens
from postroom.mailboxes.gmail.tokens import GmailAccessToken, PlainTokens, TokenProvider, Tokens
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.mcp_switchboard import McpSwitchboard
from postroom.system.wall_clock import wall_clock

if TYPE_CHECKING:
    from postroom.settings.reading import Settings

GmailParts = ConnectorChores[GmailConnector, GmailClient]


@contextlib.contextmanager
def connector_parts(home: ConnectorHome, http: httpx2.AsyncClient, quota: Quota | None = None) -> Generator[GmailParts]:
    settings, folder = home.settings, home.folder
    tokens = _tokens(settings, home.switchboard)
    with contextlib.closing(RememberedQuota(folder / "quota", quota_terms(settings))) as own:
        client = GmailClient(http, settings.gmail.base_url, tokens, quota=quota or own)
        addresses = SendAsAddresses(folder / "send_as.json", client, wall_clock)
        hints = _hints(settings, http, home.addresses[0], tokens)
        terms = home.terms(FACTS.receiving_hosts(None), hints, addresses)
        connector = GmailConnector(client, home.switchboard, Checkpoint(folder / "checkpoint.json"), **terms)
        yield home.chores(connector, client)


def _tokens(settings: "Settings", switchboard: McpSwitchboard) -> TokenProvider:
    """Return tokens from the switchboard, or the one in the settings, as for the sandbox."""
    given = settings.gmail.token

    async def plain() -> str:
        return "" if given is None else given.get_secret_value()

    async def fetch(refused: str | None) -> GmailAccessToken:
        asked_at = wall_clock()
        granted = await switchboard.access_token(refused)
        consented = Consented(granted.account, granted.scopes)
        return GmailAccessToken(granted.value, asked_at + granted.expires_in, consented)

    return Tokens(fetch, wall_clock) if given is None else PlainTokens(plain)


def _hints(settings: "Settings", http: httpx2.AsyncClient, email: str, tokens: TokenProvider) -> Hints | None:
    """Pull hints as the service account if the settings name its key file, otherwise with the mailbox's consent."""
    gmail = settings.gmail
    if gmail.pubsub_subscription is None:
        return None
    if (file := pubsub_key_file(settings)) is not None:
        tokens = service_account_tokens(http, file, (PUBSUB,), wall_clock)
    return PubSubHints(http, gmail.pubsub_subscription, email, tokens, gmail.pubsub_url)


def more_chores(settings: "Settings", parts: GmailParts) -> list[Coroutine[Any, Any, None]]:
    """Keep Gmail reporting changes, if the settings say where to."""
    topic = settings.gmail.pubsub_topic
    return [] if topic is None else [keep_watching(parts.source, topic)]

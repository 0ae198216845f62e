"""Compose approvals: the channels that ask, and the bot and hook that receive answers."""

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Self

import httpx2
from starlette.routing import Route

from postroom.core.jobs.types import CATALOGUE
from postroom.operations.installation.vault import vault_of
from postroom.settings.reading import Settings
from postroom.store.accounts.secret_keys import list_key_uses
from postroom.store.engine.clock import clock_of
from postroom.store.engine.database import Database
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.approvals import Approvals, Channel
from postroom.triage.act.discord_buttons import PURPOSE, ButtonIds
from postroom.triage.act.webhook import AnswerHook, WebhookChannel

if TYPE_CHECKING:
    from postroom.triage.act.discord import DiscordChannel

HOOK = "/hooks/approvals"


class ApprovalChannels:
    """The approval channels of one process. Raises SettingsError if a bot is set up without its library."""

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        self._database = database
        self._http = httpx2.AsyncClient()
        self._discord = _discord_channel(settings)

    @property
    def channels(self) -> list[Channel]:
        approvals, found = self._settings.approvals, list[Channel]()
        if self._discord is not None:
            found.append(self._discord)
        if approvals.webhook_url is not None and approvals.webhook_secret is not None:
            secret = approvals.webhook_secret.get_secret_value()
            found.append(WebhookChannel(self._http, approvals.webhook_url, secret, wall_clock, approvals.public_url))
        return found

    async def __aenter__(self) -> Self:
        if self._discord is not None:
            uses = await self._database.run(list_key_uses())
            vault_of(self._settings).prepare([use.id for use in uses if use.secrets], wall_clock())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()
        if self._discord is not None:
            await self._discord.aclose()


def _discord_channel(settings: Settings) -> "DiscordChannel | None":
    token, channel = settings.discord.token, settings.discord.channel
    if token is None or channel is None:
        return None
    from postroom.triage.act.discord import DiscordChannel, DiscordTerms
    from postroom.triage.act.discord_library import point_at

    point_at(settings.discord.base_url, settings.discord.gateway_url)
    terms = DiscordTerms(token.get_secret_value(), int(channel), settings.approvals.public_url)
    return DiscordChannel(terms, _buttons(settings))


async def run_discord_bot(settings: Settings, database: Database) -> None:
    """Run the bot until canceled; return at once if none is set up."""
    token = settings.discord.token
    if token is None:
        await asyncio.Event().wait()
        return
    from postroom.triage.act.discord_bot import DiscordBot
    from postroom.triage.act.discord_library import point_at

    point_at(settings.discord.base_url, settings.discord.gateway_url)
    approvals = Approvals(database, CATALOGUE, clock_of(database))
    bot = DiscordBot(token.get_secret_value(), approvals, _buttons(settings), settings.discord.approvers)
    await bot.run()


def approval_routes(settings: Settings, database: Database) -> list[Route]:
    """Return the route that receives the webhook's answers, if a webhook is set up."""
    approvals = settings.approvals
    if not approvals.webhook_answers or approvals.webhook_secret is None:
        return []
    hook = AnswerHook(Approvals(database, CATALOGUE, clock_of(database)), approvals.webhook_secret.get_secret_value())
    return [Route(HOOK, hook.take, methods=["POST"])]


def _buttons(settings: Settings) -> ButtonIds:
    vault = vault_of(settings)
    return ButtonIds(lambda: vault.signing_keys(PURPOSE))

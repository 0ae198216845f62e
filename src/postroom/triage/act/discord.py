"""Ask for approvals in a Discord channel, over Discord's HTTP API alone: any process that runs jobs can do it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import aiohttp

from postroom.core import base64url
from postroom.core.errors import Fatal, JobError, Retryable
from postroom.store.actions.approvals import Approval
from postroom.triage.act.approval_notice import one_line
from postroom.triage.act.discord_buttons import ButtonIds
from postroom.triage.act.discord_library import TIMEOUT_S, discord, new_client
from postroom.triage.act.discord_message import footer, message_embed, message_view

MOST_LOOKED_THROUGH = 100
# Discord's error code for an unknown message.
UNKNOWN_MESSAGE = 10008


@dataclass(frozen=True, slots=True)
class DiscordTerms:
    """The bot's token, and the channel in which it asks."""

    token: str
    channel_id: int
    public_url: str | None = None


class DiscordChannel:
    """Post notices, and edit them once they are answered. Logs in on first use."""

    name: str = "discord"

    def __init__(self, terms: DiscordTerms, buttons: ButtonIds) -> None:
        self._terms = terms
        self._buttons = buttons
        self._client: discord.Client | None = None
        self._logging_in = asyncio.Lock()

    async def post(self, approval: Approval, *, again: bool) -> str:
        """Post with a nonce per action: Discord posts it once within minutes. Later we look for an earlier post
        ourselves."""
        embed, view = message_embed(approval), message_view(approval, self._buttons, self._terms.public_url)
        async with self._channel() as channel:
            if again and (found := await _find_notice(channel, approval)) is not None:
                return str(found)
            sent = await channel.send(embed=embed, view=view, nonce=nonce_of(approval))
        return str(sent.id)

    async def post_digest(self, id: UUID, text: str) -> None:
        """Post with a nonce per id, so that a retry soon after posts nothing more."""
        async with self._channel() as channel:
            await channel.send(content=text, nonce=_short(id))

    async def close(self, approval: Approval, reference: str) -> None:
        embed, view = message_embed(approval), message_view(approval, self._buttons, self._terms.public_url)
        async with self._channel() as channel:
            try:
                await channel.get_partial_message(int(reference)).edit(embed=embed, view=view)
            except discord.NotFound as error:
                if error.code != UNKNOWN_MESSAGE:
                    raise

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    @contextlib.asynccontextmanager
    async def _channel(self) -> AsyncGenerator[discord.PartialMessageable]:
        """Yield the channel; errors from Discord become job errors."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                client = await self._logged_in()
                yield client.get_partial_messageable(self._terms.channel_id)
        except (discord.DiscordException, aiohttp.ClientError, OSError, TimeoutError) as error:
            raise job_error(error) from None

    async def _logged_in(self) -> discord.Client:
        async with self._logging_in:
            if self._client is None:
                client = new_client()
                try:
                    await client.login(self._terms.token)
                except BaseException:
                    await client.close()
                    raise
                self._client = client
            return self._client


def nonce_of(approval: Approval) -> str:
    return _short(approval.id)


def _short(id: UUID) -> str:
    """Return the id in base64: at most 25 characters."""
    return base64url.encode(id.bytes)


async def _find_notice(channel: discord.PartialMessageable, approval: Approval) -> int | None:
    """Find the notice that an earlier attempt may have posted. Without permission to read, nobody can tell."""
    try:
        async for message in channel.history(limit=MOST_LOOKED_THROUGH):
            if any(embed.footer.text == footer(approval) for embed in message.embeds):
                return message.id
    except discord.Forbidden:
        return None
    return None


def job_error(error: Exception) -> JobError:
    """Map to a job error: Fatal if the user has to fix the token, the channel or the bot's permissions."""
    match error:
        case discord.LoginFailure():
            return Fatal("Discord does not know the bot's token; check discord.token")
        case discord.Forbidden():
            return Fatal(
                "Discord refuses the bot; allow it to view the channel in discord.channel and to send messages there"
            )
        case discord.NotFound():
            return Fatal("the channel does not exist, or the bot cannot see it; check discord.channel")
        case discord.RateLimited():
            return Retryable("Discord asks to wait", timedelta(seconds=error.retry_after))
        case discord.HTTPException() if error.status < 500 and error.status != 429:
            return Fatal(f"Discord refuses the notice ({error.status}: {one_line(error.text, 100)})")
        case _:
            return Retryable(f"Discord cannot be reached ({type(error).__name__})")

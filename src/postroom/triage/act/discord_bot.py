"""The Discord bot: connects out to Discord, so that it works behind any router, and receives button presses.

A press counts if we signed its button and it has not expired, if the user is on the allow-list, and if the action
still waits and is the one that was shown (in full, to approve it). The user is told of each refusal, and it is
audited.
"""

import asyncio
from collections.abc import Collection
from datetime import datetime, timedelta

import aiohttp
import structlog

from postroom.core.errors import Conflict, IllegalMove, NotFound, PostroomError, Refused, StoreError
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.triage.act.approval_notice import notice_of
from postroom.triage.act.approvals import APPROVER, Approvals, in_words
from postroom.triage.act.discord_buttons import PREFIX, ButtonIds, ButtonPress, named_action
from postroom.triage.act.discord_library import discord, new_client

log = structlog.get_logger()

AGAIN_AFTER = timedelta(seconds=30)
NOTED_EVERY = timedelta(minutes=1)
MOST_NOTED = 1000


class DiscordBot:
    """Listen for presses, and answer the user who pressed."""

    def __init__(self, token: str, approvals: Approvals, buttons: ButtonIds, approvers: Collection[str]) -> None:
        self._token = token
        self._approvals = approvals
        self._buttons = buttons
        self._approvers = frozenset(approvers)
        self._noted: dict[tuple[str, str], datetime] = {}

    async def run(self, again_after: timedelta = AGAIN_AFTER) -> None:
        """Run until canceled. Postroom works without Discord: no failure there ends anything here."""
        while True:
            try:
                await self._listen()
            except discord.LoginFailure:
                log.error("discord.token_refused", remedy="check discord.token, then restart Postroom")
                await asyncio.Event().wait()
            except Exception as error:
                # The library passes on every connection error; the next try may succeed.
                log.warning("discord.disconnected", error=type(error).__name__)
            await asyncio.sleep(again_after.total_seconds())

    async def _listen(self) -> None:
        client = new_client()

        @client.event
        async def on_interaction(interaction: discord.Interaction) -> None:  # pyright: ignore[reportUnusedFunction]
            await self._take(interaction)

        async with client:
            await client.start(self._token)

    async def _take(self, interaction: discord.Interaction) -> None:
        custom_id = _custom_id(interaction)
        if custom_id is None:
            return
        try:
            # Discord waits three seconds for the first response.
            await interaction.response.defer(ephemeral=True, thinking=True)
            said = await self._reply(str(interaction.user.id), custom_id)
            await interaction.edit_original_response(content=said)
        except (discord.DiscordException, aiohttp.ClientError, OSError) as error:
            log.warning("discord.press_unanswered", error=type(error).__name__)

    async def _reply(self, user_id: str, custom_id: str) -> str:
        """Answer the press in words, whatever happens: only our own errors are quoted."""
        try:
            return await self._answer(user_id, custom_id)
        except StoreError as error:
            log.warning("approval.press_failed", error=type(error).__name__)
            return "Postroom cannot reach its database: nothing was changed; try again later."
        except PostroomError as error:
            log.warning("approval.press_failed", error=type(error).__name__)
            return f"Not done: {error}."
        except Exception as error:
            log.error("approval.press_broken", error=type(error).__name__)
            return "Not done, because of an unexpected error; answer with `postroom approvals`."

    async def _answer(self, user_id: str, custom_id: str) -> str:
        """Carry out the press, and describe the outcome to the user."""
        actor = f"discord:{user_id}"
        try:
            press = await self._press(user_id, custom_id)
        except Refused as refused:
            log.warning("approval.press_refused", actor=actor)
            await self._note(actor, custom_id, str(refused))
            return f"Refused: {refused}."
        try:
            signed = Signature(new_id(), actor, APPROVER)
            became = await self._approvals.answer(press.verdict, press.action_id, press.hash_beginning, signed)
        except (Conflict, IllegalMove, NotFound, Refused) as error:
            return f"Refused: {error}."
        return in_words(became)

    async def _press(self, user_id: str, custom_id: str) -> ButtonPress:
        if user_id not in self._approvers:
            raise Refused("you may not answer; discord.approvers lists who may")
        press = self._buttons.read(custom_id, self._approvals.clock())
        if press.verdict == "approve" and not notice_of(await self._approvals.show(press.action_id)).is_whole:
            by = f"`postroom approvals approve {press.action_id}`"
            raise Refused(f"not all of it is shown here; review and approve it with {by}")
        return press

    async def _note(self, actor: str, custom_id: str, reason: str) -> None:
        """Audit the refusal, once a minute for the same one, so that nobody can fill the log by pressing."""
        what, now = (actor, named_action(custom_id)), self._approvals.clock()
        if what in self._noted and now - self._noted[what] < NOTED_EVERY:
            return
        if len(self._noted) >= MOST_NOTED:
            self._noted.clear()
        self._noted[what] = now
        try:
            await self._approvals.note_refusal(*what, reason)
        except StoreError as error:
            log.warning("approval.refusal_not_kept", error=type(error).__name__)


def _custom_id(interaction: discord.Interaction) -> str | None:
    """Return the id of the pressed button; None for other interactions and other bots' buttons."""
    if interaction.type is not discord.InteractionType.component or interaction.data is None:
        return None
    custom_id = interaction.data.get("custom_id")
    return custom_id if isinstance(custom_id, str) and custom_id.startswith(PREFIX) else None

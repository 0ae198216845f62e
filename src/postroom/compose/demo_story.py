"""The story of a fresh demo's first minute: a morning with a burst, a forgery, an agent that asks, and a flood.

Everything goes the usual ways: mail arrives in the mailbox, the agent speaks MCP, the flood is submitted over HTTP.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import httpx2
import structlog

from postroom.compose.demo import DemoMailbox
from postroom.compose.demo_town import Agent, TellStory, Town, demo_signature
from postroom.core.days import day_in
from postroom.operations.backfill.agent_backfills import RequestedBackfill
from postroom.operations.backfill.backfill import backfills_of
from postroom.operations.backfill.backfill_estimate import estimates_of
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_actions import read_actions, request_action
from postroom.operations.mail.mail_lines import MailQuestion, list_lines
from postroom.settings.reading import Settings
from postroom.settings.safety import policy_of
from postroom.store.accounts.accounts import list_accounts
from postroom.store.actions.decisions import CHANNEL
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.sample import DAYS
from postroom_sandbox.scenes import (
    COMPETITION,
    INVOICE,
    LOOKALIKE,
    PHISHING,
    REFUSED,
    REMINDER,
    SITE_KEYS,
    Scene,
)
from postroom_sandbox.story import StoryMail

log = structlog.get_logger()

AGENT = "errand agent"
WHY_ARCHIVE = "You promised a cake on Monday, and this reminder goes to the whole street."
WHY_FORWARD = "The message asks for the mail of the last 30 days."
SNOOZE = "snooze 1m"
BACKFILL = ("finance", "newsletters")
PER_HOUR = 1800
PAUSE_S = 3.0
LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Story:
    """Told once, by `tell`. `told` is called when it has ended, however it ended."""

    database: Database
    settings: Settings
    mail: StoryMail
    told: Callable[[], None]

    async def tell(self, town: Town, http: httpx2.AsyncClient) -> None:
        try:
            await self._decided()  # then the mailbox has been read, and contacts are known
            async with asyncio.TaskGroup() as tasks:
                self.mail.burst()
                tasks.create_task(self._backfill())  # its estimate takes a while
                await self._morning(town, http)
                self.told()
        finally:
            self.told()

    async def _morning(self, town: Town, http: httpx2.AsyncClient) -> None:
        await self._pause()
        self.mail.scene(INVOICE)
        self.mail.scene(COMPETITION)
        self.mail.scene(SITE_KEYS)
        await self._snooze(SITE_KEYS)
        await self._pause()
        self.mail.scene(PHISHING)
        self.mail.scene(REMINDER)
        self.mail.refuse_a_change(REFUSED)
        await self._let_agent_ask(Agent(http, await town.agent_token(AGENT)))
        await self._pause()
        await town.flood(http)

    async def _pause(self) -> None:
        await asyncio.sleep(PAUSE_S)

    async def _decided(self, subject: str | None = None) -> UUID:
        """Wait until a message with this subject, or any, has been decided about; return the newest."""
        changed = asyncio.Event()
        subscription = self.database.subscribe(CHANNEL, lambda _message: changed.set())
        try:
            while True:
                changed.clear()
                for line in (await list_lines(self.database, MailQuestion(kind="mail"))).lines:
                    if line.what and subject in (None, line.subject):
                        return line.id
                await signalled(changed, LOOK_S)
        finally:
            subscription.close()

    async def _let_agent_ask(self, agent: "Agent") -> None:
        """An agent asks for something sensible, and does as a forged message says; only the former waits for a yes."""
        reminder, forged = await self._decided(REMINDER.subject), await self._decided(PHISHING.subject)
        for message in (reminder, forged):
            await agent.call("mail.read", message_id=str(message), level="text")
        await agent.call("mail.propose_action", message_id=str(reminder), action="archive", why=WHY_ARCHIVE)
        to = {"to": [f"audit@{LOOKALIKE}"]}
        await agent.call(
            "mail.propose_action", message_id=str(forged), action="forward", why=WHY_FORWARD, parameters=to
        )

    async def _snooze(self, scene: Scene) -> None:
        message = await self._decided(scene.subject)
        by = Caller(self.database, demo_signature())
        await request_action(by, str(message), read_actions([SNOOZE]), policy_of(self.settings))

    async def _backfill(self) -> None:
        """Estimate a backfill of the past month, which costs nothing with the stand-in, and begin it."""
        backfills, signed = backfills_of(self.database, self.settings), demo_signature()
        today = day_in(wall_clock(), backfills.zone)
        account = (await self.database.run(list_accounts()))[0]
        wanted = RequestedBackfill(
            account.provider, account.endpoint_identity, BACKFILL, today - timedelta(days=DAYS), today, PER_HOUR
        )
        made = await estimates_of(self.database, self.settings).estimate(
            wanted.with_defaults(self.settings.backfill), signed
        )
        if made.form.cost_micros.expected == 0:  # with a model of the user's own nobody has agreed to its price
            new = wanted.with_defaults(self.settings.backfill, consent=True, estimate_id=made.id)
            await backfills.create(new, signed)


def story_of(mailbox: DemoMailbox, database: Database, settings: Settings) -> TellStory:
    """The story for the town to tell; without one, mail only keeps arriving."""

    async def nothing(_town: Town, _http: httpx2.AsyncClient) -> None:
        mailbox.told.set()

    return nothing if mailbox.story is None else Story(database, settings, mailbox.story, mailbox.told.set).tell

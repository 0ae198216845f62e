"""The Gmail connector: what has arrived since the checkpoint is handed in, and only then the checkpoint moves.

One connector, two drivers: jobs call `sync` for one round; a process of its own calls `run`, which makes round after
round until it is stopped. Handing in twice is harmless: the switchboard recognises what it has.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from postroom.connectors.checkpoint import Checkpoint
from postroom.connectors.gmail.follow import follow
from postroom.connectors.gmail.hints import Hints, NoHints, Waiting
from postroom.connectors.gmail.look_back import LookBack, window_start
from postroom.connectors.mail.correspondents import Correspondents
from postroom.connectors.mail.ingested_ids import IngestedIds
from postroom.connectors.mail.ingester import IngestResult, MailIngester
from postroom.connectors.mail.knowledge import Knowledge
from postroom.connectors.mail.message_reader import MessageReader
from postroom.connectors.mail.refused import RefusedMail
from postroom.connectors.mail.sent_mail import FIRST, SentMail
from postroom.connectors.mail.set_aside import SetAside
from postroom.connectors.runtime import ConnectorHealth
from postroom.connectors.switchboard_client import SwitchboardClient
from postroom.core.errors import (
    AccountUnusable,
    IntakeRefused,
    MailboxError,
    MailboxLater,
    NeedsPerson,
    NotAllowed,
    PostroomError,
    Refused,
    SettingsError,
    StoreError,
    SwitchboardUnavailable,
)
from postroom.core.mail.accounts import same_mailbox
from postroom.core.tally import Tally
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import (
    EndlessPages,
    HistoryExpired,
)

log = structlog.get_logger()

LONGEST_PAUSE = timedelta(seconds=60)
# What no patience cures: the user, or whoever runs this, has to act.
NEEDS_A_PERSON = (Refused, AccountUnusable, NeedsPerson, NotAllowed)


CONTACTS_MISSING = "the contacts are missing or too old: mail from people you know gets the tier of other mail"


class NoContacts(PostroomError):
    """Known contacts cannot be told."""


class GmailConnector:
    """One mailbox, watched. `folder` is where it remembers what was handed in, refused, and set aside."""

    def __init__(
        self,
        client: GmailClient,
        switchboard: SwitchboardClient,
        checkpoint: Checkpoint,
        *,
        email: str,
        endpoint_identity: str,
        clock: Callable[[], datetime],
        tally: Tally | None = None,
        vitals: ConnectorHealth | None = None,
        knowledge: Knowledge | None = None,
        folder: Path | None = None,
        hints: Hints | None = None,
    ) -> None:
        self._client = client
        self._checkpoint = checkpoint
        self._clock = clock
        self._vitals = vitals or ConnectorHealth(clock)
        self._knowledge = knowledge or Knowledge([email])
        people = Correspondents(switchboard, self._knowledge)
        self._desk = MailIngester(
            switchboard,
            endpoint_identity,
            self._knowledge,
            IngestedIds(None if folder is None else folder / "handed_in.ids"),
            RefusedMail(folder, clock),
            clock=clock,
            tally=tally or Tally(),
            vitals=self._vitals,
            people=people,
        )
        self.sent_mail = SentMail(client, self._knowledge.sent, people, self._vitals)
        self._taking = MessageReader(client, self._desk, SetAside(folder, clock), self._vitals)
        self._waiting = Waiting(hints or NoHints())
        self._one_at_a_time = asyncio.Lock()
        self._email = email
        self._is_right_mailbox = False

    def sync_now(self) -> None:
        """Ends the pause between two rounds."""
        self._waiting.end()

    async def sync(self) -> int:
        """One round: hands in everything new; returns how many messages were new to the switchboard."""
        async with self._one_at_a_time:
            await self._check_mailbox()
            await self._knowledge.freshen()
            self._taking.begin_round()
            return await self._round() + await self._taking.try_again()

    async def ingest(self, ids: Sequence[str]) -> dict[str, IngestResult]:
        """Hands in exactly these messages, beside a round that may be under way; tells what became of each."""
        await self._check_mailbox()
        return await self._taking.take_asked(ids)

    async def _round(self) -> int:
        since = self._checkpoint.read()
        if since is None or self._checkpoint.look_back() is not None:
            return await self._look_back()
        try:
            return await follow(self._client, self._taking, self._desk, since, self._reached)
        except HistoryExpired:
            log.warning("connector.history_expired")
            return await self._look_back()

    async def run(self, poll: timedelta, stop: asyncio.Event | None = None) -> None:
        """Round after round until `stop`, or until canceled. Trouble makes it wait longer, never end."""
        stop = stop or asyncio.Event()
        troubles = 0
        async with self._waiting.listening():
            while not stop.is_set():
                pause, ended = poll, self._desk.ended
                try:
                    await self.sync()
                    self._feel_well()
                    troubles = 0
                except SettingsError:
                    raise
                except (PostroomError, OSError) as error:
                    # A long round that got somewhere before it broke off is no reason to wait ever longer.
                    troubles = 1 if self._desk.ended > ended else troubles + 1
                    pause = self._pause_after(error, poll, troubles)
                    log.warning("connector.waiting", error=type(error).__name__, seconds=pause.total_seconds())
                await self._waiting.wait(pause, stop, hurried=not troubles)

    async def _check_mailbox(self) -> None:
        """Once: nobody's mail is handed in under another's name, whichever token was put where."""
        if self._is_right_mailbox:
            return
        profile = await self._client.get_profile()
        if not same_mailbox(profile.email_address, self._email):
            raise Refused(
                f"the access token opens the mailbox {profile.email_address}, and this connector is for {self._email}; "
                "connect the account again, or give the address that Google knows the mailbox by"
            )
        self._is_right_mailbox = True

    async def _look_back(self) -> int:
        """The place in history is taken first, so that what arrives while we look is found afterwards."""
        state = self._checkpoint.look_back()
        if state is None:
            place = (await self._client.get_profile()).history_id
            now = self._gmail_now()
            since = window_start(now, self._checkpoint.reached_at())
            state = self._checkpoint.begin_look_back(place, now, since)
        looking = LookBack(
            self._client,
            self._taking,
            self._vitals,
            self._checkpoint,
            follow=self._follow_meanwhile,
            learn=self._learn_people,
        )
        fresh = await looking.run(state)
        state = self._checkpoint.look_back() or state
        # What came since the look back began is not with the switchboard yet, so the time is that of its beginning.
        self._reached(state.history_id, state.began_at)
        return fresh

    async def _learn_people(self) -> None:
        """To whom the user wrote last counts for the tiers of the mail that is taken now."""
        await self.sent_mail.read(FIRST)

    async def _follow_meanwhile(self) -> int:
        """Takes what has come since the look back began. If Gmail has forgotten that, it is looked at anew later."""
        state = self._checkpoint.look_back()
        if state is None:
            return 0
        try:
            return await follow(self._client, self._taking, self._desk, state.history_id, self._reached_meanwhile)
        except (HistoryExpired, EndlessPages):
            return 0

    def _reached_meanwhile(self, history_id: int) -> None:
        self._checkpoint.follow_meanwhile(history_id, self._gmail_now())

    def _reached(self, history_id: int, at: datetime | None = None) -> None:
        """Everything up to here is with the switchboard."""
        self._checkpoint.write(history_id, at or self._gmail_now())
        self._vitals.reach(str(history_id))

    def _gmail_now(self) -> datetime:
        """The time by Gmail's clock, in which its messages are dated; by ours where it does not tell."""
        return self._client.server_time or self._clock()

    def _feel_well(self) -> None:
        self._vitals.well()
        if self._knowledge.is_degraded:
            self._vitals.report_problem("degraded", NoContacts(CONTACTS_MISSING))
        elif (problem := self._waiting.problem) is not None:
            self._vitals.report_problem("degraded", problem)

    def _pause_after(self, error: Exception, poll: timedelta, troubles: int) -> timedelta:
        self._vitals.report_problem("error" if isinstance(error, NEEDS_A_PERSON) else "degraded", error)
        match error:
            case IntakeRefused():
                return error.retry_after
            case MailboxLater() if error.retry_after is not None:
                return error.retry_after
            case MailboxError() | StoreError() | SwitchboardUnavailable() | Refused() | OSError():
                return min(LONGEST_PAUSE, poll * 2 ** min(troubles, 10))
            case _:
                return LONGEST_PAUSE

"""The Gmail connector: ingests what has arrived since the checkpoint, and only then moves the checkpoint."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import structlog

from postroom.connectors.checkpoint import Checkpoint
from postroom.connectors.gmail.follow import follow
from postroom.connectors.gmail.look_back import LookBack
from postroom.connectors.mail.connector import MailConnector
from postroom.connectors.mail.hints import Hints
from postroom.connectors.mail.knowledge import Knowledge
from postroom.connectors.mail.sent_mail import FIRST
from postroom.connectors.mail.window import OVERLAP, window_start
from postroom.connectors.runtime import ConnectorHealth
from postroom.connectors.switchboard_client import SwitchboardClient
from postroom.core.errors import Refused
from postroom.core.mail.accounts import same_mailbox
from postroom.core.tally import Tally
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import (
    EndlessPages,
    HistoryExpired,
)

log = structlog.get_logger()


class GmailConnector(MailConnector):
    """The connector of one mailbox at Gmail."""

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
        health: ConnectorHealth | None = None,
        knowledge: Knowledge | None = None,
        folder: Path | None = None,
        hints: Hints | None = None,
    ) -> None:
        super().__init__(
            client,
            switchboard,
            email=email,
            endpoint_identity=endpoint_identity,
            clock=clock,
            tally=tally,
            health=health,
            knowledge=knowledge,
            folder=folder,
            hints=hints,
        )
        self._client = client
        self._checkpoint = checkpoint
        self._is_right_mailbox = False

    def _live_since(self) -> datetime:
        """The time since which mail is live: rounds have ingested it or are going to. A day of overlap, since mail may
        be found late; what is searched for in that time is treated as if a round had found it.
        """
        look_back, reached_at = self._checkpoint.look_back(), self._checkpoint.reached_at()
        if look_back is not None:
            return look_back.since
        if self._checkpoint.read() is None or reached_at is None:
            return window_start(self._gmail_now(), reached_at)
        return reached_at - OVERLAP

    async def _round(self) -> int:
        since = self._checkpoint.read()
        if since is None or self._checkpoint.look_back() is not None:
            return await self._look_back()
        try:
            return await follow(self._client, self._reader, self._ingester, since, self._reached)
        except HistoryExpired:
            log.warning("connector.history_expired")
            return await self._look_back()

    async def _check_mailbox(self) -> None:
        """Check once that the token opens the right mailbox, so that no mail is ingested for another account."""
        if self._is_right_mailbox:
            return
        profile = await self._client.get_profile()
        if not same_mailbox(profile.email_address, self._email):
            raise Refused(
                f"the access token opens the mailbox {profile.email_address}, but this connector is for {self._email}; "
                "connect the account again, or use the mailbox's address at Google"
            )
        self._is_right_mailbox = True

    async def _look_back(self) -> int:
        """Look back. The position in the history is taken first, so that mail that arrives meanwhile is found
        afterwards.
        """
        state = self._checkpoint.look_back()
        if state is None:
            place = (await self._client.get_profile()).history_id
            now = self._gmail_now()
            since = window_start(now, self._checkpoint.reached_at())
            state = self._checkpoint.begin_look_back(place, now, since)
        looking = LookBack(
            self._client,
            self._reader,
            self._health,
            self._checkpoint,
            follow=self._follow_meanwhile,
            learn=self._learn_people,
        )
        fresh = await looking.run(state)
        state = self._checkpoint.look_back() or state
        # Mail since the look-back began is not ingested yet, so the time is that of its beginning.
        self._reached(state.history_id, state.began_at)
        return fresh

    async def _learn_people(self) -> None:
        """Learn whom the user wrote to recently, for the tiers of the mail that is about to be ingested."""
        await self.sent_mail.read(FIRST)

    async def _follow_meanwhile(self) -> int:
        """Ingest what has come since the look-back began. If Gmail has forgotten that, it is looked at again later."""
        state = self._checkpoint.look_back()
        if state is None:
            return 0
        try:
            return await follow(self._client, self._reader, self._ingester, state.history_id, self._reached_meanwhile)
        except (HistoryExpired, EndlessPages):
            return 0

    def _reached_meanwhile(self, history_id: int) -> None:
        self._checkpoint.follow_meanwhile(history_id, self._gmail_now())

    def _reached(self, history_id: int, at: datetime | None = None) -> None:
        """Record that everything up to here is ingested."""
        self._checkpoint.write(history_id, at or self._gmail_now())
        self._health.reach(str(history_id))

    def _gmail_now(self) -> datetime:
        """The time by Gmail's clock, which dates its messages; by ours if Gmail does not say."""
        return self._client.server_time or self._clock()

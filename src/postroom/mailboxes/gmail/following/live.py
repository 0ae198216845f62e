"""The Gmail connector: writes down what has arrived since the checkpoint, moves the checkpoint, and ingests it."""

from datetime import datetime
from typing import Unpack

import structlog

from postroom.core.errors import Refused
from postroom.core.mail.accounts import same_mailbox
from postroom.mailboxes.following.connector import A_WHILE_S, ConnectorTerms, MailConnector
from postroom.mailboxes.following.index_file import IndexFile
from postroom.mailboxes.following.reading_list import SCHEMA, ReadingList
from postroom.mailboxes.following.sent_mail import FIRST
from postroom.mailboxes.following.source import CHUNK
from postroom.mailboxes.following.window import OVERLAP, window_start
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import EndlessPages, HistoryExpired
from postroom.mailboxes.gmail.following.follow import follow
from postroom.mailboxes.gmail.following.look_back import LookBack
from postroom.mailboxes.gmail.following.provisional_tiers import ProvisionalTiers
from postroom.sources.checkpoint import Checkpoint
from postroom.sources.switchboard_client import SwitchboardClient

log = structlog.get_logger()

# Sent mail is read in small parts, so that urgent mail that comes meanwhile does not wait for it.
OWN_AT_ONCE = 10


class GmailConnector(MailConnector):
    """The connector of one mailbox at Gmail."""

    def __init__(
        self,
        client: GmailClient,
        switchboard: SwitchboardClient,
        checkpoint: Checkpoint,
        **terms: Unpack[ConnectorTerms],
    ) -> None:
        folder = terms.get("folder")
        waiting = ReadingList(IndexFile(None if folder is None else folder / "to_read.db", SCHEMA, "full"))
        super().__init__(client, switchboard, waiting, **terms)
        self._client = client
        self._checkpoint = checkpoint
        self._provisional_tiers = ProvisionalTiers(client, self._waiting_mail, self._knowledge)
        self._is_right_mailbox = False
        self._has_looked_back = False

    def _live_since(self) -> datetime:
        """The time since which mail is live: rounds have ingested it or are going to. A day of overlap, since mail may
        be found late; what is searched for in that time is treated as if a round had found it.
        """
        look_back, reached_at = self._checkpoint.look_back(), self._checkpoint.reached_at()
        if look_back is not None:
            return look_back.since
        if self._checkpoint.read() is None or reached_at is None:
            return window_start(self._gmail_now(), reached_at, self._acts_from)
        return reached_at - OVERLAP

    async def _find_new(self) -> int:
        found = await self._list_new()
        await self._provisional_tiers.look(found, knows_sent=not self._is_learning)
        return 0

    async def _list_new(self) -> int:
        """Put what is new on the list; return how many were not on it yet."""
        if self._checkpoint.reading_list() not in (None, self._waiting_mail.name):
            log.warning("connector.reading_list_lost")
            return await self._look_back(anew=True)
        since = self._checkpoint.read()
        if since is None or self._checkpoint.look_back() is not None:
            return await self._look_back()
        try:
            return await follow(self._client, self._waiting_mail, self._ingester, since, self._record_reached)
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

    async def _look_back(self, *, anew: bool = False) -> int:
        """Look back. The position in the history is taken first, so that mail that arrives meanwhile is found
        afterwards.
        """
        state = None if anew else self._checkpoint.look_back()
        if state is None:
            place = (await self._client.get_profile()).history_id
            now = self._gmail_now()
            since = window_start(now, self._checkpoint.reached_at(), self._acts_from)
            state = self._checkpoint.begin_look_back(place, now, since, self._waiting_mail.name)
        self._has_looked_back, before = True, len(self._waiting_mail)
        looking = LookBack(
            self._client,
            self._ingester,
            self._waiting_mail,
            self._health,
            self._checkpoint,
            follow=self._follow_meanwhile,
        )
        if await looking.run(state):
            state = self._checkpoint.look_back() or state
            # Mail since the look-back began is not found yet, so the time is that of its beginning.
            self._record_reached(state.history_id, state.began_at)
        return len(self._waiting_mail) - before

    @property
    def _is_learning(self) -> bool:
        """Whether sent mail is still read that decides about the tiers of mail which was there already: it tells what
        is a reply, and whom the user knows.
        """
        has_learned = not self._waiting_mail.own(1) and self.sent_mail.has_read(FIRST)
        return (self._has_looked_back or self._waiting_mail.has_older) and not has_learned

    async def _learn_some(self) -> int:
        own = self._waiting_mail.own(OWN_AT_ONCE)
        source = self._client.for_use("steady" if own else "bulk")
        room = await source.room(len(own) or CHUNK, A_WHILE_S)
        if not own and room:
            await self.sent_mail.read_some(FIRST)
        own = own[:room]
        fresh = await self._reader.take(own, source)
        self._waiting_mail.discard(own)
        return fresh

    async def _follow_meanwhile(self) -> int:
        """Find what has come since the look-back began. If Gmail has forgotten that, it is looked at again later."""
        state = self._checkpoint.look_back()
        if state is None:
            return 0
        try:
            return await follow(
                self._client, self._waiting_mail, self._ingester, state.history_id, self._reached_meanwhile
            )
        except (HistoryExpired, EndlessPages):
            return 0

    def _reached_meanwhile(self, history_id: int) -> None:
        self._checkpoint.follow_meanwhile(history_id, self._gmail_now())

    def _record_reached(self, history_id: int, at: datetime | None = None) -> None:
        """Record that everything up to here is ingested or on the list."""
        self._checkpoint.write(history_id, at or self._gmail_now(), self._waiting_mail.name)
        self._health.reach(str(history_id))

    def _gmail_now(self) -> datetime:
        """The time by Gmail's clock, which dates its messages; by ours if Gmail does not say."""
        return self._client.server_time or self._clock()

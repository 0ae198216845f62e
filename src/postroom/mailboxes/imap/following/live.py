"""The IMAP connector: lists what has arrived in the folders of a mailbox, and ingests it, the urgent first."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Unpack

from postroom.core.errors import MailboxError
from postroom.mailboxes.following.connector import ConnectorTerms, MailConnector
from postroom.mailboxes.following.sent_mail import FIRST
from postroom.mailboxes.following.window import OVERLAP, window_start
from postroom.mailboxes.imap.account import ImapAccount
from postroom.mailboxes.imap.following.backoff import SYSTEM_RANDOM, pause_after
from postroom.mailboxes.imap.following.follow import Follower
from postroom.mailboxes.imap.following.idle import IdleHints
from postroom.mailboxes.imap.following.place_index import PlaceIndex
from postroom.mailboxes.imap.labels import Keywords
from postroom.mailboxes.imap.places import KnownPlaces
from postroom.mailboxes.imap.source import BATCH, ImapSource
from postroom.sources.switchboard_client import SwitchboardClient

WATCHED = timedelta(minutes=10)
"""The pause between two rounds of a mailbox that is watched, in case that something was not noticed."""


class ImapConnector(MailConnector):
    """The connector of one mailbox on an IMAP server. `index` is in `folder` too."""

    def __init__(
        self,
        account: ImapAccount,
        switchboard: SwitchboardClient,
        index: PlaceIndex,
        rng: Random = SYSTEM_RANDOM,
        **terms: Unpack[ConnectorTerms],
    ) -> None:
        known, keywords = KnownPlaces(), Keywords()
        self.source = ImapSource(account, known, keywords)
        super().__init__(self.source, switchboard, index.waiting, BATCH, **terms)
        self._index = index
        self._hints = terms.get("hints")
        self._rng = rng
        self._follower = Follower(
            account, index, known, keywords, self._knowledge, self._reader, self._ingester, self._clock
        )

    async def _check_mailbox(self) -> None:
        """Whose mailbox it is, the password says."""

    def _live_since(self) -> datetime:
        reached = self._index.reached_at
        return window_start(self._clock(), None, self._acts_from) if reached is None else reached - OVERLAP

    async def _find_new(self) -> int:
        reached = self._index.reached_at
        if reached is None:
            # Whom the user wrote to recently decides about the tiers of the mail that is about to be ingested.
            await self.sent_mail.read(FIRST)
        now = self._clock()
        # A clock that went far ahead made new mail seem old. When it is right again, all of the window is looked at.
        again = reached is not None and now < reached - OVERLAP
        fresh = await self._follower.round(window_start(now, reached, self._acts_from), again=again)
        self._health.reach(self._clock().isoformat())
        return fresh

    def _about_to_read(self, ids: Sequence[str]) -> None:
        self._follower.expect(ids)

    def _pause_after_round(self, poll: timedelta) -> timedelta:
        """Long while a connection of its own watches the whole mailbox."""
        return max(poll, WATCHED) if isinstance(self._hints, IdleHints) and self._hints.is_watching else poll

    def _pause_after(self, error: Exception, poll: timedelta, failures: int) -> timedelta:
        """Servers of mail count attempts and lock accounts, so the pauses grow further than for others."""
        usual = super()._pause_after(error, poll, failures)
        return pause_after(error, failures, poll, self._rng) if isinstance(error, MailboxError) else usual

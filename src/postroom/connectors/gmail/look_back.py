"""Looks at the mail that is there already: of the last days, newest first, when there is no place in history to go on
from, be it the first time or because Gmail has forgotten it.

The bounds are Gmail's own words for "the last seven days", so that a wrong clock here hides nothing. Searches lag: mail
that has just come is in lists and not yet in what a search finds, so the newest of the list are looked at as well.
"""

from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta

import structlog

from postroom.connectors.gmail.fetch import CHUNK
from postroom.connectors.gmail.taking import Taking
from postroom.connectors.runtime import Vitals
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import EndlessPages
from postroom.gmail.resources import Message, MessagePage

log = structlog.get_logger()

DAYS = 7
LAST_DAYS = f"newer_than:{DAYS}d"
MAIL_ONLY = "-in:drafts -in:chats"
# Beyond this, looking back is a backfill and not a resync.
FURTHEST = timedelta(days=90)
# A day of overlap costs little, since what was handed in is not read again.
OVERLAP = timedelta(days=1)
PAGE = 500
NEWEST = 100


class LookBack:
    """One look back. What was handed in before is passed over, so one that was interrupted goes on where it was."""

    def __init__(self, client: GmailClient, taking: Taking, vitals: Vitals, clock: Callable[[], datetime]) -> None:
        self._client = client
        self._taking = taking
        self._vitals = vitals
        self._clock = clock
        self._found: dict[str, None] = {}
        self.fresh = 0

    async def run(self, known_until: datetime | None) -> int:
        """Sent mail goes first: its ids tell which of the other is a reply. Returns how many were new."""
        query = self._query(known_until)
        for labels in (("SENT",), ()):
            await self._take_found(query, labels)
        await self._take_unindexed()
        log.info("connector.looked_back", messages=len(self._found), new=self.fresh)
        return self.fresh

    def _query(self, known_until: datetime | None) -> str:
        """Further than the last days where the time before was longer, as after a month without a connector."""
        if known_until is None:
            return f"{LAST_DAYS} {MAIL_ONLY}"
        now = self._clock()
        since = max(known_until - OVERLAP, now - FURTHEST)
        if since >= now - timedelta(days=DAYS):
            return f"{LAST_DAYS} {MAIL_ONLY}"
        return f"{{{LAST_DAYS} after:{int(since.timestamp())}}} {MAIL_ONLY}"

    async def _take_found(self, query: str, labels: tuple[str, ...]) -> None:
        try:
            async with aclosing(self._client.message_pages(query, labels, max_results=PAGE)) as pages:
                async for page in pages:
                    await self._take_page(page)
        except EndlessPages as error:
            # Every page there is was read by then; what comes later is found by following.
            log.warning("connector.endless_pages", error=str(error))

    async def _take_page(self, page: MessagePage) -> None:
        self._found.update((ref.id, None) for ref in page.messages)
        self.fresh += await self._taking.take(ref.id for ref in page.messages)
        counters = self._vitals.counters
        counters["look_back.messages"], counters["look_back.new"] = len(self._found), self.fresh
        log.info("connector.looking_back", messages=len(self._found), new=self.fresh)

    async def _take_unindexed(self) -> None:
        """The newest of the list, as far down as something is that the search has found."""
        newest = [ref.id for ref in (await self._client.list_messages(max_results=NEWEST)).messages]
        depth = max((place for place, id in enumerate(newest, 1) if id in self._found), default=0)
        if self._found:
            # Where nothing of it was found, all of it is newer than what was.
            ids = newest[: depth or NEWEST]
        else:
            ids = await self._recent(newest[:CHUNK])
        self.fresh += await self._taking.take(id for id in ids if id not in self._found)

    async def _recent(self, ids: Sequence[str]) -> list[str]:
        """Where the search finds nothing, the messages themselves tell how old they are."""
        if not ids:
            return []
        since = self._clock() - timedelta(days=DAYS)
        outcomes = await self._client.get_messages(ids, "minimal")
        return [each.id for each in outcomes if isinstance(each, Message) and each.internal_date >= since]

"""Gives new mail at Gmail a provisional tier, before any of it is read.

To read a message costs 20 units of the quota, its headers alone as much. A search costs 5, and names up to 500
messages: those of the user's contacts, or those that are addressed to the user and that Gmail does not take for bulk
mail. The newest sent mail, listed for 5 units, names the conversations of the user.

A search only orders: which messages exist is known from the history and from plain lists, and everything on the reading
list is read. Searches find new mail late, so they are repeated while mail is coming, at a small part of the quota.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import aclosing

import structlog

from postroom.core.errors import MailboxError
from postroom.core.mail.mailbox_query import LONGEST_QUERY
from postroom.core.queue.envelope import PolicyTier
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.message_reader import NOT_ITS_OWN
from postroom.mailboxes.following.reading_list import URGENT, ReadingList
from postroom.mailboxes.following.source import CHUNK
from postroom.mailboxes.gmail.client import GmailClient

log = structlog.get_logger()

# A look is repeated at most so often, and costs at most so much: one of 20 units every 3 s, one of 200 every 20 s.
AGAIN_S = 3.0
UNITS_PER_S = 10.0
SEARCH_UNITS = 5
# A search may not find mail that came so recently.
LATE_S = 30.0
# Of more contacts than so many searches can name, others take their turn in the next look.
MOST_SEARCHES = 40
MOST_PAGES = 4
PAGE = 500
NOT_BULK = "-category:promotions -category:social -category:updates -category:forums"
# Addresses that need no quotes; all that people usually have.
_PLAIN = re.compile(r"[a-z0-9][a-z0-9._+'-]*@[a-z0-9][a-z0-9.-]*")


class ProvisionalTiers:
    """Orders one reading list."""

    def __init__(self, client: GmailClient, waiting: ReadingList, knowledge: Knowledge) -> None:
        self._client = client
        self._waiting = waiting
        self._knowledge = knowledge
        self._again_at = float("-inf")
        self._late_until: float | None = None
        self._turn = 0

    async def look(self, found: int, *, knows_sent: bool) -> None:
        """Order the list if it is long, and may have mail that no look has found. `found` messages were just added;
        `knows_sent` is whether the ids of sent mail are known, without which a reply is not told from other mail.
        """
        now = asyncio.get_running_loop().time()
        if found or self._late_until is None:
            self._late_until = now + LATE_S
        if len(self._waiting) <= CHUNK or not self._again_at <= now <= self._late_until:
            return
        searches = self._contact_searches()
        self._again_at = now + max(AGAIN_S, SEARCH_UNITS * (len(searches) + 2) / UNITS_PER_S)
        try:
            for query in searches:
                await self._raise(URGENT, query)
            if knows_sent:
                await self._raise_conversations()
            for query in _searches("to", self._knowledge.known().user_addresses):
                await self._raise("interactive", f"{query} {NOT_BULK}")
        except NOT_ITS_OWN:
            raise
        except MailboxError as error:
            # Mail is read without it too.
            log.warning("connector.search_failed", error=type(error).__name__)

    def _contact_searches(self) -> list[str]:
        searches = list(_searches("from", self._knowledge.known().contacts))
        if len(searches) <= MOST_SEARCHES:
            return searches
        begin, self._turn = self._turn % len(searches), self._turn + MOST_SEARCHES
        return (searches + searches)[begin : begin + MOST_SEARCHES]

    async def _raise(self, tier: PolicyTier, query: str) -> None:
        """Raise what the search finds, page by page, down to mail that does not wait."""
        number = 0
        async with aclosing(self._client.message_pages(query, (), PAGE)) as pages:
            async for page in pages:
                number += 1
                ids = [ref.id for ref in page.messages]
                self._waiting.raise_tier(tier, ids=ids)
                if number == MOST_PAGES or not ids or ids[-1] not in self._waiting:
                    return

    async def _raise_conversations(self) -> None:
        async with aclosing(self._client.message_pages("", ("SENT",), PAGE)) as pages:
            async for page in pages:
                self._waiting.raise_tier(URGENT, threads={ref.thread_id for ref in page.messages if ref.thread_id})
                return


def _searches(operator: str, addresses: Collection[str]) -> Iterator[str]:
    """Searches for mail from or to one of these, none longer than a search may be."""
    for part in _parts(sorted(each for each in addresses if _PLAIN.fullmatch(each))):
        yield f"{operator}:({' OR '.join(part)})"


def _parts(addresses: Iterable[str]) -> Iterator[list[str]]:
    room, part = LONGEST_QUERY - len(NOT_BULK) - len("from:() "), list[str]()
    length = 0
    for each in addresses:
        if part and length + len(each) > room:
            yield part
            part, length = [], 0
        part.append(each)
        length += len(each) + len(" OR ")
    if part:
        yield part

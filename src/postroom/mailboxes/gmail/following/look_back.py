"""Finds existing mail of the last days, newest first, when there is no position in the history to continue from: the
first time, or because Gmail has forgotten it.

**Where it ends.** Gmail lists messages newest first, by the time they arrived (`internalDate`), and a plain list has
every message at once. A search does not: it finds new mail, and sometimes older mail, only after a while. So no search
is used. The plain list is read page by page until a message is older than the window, by its own date. That costs one
small call for every 500 messages, and some fifty more on the page on which the window begins. A message that was
ingested before proves nothing about those below it, so it is skipped and does not end the list. The window is measured
by Gmail's clock, which is in every answer, so that a wrong clock here hides nothing.

**Interrupted.** What is found is written to the reading list, and how far each list was read to the checkpoint, which
also has the window. After a kill the list is read again from the top, which is cheap, and goes on from where it
stopped. Mail that came in between is above that position, and is found by following the history.

**Meanwhile.** To list very many messages takes minutes. After each page new mail is looked for as well. If Gmail
forgets the position in the history before the end, everything since then is looked at again.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import datetime

import structlog

from postroom.mailboxes.following.dates import MessageDates
from postroom.mailboxes.following.ingester import MailIngester
from postroom.mailboxes.following.reading_list import FoundMessage, ReadingList
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import EndlessPages
from postroom.sources.checkpoint import Checkpoint, LookBackState
from postroom.sources.runtime import ConnectorHealth

log = structlog.get_logger()

PAGE = 500

SENT = "sent"
ALL = "all"


class LookBack:
    """One look-back. `follow` finds what has come meanwhile."""

    def __init__(
        self,
        client: GmailClient,
        ingester: MailIngester,
        waiting: ReadingList,
        health: ConnectorHealth,
        checkpoint: Checkpoint,
        *,
        follow: Callable[[], Awaitable[object]],
    ) -> None:
        self._client = client
        self._ingester = ingester
        self._waiting = waiting
        self._health = health
        self._checkpoint = checkpoint
        self._follow = follow
        self._dates = MessageDates(client)
        self._threads: dict[str, str] = {}
        self._seen = 0

    async def run(self, state: LookBackState) -> bool:
        """Run it; return whether it has come to its end. If not, the list is full."""
        if not await self._read_list(ALL, (), state) or not await self._read_list(SENT, ("SENT",), state):
            return False
        log.info("connector.looked_back", messages=self._seen)
        return True

    async def _read_list(self, name: str, labels: tuple[str, ...], state: LookBackState) -> bool:
        """Read the list to the end of the window; return whether all of it was found."""
        passed = state.passed.get(name)
        try:
            async with aclosing(self._client.message_pages("", labels, max_results=PAGE)) as pages:
                async for page in pages:
                    self._threads = {ref.id: ref.thread_id for ref in page.messages}
                    ids = [ref.id for ref in page.messages]
                    if passed is not None:
                        ids, passed = await self._dates.below(passed, ids)
                    if ids and not await self._take_page(name, ids, state.since):
                        return True
                    if self._waiting.is_full:
                        return False
        except EndlessPages as error:
            # All pages have been read by then; what comes later is found by following.
            log.warning("connector.endless_pages", error=str(error))
        return True

    async def _take_page(self, name: str, ids: list[str], since: datetime) -> bool:
        """Take the messages in the window; return whether the window continues below."""
        last = await self._dates.last(ids)
        goes_on = last is None or last.date >= since
        inside = ids if goes_on else await self._dates.inside(ids, since)
        self._list(inside, is_own=name == SENT)
        if last is not None:
            self._checkpoint.pass_in_list(name, last)
        await self._follow()
        return goes_on

    def _list(self, ids: Sequence[str], *, is_own: bool) -> None:
        new = [id for id in ids if not self._ingester.has(id)]
        self._waiting.add_older([FoundMessage(id, self._threads[id]) for id in new])
        if is_own:
            self._waiting.mark_own(new)
            return
        self._seen += len(ids)
        self._health.counters["look_back.messages"] = self._seen
        log.info("connector.looking_back", messages=self._seen)

"""Ingests existing mail of the last days, newest first, when there is no position in the history to continue from: the
first time, or because Gmail has forgotten it.

**Where it ends.** Gmail lists messages newest first, by the time they arrived (`internalDate`), and a plain list has
every message at once. A search does not: it finds new mail, and sometimes older mail, only after a while. So no search
is used. The plain list is read page by page until a message is older than the window, by its own date. That costs one
small call for every 500 messages, and some fifty more on the page on which the window begins. A message that was
ingested before proves nothing about those below it, so it is skipped and does not end the list. The window is measured
by Gmail's clock, which is in every answer, so that a wrong clock here hides nothing.

**Interrupted.** The window, and how far each list was read, are in the checkpoint. After a kill the list is read again
from the top, which is cheap, and messages are ingested from where it stopped. Mail that came in between is above that
position, and is found by following the history.

**Meanwhile.** A look-back at the quota's pace may take hours. After each page new mail is ingested as well. If Gmail
forgets the position in the history before the end, everything since then is looked at again.
"""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import datetime

import structlog

from postroom.connectors.checkpoint import Checkpoint, LookBackState
from postroom.connectors.mail.dates import MessageDates
from postroom.connectors.mail.message_reader import MessageReader
from postroom.connectors.runtime import ConnectorHealth
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import EndlessPages

log = structlog.get_logger()

PAGE = 500

SENT = "sent"
ALL = "all"


class LookBack:
    """One look-back. `follow` ingests what has come meanwhile and returns how much; `learn` learns whom the
    user knows.
    """

    def __init__(
        self,
        client: GmailClient,
        reader: MessageReader,
        health: ConnectorHealth,
        checkpoint: Checkpoint,
        *,
        follow: Callable[[], Awaitable[int]],
        learn: Callable[[], Awaitable[object]],
    ) -> None:
        self._client = client
        self._reader = reader
        self._health = health
        self._checkpoint = checkpoint
        self._follow = follow
        self._learn = learn
        self._dates = MessageDates(client)
        self._seen: set[str] = set()
        self.fresh = 0

    async def run(self, state: LookBackState) -> int:
        """Run it; return how many messages were new. Sent mail goes first: it shows which other mail is a reply, and
        whom the user knows.
        """
        await self._read_list(SENT, ("SENT",), state)
        await self._learn()
        await self._read_list(ALL, (), state)
        log.info("connector.looked_back", messages=len(self._seen), new=self.fresh)
        return self.fresh

    async def _read_list(self, name: str, labels: tuple[str, ...], state: LookBackState) -> None:
        passed = state.passed.get(name)
        try:
            async with aclosing(self._client.message_pages("", labels, max_results=PAGE)) as pages:
                async for page in pages:
                    ids = [ref.id for ref in page.messages]
                    if passed is not None:
                        ids, passed = await self._dates.below(passed, ids)
                    if ids and not await self._take_page(name, ids, state.since):
                        return
        except EndlessPages as error:
            # All pages have been read by then; what comes later is found by following.
            log.warning("connector.endless_pages", error=str(error))

    async def _take_page(self, name: str, ids: list[str], since: datetime) -> bool:
        """Ingest the messages in the window; return whether the window continues below."""
        last = await self._dates.last(ids)
        goes_on = last is None or last.date >= since
        inside = ids if goes_on else await self._dates.inside(ids, since)
        self._seen.update(inside)
        self.fresh += await self._reader.take(inside)
        counters = self._health.counters
        counters["look_back.messages"], counters["look_back.new"] = len(self._seen), self.fresh
        log.info("connector.looking_back", messages=len(self._seen), new=self.fresh)
        if last is not None:
            self._checkpoint.pass_in_list(name, last)
        self.fresh += await self._follow()
        return goes_on

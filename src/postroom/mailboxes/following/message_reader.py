"""Reads messages by their ids in batches, and ingests each batch before the next is read.

**Messages that always fail.** A failing mailbox ends the round: more calls would be wasted, and the next round begins
with a cheap one. But a mailbox may fail to return a message forever, and one such message must not block all others. So
a message that fails by itself in four rounds is set aside, if in each of these rounds the mailbox returned nine others
for every one that failed. If a round had fewer to read, up to 25 of the messages ingested last are read again as a
test, and the mailbox must return all of them. If it fails in general it does not, and nothing is set aside. A message
that breaks the whole answer of its batch is found by asking for half as many the next time, down to one.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from datetime import datetime

import structlog

from postroom.core.errors import (
    MailboxBusy,
    MailboxError,
    MailboxFailed,
    MailboxUnreachable,
    NeedsPerson,
    NoAccess,
    NotInMailbox,
    UnreadableAnswer,
)
from postroom.mailboxes.following.fetch import FetchResult, fetch
from postroom.mailboxes.following.ingester import IngestResult, MailIngester
from postroom.mailboxes.following.mail_reports import MailReports
from postroom.mailboxes.following.refused import reason_of
from postroom.mailboxes.following.set_aside import SetAside
from postroom.mailboxes.following.source import CHUNK, MailSource, SourceMessage
from postroom.sources.runtime import ConnectorHealth

log = structlog.get_logger()

OTHERS = 9
MOST_TRIED_AGAIN = 5
# Errors of a whole answer that a single message in it may cause.
BATCH_ERRORS = (MailboxFailed, MailboxUnreachable, UnreadableAnswer)
# Errors that are never a message's own fault.
NOT_ITS_OWN = (MailboxBusy, NoAccess, NeedsPerson)


class MessageReader:
    """Reads messages from the mailbox and ingests them."""

    def __init__(
        self,
        source: MailSource,
        ingester: MailIngester,
        set_aside: SetAside,
        health: ConnectorHealth,
        reports: MailReports,
    ) -> None:
        self._source = source
        self._reports = reports
        self._ingester = ingester
        self._set_aside = set_aside
        self._health = health
        self._given = self._failed = 0
        self._at_once: int | None = None
        """How many to ask for at once; None leaves it to the source."""
        self._update_counters()

    def begin_round(self) -> None:
        """Start counting how many messages the mailbox returns, and how many it does not."""
        self._given = self._failed = 0

    async def take(self, ids: Iterable[str], source: MailSource | None = None) -> int:
        """Ingest all that were not ingested before; return how many were new to the switchboard. `source` is the same
        mailbox for another use.

        Rate-limited messages are asked for once more at the end. Any other error ends the round, unless all messages
        that failed are now set aside.
        """
        wanted = [id for id in dict.fromkeys(ids) if not self._ingester.has(id) and id not in self._set_aside]
        source = source or self._source
        fresh, left = await self._take(source, wanted)
        if left:
            again, left = await self._take(source, list(left))
            fresh += again
        for error in left.values():
            raise error
        return fresh

    async def take_requested(self, ids: Iterable[str]) -> dict[str, IngestResult]:
        """Ingest exactly these, whatever became of them before; return the outcome of each."""
        wanted, ends = list(dict.fromkeys(ids)), dict[str, IngestResult]()
        async with aclosing(fetch(self._source, wanted)) as batches:
            async for fetched in batches:
                ends |= await self._settle(fetched)
                for id, error in fetched.left.items():
                    ends[id] = IngestResult("failed", reason_of(error))
                    if id in self._set_aside and not isinstance(error, NOT_ITS_OWN):
                        self._set_aside.put_off(id, error)
        return ends

    async def take_found(
        self, source: MailSource, ids: Sequence[str], live_since: datetime
    ) -> list[tuple[IngestResult, SourceMessage | None]]:
        """Ingest messages that somebody searched for; return the outcome of each in this order, with the message as far
        as it could be read. The source is that of the search, whose share of the quota this uses.
        """
        ends, read = dict[str, IngestResult](), dict[str, SourceMessage]()
        async with aclosing(fetch(source, ids)) as batches:
            async for fetched in batches:
                read |= {each.id: each for each in fetched.read}
                await self._reports.pass_on(source, fetched)
                ends |= await self._ingester.take(fetched, live_since)
                ends |= {id: IngestResult("failed", reason_of(error)) for id, error in fetched.left.items()}
        return [(ends[id], read.get(id)) for id in ids]

    async def try_again(self) -> int:
        """Read some of the messages that were set aside and are due, one by one; return how many were new."""
        fresh = 0
        for id in self._set_aside.due(MOST_TRIED_AGAIN):
            fetched = await self._fetched_alone(id)
            fresh += _fresh(await self._settle(fetched))
            error = fetched.left.get(id)
            if isinstance(error, NOT_ITS_OWN):
                break
            if error is not None:
                self._set_aside.put_off(id, error)
        return fresh

    async def _take(self, source: MailSource, ids: Sequence[str]) -> tuple[int, dict[str, MailboxError]]:
        fresh, rest = 0, ids
        limited: dict[str, MailboxError] = {}
        while rest:
            count = self._at_once or len(rest)
            now, rest = rest[:count], rest[count:]
            async with aclosing(self._fetch_batches(source, now)) as batches:
                async for fetched in batches:
                    fresh += _fresh(await self._settle(fetched))
                    limited |= {id: error for id, error in fetched.left.items() if isinstance(error, MailboxBusy)}
                    await self._set_aside_failed({id: error for id, error in fetched.left.items() if id not in limited})
            if self._at_once is not None:
                self._at_once = None if 2 * self._at_once >= CHUNK else 2 * self._at_once
        return fresh, limited

    async def _settle(self, fetched: FetchResult) -> dict[str, IngestResult]:
        await self._reports.pass_on(self._source, fetched)
        ends = await self._ingester.take(fetched)
        self._given += len(fetched.read) + len(fetched.gone) + len(fetched.unreadable)
        self._set_aside.forget(ends)
        self._update_counters()
        return ends

    async def _fetch_batches(self, source: MailSource, ids: Sequence[str]) -> AsyncGenerator[FetchResult]:
        """Like `fetch`; an error of the whole request belongs to the message if there is only one."""
        try:
            async with aclosing(fetch(source, ids)) as batches:
                async for fetched in batches:
                    yield fetched
        except BATCH_ERRORS as error:
            if len(ids) > 1:
                self._at_once = min(len(ids), CHUNK) // 2
                raise
            yield FetchResult(left={ids[0]: error})

    async def _fetched_alone(self, id: str) -> FetchResult:
        together = FetchResult()
        try:
            async with aclosing(fetch(self._source, [id])) as batches:
                async for fetched in batches:
                    together = fetched
        except MailboxError as error:
            together.left[id] = error
        return together

    async def _set_aside_failed(self, failed: dict[str, MailboxError]) -> None:
        """Record that these have failed. Continue if all of them are set aside, else raise the first error."""
        own = {id: error for id, error in failed.items() if not isinstance(error, NOT_ITS_OWN)}
        self._failed += len(own)
        if own and await self._gives_others(own):
            self._set_aside.fail(own)
            self._update_counters()
        for id, error in failed.items():
            if id not in self._set_aside:
                raise error
            log.warning("connector.message_set_aside", reason=reason_of(error))

    async def _gives_others(self, failed: Iterable[str]) -> bool:
        """Whether the mailbox returned nine others for each failure in this round, or returns all test messages now.

        One request is enough: as many messages as are missing, limited by the batch size and by how many there are.
        """
        wanted = OTHERS * self._failed - self._given
        if wanted <= 0:
            return True
        failing = frozenset(failed)
        known = [id for id in self._ingester.newest(CHUNK + len(failing)) if id not in failing][: min(wanted, CHUNK)]
        if not known:
            return False
        try:
            outcomes = await self._source.get_messages(known)
        except MailboxError:
            return False
        self._given += sum(_is_given(each) for each in outcomes)
        return all(_is_given(each) for each in outcomes)

    def _update_counters(self) -> None:
        if self._set_aside.count or "set_aside" in self._health.counters:
            self._health.counters["set_aside"] = self._set_aside.count


def _fresh(ends: dict[str, IngestResult]) -> int:
    return sum(each.end == "new" for each in ends.values())


def _is_given(outcome: SourceMessage | MailboxError) -> bool:
    """Whether the mailbox answered: a message that is gone, or that we cannot parse, counts too."""
    return not isinstance(outcome, MailboxError) or isinstance(outcome, NotInMailbox | UnreadableAnswer)

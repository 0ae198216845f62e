"""Takes messages in by their ids: reads them, a batch at a time, and hands each batch in before the next is read.

**Stubborn messages.** A mailbox in trouble ends the round: to go on asking would spend calls for nothing, and the next
round begins with a cheap one. But there are messages that a mailbox fails to give for ever, and one of them must not
hold up all others. So a message that fails by itself in four rounds is set aside, if in each of these rounds the
mailbox gave nine others for every one that failed. Where a round had fewer to read, up to 25 of the messages that were
handed in last are read once more to find out, and the mailbox has to give every one of them. When it fails in general
it does not, and nothing is set aside. A message that spoils the whole answer of its batch is found by asking for half
as many the next time, down to one.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing

import structlog

from postroom.connectors.mail.fetch import FetchResult, fetch
from postroom.connectors.mail.ingester import IngestResult, MailIngester
from postroom.connectors.mail.refused import reason_of
from postroom.connectors.mail.set_aside import SetAside
from postroom.connectors.mail.source import CHUNK, MailSource, SourceMessage
from postroom.connectors.runtime import ConnectorHealth
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

log = structlog.get_logger()

OTHERS = 9
MOST_TRIED_AGAIN = 5
# What may spoil a whole answer because of one message in it.
SPOILT = (MailboxFailed, MailboxUnreachable, UnreadableAnswer)
# What is never a message's own fault.
NOT_ITS_OWN = (MailboxBusy, NoAccess, NeedsPerson)


class MessageReader:
    """From the mailbox to the switchboard."""

    def __init__(
        self, source: MailSource, ingester: MailIngester, set_aside: SetAside, vitals: ConnectorHealth
    ) -> None:
        self._source = source
        self._ingester = ingester
        self._set_aside = set_aside
        self._vitals = vitals
        self._given = self._failed = 0
        self._at_once: int | None = None
        """How many to ask for at once; None leaves it to the source."""
        self._tell()

    def begin_round(self) -> None:
        """From here on it counts anew how many messages the mailbox gives, and how many not."""
        self._given = self._failed = 0

    async def take(self, ids: Iterable[str]) -> int:
        """Hands in all that were not before; returns how many were new to the switchboard.

        What the rate limit kept back is asked for once more at the end. Any other trouble ends it, unless it is that of
        messages which are now set aside.
        """
        wanted = [id for id in dict.fromkeys(ids) if not self._ingester.has(id) and id not in self._set_aside]
        fresh, left = await self._take(wanted)
        if left:
            again, left = await self._take(list(left))
            fresh += again
        for error in left.values():
            raise error
        return fresh

    async def take_asked(self, ids: Iterable[str]) -> dict[str, IngestResult]:
        """Hands in exactly these, whatever became of them before; returns what becomes of each now."""
        wanted, ends = list(dict.fromkeys(ids)), dict[str, IngestResult]()
        async with aclosing(fetch(self._source, wanted)) as batches:
            async for fetched in batches:
                ends |= await self._settle(fetched)
                for id, error in fetched.left.items():
                    ends[id] = IngestResult("failed", reason_of(error))
                    if id in self._set_aside and not isinstance(error, NOT_ITS_OWN):
                        self._set_aside.put_off(id, error)
        return ends

    async def try_again(self) -> int:
        """Asks for some of those that were set aside and are due, each by itself; returns how many were new."""
        fresh = 0
        for id in self._set_aside.due(MOST_TRIED_AGAIN):
            fetched = await self._fetched_alone(id)
            error = fetched.left.get(id)
            if isinstance(error, NOT_ITS_OWN):
                break
            if error is not None:
                self._set_aside.put_off(id, error)
            fresh += _fresh(await self._settle(fetched))
        return fresh

    async def _take(self, ids: Sequence[str]) -> tuple[int, dict[str, MailboxError]]:
        fresh, rest = 0, ids
        limited: dict[str, MailboxError] = {}
        while rest:
            count = self._at_once or len(rest)
            now, rest = rest[:count], rest[count:]
            async with aclosing(self._fetched(now)) as batches:
                async for fetched in batches:
                    fresh += _fresh(await self._settle(fetched))
                    limited |= {id: error for id, error in fetched.left.items() if isinstance(error, MailboxBusy)}
                    await self._pass_over({id: error for id, error in fetched.left.items() if id not in limited})
            if self._at_once is not None:
                self._at_once = None if 2 * self._at_once >= CHUNK else 2 * self._at_once
        return fresh, limited

    async def _settle(self, fetched: FetchResult) -> dict[str, IngestResult]:
        ends = await self._ingester.take(fetched)
        self._given += len(fetched.read) + len(fetched.gone) + len(fetched.unreadable)
        self._set_aside.forget(ends)
        self._tell()
        return ends

    async def _fetched(self, ids: Sequence[str]) -> AsyncGenerator[FetchResult]:
        """As `fetch`; an error of the whole is the message's own where there is only one."""
        try:
            async with aclosing(fetch(self._source, ids)) as batches:
                async for fetched in batches:
                    yield fetched
        except SPOILT as error:
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

    async def _pass_over(self, failed: dict[str, MailboxError]) -> None:
        """Notes that these have failed. Goes on when all of them are set aside, else raises the first error."""
        own = {id: error for id, error in failed.items() if not isinstance(error, NOT_ITS_OWN)}
        self._failed += len(own)
        if own and await self._gives_others(own):
            self._set_aside.fail(own)
            self._tell()
        for id, error in failed.items():
            if id not in self._set_aside:
                raise error
            log.warning("connector.message_set_aside", reason=reason_of(error))

    async def _gives_others(self, failed: Iterable[str]) -> bool:
        """Whether the mailbox gave nine others for each that failed in this round, or gives now all that are asked for.

        One request is enough to find out: as many as are lacking, but no more than it takes, and as there are.
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

    def _tell(self) -> None:
        if self._set_aside.count or "set_aside" in self._vitals.counters:
            self._vitals.counters["set_aside"] = self._set_aside.count


def _fresh(ends: dict[str, IngestResult]) -> int:
    return sum(each.end == "new" for each in ends.values())


def _is_given(outcome: SourceMessage | MailboxError) -> bool:
    """That a message is gone, or cannot be read by us, is an answer too."""
    return not isinstance(outcome, MailboxError) or isinstance(outcome, NotInMailbox | UnreadableAnswer)

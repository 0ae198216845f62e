"""Lists and reads the archive of one mailbox, in the quota that live mail leaves.

A message that always fails must not stop a backfill, and a mailbox that fails must not make it skip mail. So a message
that fails by itself is tried a few times; then the newest messages are read as a test. If the mailbox returns one of
them, the fault is the message's own; if not, the error is raised, and nothing is skipped.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import timedelta

from postroom.core.backfill.window import Window
from postroom.core.errors import MailboxError, MailboxLater, NotAllowed, NotInMailbox, UnreadableAnswer
from postroom.core.mail.categories import Category
from postroom.mailboxes.following.fetch import FetchResult, fetch
from postroom.mailboxes.following.message_reader import BATCH_ERRORS, NOT_ITS_OWN
from postroom.mailboxes.following.source import MailSource

PAGE = 500
PAUSES_S = (1.0, 4.0, 10.0)
PROBES = 5
# The limits of a search are widened by this much, so that it does not matter whether they are inclusive.
SLACK = timedelta(seconds=1)


class Archive:
    """The mailbox as a backfill reads it. A message that one of the searches of the categories finds is listed."""

    def __init__(self, source: MailSource, categories: Sequence[Category], user_address: str) -> None:
        self._source = source.for_use("bulk")
        self._categories = categories
        self._user_address = user_address

    async def ids(self, span: Window) -> set[str]:
        """The ids of the messages in these days; perhaps also of some a second before and after them."""
        found: set[str] = set()
        for query in await self._queries():
            async with aclosing(self._source.message_pages(_within(span, query), (), PAGE)) as pages:
                async for page in pages:
                    found.update(each.id for each in page.messages)
        return found

    async def has_mail(self, span: Window) -> bool:
        """Whether there is any message in these days."""
        for query in await self._queries():
            async with aclosing(self._source.message_pages(_within(span, query), (), 1)) as pages:
                if (await anext(pages)).messages:
                    return True
        return False

    async def _queries(self) -> Sequence[str]:
        return await self._source.category_queries(self._categories, self._user_address)

    async def read(self, ids: Sequence[str]) -> FetchResult:
        """Read all of them: each is read, gone or unreadable at the end. Raises if the mailbox itself fails."""
        found = await self._read(ids)
        for pause_s in PAUSES_S:
            if not (failed := _to_retry(found)):
                break
            await asyncio.sleep(pause_s)
            _merge(found, await self._read(failed))
        if failed := _to_retry(found):
            error = found.left[failed[0]]
            if not await self._answers(failed):
                raise error
        found.unreadable |= found.left
        found.left.clear()
        return found

    async def _read(self, ids: Sequence[str]) -> FetchResult:
        """Read them; one that makes the whole answer fail is found by reading each alone."""
        found = FetchResult()
        try:
            async with aclosing(fetch(self._source, ids)) as batches:
                async for fetched in batches:
                    _merge(found, fetched)
        except BATCH_ERRORS as error:
            if len(ids) == 1:
                found.left[ids[0]] = error
            else:
                await self._read_alone(ids, found)
        for error in found.left.values():
            if isinstance(error, (*NOT_ITS_OWN, NotAllowed)):
                raise error
        return found

    async def _read_alone(self, ids: Sequence[str], found: FetchResult) -> None:
        ended = {each.id for each in found.read} | {*found.gone, *found.unreadable, *found.left}
        for id in ids:
            if id not in ended:
                _merge(found, await self._read([id]))
                if id in found.left and not await self._answers([id]):
                    raise found.left[id]

    async def _answers(self, failed: Sequence[str]) -> bool:
        """Whether the mailbox returns messages at all. One with a single message answers by listing it."""
        try:
            async with aclosing(self._source.message_pages("", (), PROBES + len(failed))) as pages:
                listed = [each.id for each in (await anext(pages)).messages]
            others = [id for id in listed if id not in failed][:PROBES]
            outcomes = await self._source.get_messages(others, "minimal") if others else ()
        except MailboxError:
            return False
        if not others:
            return len(failed) == 1
        return any(
            not isinstance(each, MailboxError) or isinstance(each, NotInMailbox | UnreadableAnswer) for each in outcomes
        )


def _within(span: Window, query: str) -> str:
    start, end = (max(0, int(moment.timestamp())) for moment in (span.start - SLACK, span.end + SLACK))
    return f"after:{start} before:{end} {query}".strip()


def _to_retry(found: FetchResult) -> list[str]:
    """The messages that failed for now; the others that failed are refused for good. A malformed answer that is not
    the message's own may come from something between us and the mailbox.
    """
    return [id for id, error in found.left.items() if isinstance(error, MailboxLater | UnreadableAnswer)]


def _merge(found: FetchResult, more: FetchResult) -> None:
    ended = {each.id for each in more.read} | {*more.gone, *more.unreadable}
    found.left = {id: error for id, error in found.left.items() if id not in ended} | more.left
    found.read += more.read
    found.problems |= more.problems
    found.gone += more.gone
    found.unreadable |= more.unreadable

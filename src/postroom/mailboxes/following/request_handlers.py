"""Handles the requests to a mail connector: sync now, ingest given messages, count or list search results, ask for a
backfill to work on, or sample one.

The requester is not trusted, so arguments are checked as strictly as a tool's. Counting and listing are bulk use: they
take the quota that live mail leaves. No request takes longer than the requester waits.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, Protocol

from postroom.core.errors import MailboxError, NotInMailbox, PostroomError
from postroom.core.mail.headers import values
from postroom.core.mail.mailbox_requests import checked_arguments
from postroom.mailboxes.backfill.sample import BackfillSampler
from postroom.mailboxes.backfill.worker import BackfillWorker
from postroom.mailboxes.following.ingester import IngestResult
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.source import MailSource, SourceMessage
from postroom.sources.request_server import Handler

PAGE = 500
MOST_PAGES = 20
LONGEST_SHOWN = 300
# Both are shorter than the minute a requester waits at most, so that they get the answer; a lease lasts longer still.
LOOKS_FOR_S = 45.0
WORKS_FOR_S = 50.0


class RequestTookTooLong(PostroomError):
    """The request was not completed within its time."""


class RequestedConnector(Protocol):
    """The connector that handles the request."""

    @property
    def email(self) -> str: ...

    @property
    def knowledge(self) -> Knowledge: ...

    async def sync(self) -> int: ...

    def sync_now(self) -> None: ...

    async def ingest(self, ids: Sequence[str]) -> dict[str, IngestResult]: ...

    async def ingest_found(
        self, source: MailSource, ids: Sequence[str]
    ) -> list[tuple[IngestResult, SourceMessage | None]]: ...


class RequestHandlers:
    """The requests that one connector can handle."""

    def __init__(
        self, connector: RequestedConnector, source: MailSource, backfills: BackfillWorker | None = None
    ) -> None:
        self._connector = connector
        self._source = source.for_use("bulk")
        self._backfills = backfills

    def handlers(self) -> dict[str, Handler]:
        handlers: dict[str, Handler] = {
            "sync_now": self.sync_now,
            "ingest": self.ingest,
            "estimate": self.estimate,
            "search": self.search,
            "backfill_sample": self.backfill_sample,
        }
        return handlers if self._backfills is None else {**handlers, "backfill": partial(_backfill, self._backfills)}

    async def sync_now(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run one round. A look-back may take many minutes: then report that, and leave the rest to the loop."""
        checked_arguments("sync_now", arguments)
        try:
            async with asyncio.timeout(LOOKS_FOR_S):
                return {"new": await self._connector.sync()}
        except TimeoutError:
            self._connector.sync_now()
            return {"new": 0, "still_looking": True}

    async def ingest(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ingest these messages, whatever became of them before; report the outcome of each."""
        ids: list[str] = checked_arguments("ingest", arguments)["message_ids"]
        async with _in_time():
            ends = await self._connector.ingest(ids)
        return {"messages": [{"id": id, "end": ends[id].end, "reason": ends[id].reason} for id in ids]}

    async def estimate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """How many messages a search finds: counted up to a limit, with the mailbox's own estimate."""
        query: str = checked_arguments("estimate", arguments)["query"]
        ids: set[str] = set()
        guess, exact, seen = 0, False, 0
        async with _in_time(), aclosing(self._source.message_pages(query, (), PAGE)) as pages:
            async for page in pages:
                ids.update(ref.id for ref in page.messages)
                seen += 1
                guess = guess or page.result_size_estimate
                exact = page.next_page_token is None
                if seen >= MOST_PAGES:
                    break
        return {"messages": len(ids), "exact": exact, "estimate": max(guess, len(ids))}

    async def search(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The results of a search, newest first, with enough to choose from. With `ingest`, ingest them as well, and
        report the outcome of each.
        """
        wanted = checked_arguments("search", arguments)
        query, most = str(wanted["query"]), int(wanted["max"])
        async with _in_time(), aclosing(self._source.message_pages(query, (), most)) as pages:
            page = await anext(pages)
            ids = list(dict.fromkeys(ref.id for ref in page.messages))[:most]
            found = await (self._ingest(ids) if "ingest" in wanted else self._list(ids))
        return {"messages": found, "more": page.next_page_token is not None}

    async def _list(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        outcomes = await self._source.get_messages(ids, "metadata", ("From", "Subject"))
        return [_describe(each) for each in _readable(outcomes)]

    async def _ingest(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        taken = await self._connector.ingest_found(self._source, ids) if ids else []
        return [
            {"id": id, **({} if message is None else _describe(message)), "end": end.end, "reason": end.reason}
            for id, (end, message) in zip(ids, taken, strict=True)
        ]

    async def backfill_sample(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """How much mail a backfill would find, and what would become of a sample of it."""
        async with _in_time():
            return await BackfillSampler(self._source, self._connector.knowledge, self._connector.email).answer(
                arguments
            )


async def _backfill(worker: BackfillWorker, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Have the worker ask for a backfill, and work on it beside."""
    checked_arguments("backfill", arguments)
    return worker.call()._asdict()


@asynccontextmanager
async def _in_time() -> AsyncGenerator[None]:
    """Give up after a time, and say how long it really took: a part of the work may have a shorter time of its own."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(WORKS_FOR_S):
            yield
    except TimeoutError:
        took = f"{loop.time() - began:.0f} s"
        problem = f"it was not done after {took}, since other work uses the mailbox, or its quota"
        raise RequestTookTooLong(f"{problem}; try again later, or ask for less") from None


def _readable(outcomes: Collection[SourceMessage | MailboxError]) -> list[SourceMessage]:
    """The messages that still exist. One that cannot be read hides no others, unless none can."""
    found = [each for each in outcomes if not isinstance(each, MailboxError)]
    trouble = [each for each in outcomes if isinstance(each, MailboxError) and not isinstance(each, NotInMailbox)]
    if trouble and not found:
        raise trouble[0]
    return found


def _describe(message: SourceMessage) -> dict[str, Any]:
    headers = message.readable_headers()
    sender, subject = (" ".join((values(headers, name) or [""])[0].split()) for name in ("from", "subject"))
    return {
        "id": message.id,
        "thread_id": message.thread_id,
        "date": message.internal_date.isoformat(),
        "from": sender[:LONGEST_SHOWN],
        "subject": subject[:LONGEST_SHOWN],
    }

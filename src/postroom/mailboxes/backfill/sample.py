"""Counts and samples the mail that a backfill would fetch, for an estimate. It ingests nothing and returns no mail.

Everything in the window is counted, and what the searches of the categories find, by listing ids; the lists are read
beside each other, for at most half of the time. A list that is longer than that is guessed from how far back its part
reaches. Then up to 200 of the messages found are read and judged as a backfill would judge them. They are spread evenly
over the searches that found them, of which some find much that is in no category, and over time. Each batch of them is
itself spread over the whole list, so that a sample cut short by the quota is still fair.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from postroom.core.backfill.estimate import Count, Sample, exactly
from postroom.core.backfill.window import Window
from postroom.core.days import zone_named
from postroom.core.errors import MailboxLater
from postroom.core.mail.categories import CATEGORIES, categories_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.mailbox_requests import checked_arguments
from postroom.mailboxes.following.fetch import FetchResult, fetch
from postroom.mailboxes.following.ingester import is_incoming
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.source import CHUNK, MailSource, SourceMessage

PAGE = 500
MOST_PAGES = 400
LARGEST_SAMPLE = 200
LISTS_FOR_S = 20.0
SAMPLES_UNTIL_S = 44.0
AGAIN_AFTER_S = 1.0
# How precisely the beginning of a mailbox is looked for.
PRECISION = timedelta(days=31)


@dataclass(slots=True)
class Listed:
    """The ids that a search has found so far, newest first."""

    query: str
    ids: dict[str, None] = field(default_factory=dict[str, None])
    is_complete: bool = False


class BackfillSampler:
    """Answers how much mail a backfill of this mailbox would find, and what would become of it."""

    def __init__(self, source: MailSource, knowledge: Knowledge, email: str) -> None:
        self._source = source.for_use("bulk")
        self._knowledge = knowledge
        self._email = email

    async def answer(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Count and sample what a backfill of these categories and days would find."""
        given = checked_arguments("backfill_sample", arguments)
        await self._knowledge.refresh_policy()
        days = (date.fromisoformat(given["date_from"]), date.fromisoformat(given["date_to"]))
        window, names = Window(*days, zone_named(given["time_zone"])), list[str](given["categories"])
        ends_at = asyncio.get_running_loop().time() + SAMPLES_UNTIL_S
        everything = Listed(_within(window))
        known = dict[str, Listed]()
        lists = {name: await self._lists_of(name, window, known) for name in names}
        flat = list(known.values())
        await self._list_all([*flat, everything])
        counts = {name: await self._count(of_category, window) for name, of_category in lists.items()}
        found = _by_search(flat)
        candidates = _together(len(found), list(counts.values()))
        return {
            "total": (await self._count([everything], window))._asdict(),
            "candidates": candidates._asdict(),
            "categories": {name: count._asdict() for name, count in counts.items()},
            "queries": len(flat),
            "sample": (await self._sample(found, names, window, ends_at))._asdict(),
        }

    async def _lists_of(self, name: str, window: Window, known: dict[str, Listed]) -> list[Listed]:
        """The searches of a category. One that another category has as well is listed once."""
        queries = await self._source.category_queries([CATEGORIES[name]], self._email)
        return [known.setdefault(query, Listed(_within(window, query))) for query in dict.fromkeys(queries)]

    async def _list_all(self, lists: Sequence[Listed]) -> None:
        tasks = [asyncio.create_task(self._list(each)) for each in lists]
        try:
            done, _late = await asyncio.wait(tasks, timeout=LISTS_FOR_S, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _list(self, listed: Listed) -> None:
        """Read the list. If the mailbox fails, read it once more."""
        try:
            await self._read_list(listed)
        except MailboxLater:
            await asyncio.sleep(AGAIN_AFTER_S)
            await self._read_list(listed)

    async def _read_list(self, listed: Listed) -> None:
        pages = 0
        async with aclosing(self._source.message_pages(listed.query, (), PAGE)) as found:
            async for page in found:
                listed.ids.update(dict.fromkeys(ref.id for ref in page.messages))
                listed.is_complete = page.next_page_token is None
                pages += 1
                if pages >= MOST_PAGES:
                    break

    async def _count(self, lists: Sequence[Listed], window: Window) -> Count:
        together = len(_by_search(lists))
        return _together(together, [await self._guess(each, window) for each in lists])

    async def _guess(self, listed: Listed, window: Window) -> Count:
        """How many there are. One that was cut off is taken to go on at the same pace to the oldest message."""
        counted = len(listed.ids)
        if listed.is_complete:
            return exactly(counted)
        if not counted:
            raise TimeoutError
        reached = (await self._source.get_message(next(reversed(listed.ids)), "minimal")).internal_date
        oldest = await self._oldest(listed.query, window.start, min(reached, window.end))
        share = (window.end - oldest) / max(window.end - reached, timedelta(seconds=1))
        return Count(counted, max(counted + 1, round(counted * share)))

    async def _oldest(self, query: str, since: datetime, until: datetime) -> datetime:
        """About when the first message was received that the search finds."""
        while until - since > PRECISION:
            middle = since + (until - since) / 2
            async with aclosing(
                self._source.message_pages(f"{query} before:{int(middle.timestamp())}", (), 1)
            ) as pages:
                page = await anext(pages)
            since, until = (since, middle) if page.messages else (middle, until)
        return since

    async def _sample(self, found: Sequence[str], names: Sequence[str], window: Window, ends_at: float) -> Sample:
        sample, chosen = Sample(), spread(found, LARGEST_SAMPLE)
        try:
            async with asyncio.timeout_at(ends_at), aclosing(fetch(self._source, chosen)) as batches:
                async for fetched in batches:
                    sample = self._judge(sample, fetched, frozenset(names), window)
        except TimeoutError:
            pass
        except MailboxLater:
            if not sample.read:
                raise
        return sample

    def _judge(self, sample: Sample, fetched: FetchResult, names: frozenset[str], window: Window) -> Sample:
        tiers = [self._extent(message, names, window) for message in fetched.read]
        kept = [tier for tier in tiers if tier is not None]
        return Sample(
            sample.read + len(tiers) + len(fetched.gone) + len(fetched.unreadable),
            sample.in_category + len(kept),
            sample.full + kept.count("full"),
            sample.metadata + kept.count("metadata"),
            sample.skipped + kept.count("skip"),
        )

    def _extent(self, message: SourceMessage, names: frozenset[str], window: Window) -> str | None:
        """How much of the message would be ingested; None if it is not for this backfill."""
        known = self._knowledge.known()
        if not is_incoming(message, known) or not window.contains(message.internal_date):
            return None
        facts = IngestionFacts.of(message.parsed())
        if names.isdisjoint(categories_of(facts, known)):
            return None
        return self._knowledge.policy().decide(facts).tier


def spread(ids: Sequence[str], most: int) -> list[str]:
    """Up to this many of the ids, evenly spread, in such an order that each batch is spread over all of them."""
    count = min(len(ids), most)
    chosen = [ids[place * len(ids) // count] for place in range(count)]
    rounds = -(-count // CHUNK)
    return [id for start in range(rounds) for id in chosen[start::rounds]]


def _within(window: Window, query: str = "") -> str:
    """The search within the window, whose last moment before its start a provider may count as in it."""
    start, end = (int(moment.timestamp()) for moment in (window.start, window.end))
    dates = f"after:{max(0, start - 1)} before:{end}"
    return f"{dates} {query}".strip()


def _by_search(lists: Sequence[Listed]) -> list[str]:
    """All ids found: those together that the same searches found, and of them the newest first."""
    searches: dict[str, int] = {}
    for number, each in enumerate(lists):
        for id in each.ids:
            searches[id] = searches.get(id, 0) | 1 << number
    return sorted(searches, key=lambda id: (searches[id], len(id), id), reverse=True)


def _together(counted: int, counts: Sequence[Count]) -> Count:
    """How many different messages several lists contain, of which `counted` were found."""
    found, about = sum(each.counted for each in counts), sum(each.about for each in counts)
    return Count(counted, counted if about == found else max(counted + 1, counted * about // max(found, 1)))

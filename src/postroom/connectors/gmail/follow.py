"""Follows the mailbox's history from a position: ingests new mail, reports changes, and moves the position."""

from collections.abc import Callable
from contextlib import aclosing

from postroom.connectors.gmail.changes import changes_in
from postroom.connectors.mail.ingester import MailIngester
from postroom.connectors.mail.message_reader import MessageReader
from postroom.gmail.client import GmailClient

RECORDS_PER_PAGE = 500


async def follow(
    client: GmailClient, reader: MessageReader, ingester: MailIngester, since: int, reached: Callable[[int], None]
) -> int:
    """Follow the history. Each page is ingested and its position stored before the next is fetched. Raises
    HistoryExpired.

    Also raises if page tokens form a loop; the content of those pages has been ingested by then.
    """
    fresh, place = 0, since
    async with aclosing(client.history_pages(since, max_results=RECORDS_PER_PAGE)) as pages:
        async for page in pages:
            changes = changes_in(page.records)
            to_read = [id for id in changes.to_read if not ingester.has(id)]
            fresh += await reader.take(to_read)
            await ingester.report(changes.reports(except_for=to_read))
            is_last = page.next_page_token is None
            end = page.history_id if is_last else max((record.id for record in page.records), default=place)
            # A position before ours would make us read the same pages forever.
            if end > place:
                reached(end)
                place = end
    return fresh

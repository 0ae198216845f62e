"""Follows the mailbox's history from a position: writes down new mail, reports changes, and moves the position."""

from collections.abc import Callable
from contextlib import aclosing

from postroom.mailboxes.following.ingester import MailIngester
from postroom.mailboxes.following.reading_list import FoundMessage, ReadingList
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.following.changes import changes_in

RECORDS_PER_PAGE = 500


async def follow(
    client: GmailClient, waiting: ReadingList, ingester: MailIngester, since: int, reached: Callable[[int], None]
) -> int:
    """Follow the history, and return how many messages were found. The messages of each page are on the list, and its
    position is stored, before the next is fetched. When the list is full, the rest is left for later. Raises
    HistoryExpired.

    Also raises if page tokens form a loop; the content of those pages is on the list by then.
    """
    found, place = 0, since
    async with aclosing(client.history_pages(since, max_results=RECORDS_PER_PAGE)) as pages:
        async for page in pages:
            changes = changes_in(page.records)
            to_read = {id: ref for id, ref in changes.to_read.items() if not ingester.has(id)}
            found += waiting.add([FoundMessage(id, ref.thread_id) for id, ref in to_read.items()])
            waiting.discard(id for id, change in changes.changed.items() if change.deleted)
            # Messages that are still to be read bring their labels along.
            unread = [id for id in changes.changed if id in to_read or id in waiting]
            await ingester.report(changes.reports(except_for=unread))
            is_last = page.next_page_token is None
            end = page.history_id if is_last else max((record.id for record in page.records), default=place)
            # A position before ours would make us read the same pages forever.
            if end > place:
                reached(end)
                place = end
            if waiting.is_full:
                break
    return found

"""Follows the mailbox's history from a place: new mail is handed in, changes are reported, and the place moves on."""

from collections.abc import Callable
from contextlib import aclosing

from postroom.connectors.gmail.changes import changes_in
from postroom.connectors.mail.ingester import MailIngester
from postroom.connectors.mail.message_reader import MessageReader
from postroom.gmail.client import GmailClient

RECORDS_PER_PAGE = 500


async def follow(
    client: GmailClient, taking: MessageReader, desk: MailIngester, since: int, reached: Callable[[int], None]
) -> int:
    """Each page is handed in and its place kept before the next is asked for. Raises HistoryExpired.

    Page tokens that lead in a circle are raised too; what their pages held is with the switchboard by then.
    """
    fresh, place = 0, since
    async with aclosing(client.history_pages(since, max_results=RECORDS_PER_PAGE)) as pages:
        async for page in pages:
            changes = changes_in(page.records)
            to_read = [id for id in changes.to_read if not desk.has(id)]
            fresh += await taking.take(to_read)
            await desk.report(changes.reports(except_for=to_read))
            is_last = page.next_page_token is None
            end = page.history_id if is_last else max((record.id for record in page.records), default=place)
            # A place that lies before ours would make us read for ever what we have.
            if end > place:
                reached(end)
                place = end
    return fresh

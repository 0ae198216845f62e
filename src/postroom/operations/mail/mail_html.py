"""The HTML of a message, read from its mailbox for one look and not stored."""

import asyncio
from dataclasses import dataclass
from uuid import UUID

from postroom.core.errors import AccountUnusable, JobError, MailboxError, NotInMailbox
from postroom.core.mail.html_message import HtmlMessage, html_message
from postroom.core.mail.mailbox import MailboxOf
from postroom.operations.mail.mail_ids import find_message
from postroom.store.engine.database import Database
from postroom.store.mail.mail_views import MailRow, attachments_of, load_mail

LARGEST_FILES = 30 * 1_048_576
PATIENCE_S = 20.0
AT_ONCE = 2
"""Messages of many megabytes that are in memory at the same time."""
PRUNED = "Its content is no longer kept here: its retention ended on {}."
METADATA = "Only its headers were stored, by a filter; its content stayed in the mailbox."
GONE = "It is no longer in the mailbox, and its HTML is not stored."
NO_MAILBOX = "This server reaches no mailbox; the text is what is stored."


@dataclass(frozen=True, slots=True)
class ShownHtml:
    """The HTML; without it, `why_not` says why."""

    html: HtmlMessage | None
    why_not: str = ""


def why_no_html(came: MailRow) -> str:
    """Why its HTML is not shown, as far as is known without asking the mailbox; empty if nothing speaks against it.

    Postroom shows no more of a message than it may store: retention and filters hold for looking, too.
    """
    if came.pruned_at is not None:
        return PRUNED.format(came.pruned_at.date())
    if came.ingestion_tier == "metadata":
        return METADATA
    return GONE if came.is_gone else ""


class HtmlReader:
    """Reads HTML from mailboxes, a few messages at a time."""

    def __init__(self, database: Database, mailbox_of: MailboxOf | None, patience_s: float = PATIENCE_S) -> None:
        self._database = database
        self._mailbox_of = mailbox_of
        self._patience_s = patience_s
        self._free = asyncio.Semaphore(AT_ONCE)

    async def read(self, name: str) -> ShownHtml:
        """Read the HTML of the message with this id of any kind. Raise NotFound, BadInput."""
        id = await find_message(self._database, name)
        came = await self._database.run(load_mail(id))
        if why_not := why_no_html(came):
            return ShownHtml(None, why_not)
        if self._mailbox_of is None:
            return ShownHtml(None, NO_MAILBOX)
        if came.has_attachment and await self._weight(id) > LARGEST_FILES:
            return ShownHtml(None, "Its attachments are larger than 30 MiB; open it in the mailbox.")
        try:
            async with asyncio.timeout(self._patience_s), self._free:
                return await self._from_mailbox(came, self._mailbox_of)
        except NotInMailbox:
            return ShownHtml(None, GONE)
        except (MailboxError, JobError, AccountUnusable) as error:
            return ShownHtml(None, f"The mailbox did not give it out: {error}")
        except TimeoutError:
            return ShownHtml(None, "The mailbox did not answer in time. Try again soon.")

    async def _weight(self, id: UUID) -> int:
        return sum(each.size or 0 for each in await self._database.run(attachments_of(id)))

    async def _from_mailbox(self, message: MailRow, mailbox_of: MailboxOf) -> ShownHtml:
        mailbox = await mailbox_of(message.account_id)
        raw = await mailbox.raw(message.provider_message_id)
        # Parsing megabytes takes time: the event loop must not wait for it.
        found = await asyncio.to_thread(html_message, raw)
        return ShownHtml(found, "" if found else "It has no HTML. Its text is all there is.")

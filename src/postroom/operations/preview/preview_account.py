"""The newest mail of a connected mailbox, for a preview. The mailbox is only read, and nothing is stored."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from postroom.core.errors import MailboxError
from postroom.core.mail.files import MailFile
from postroom.core.mail.providers import facts_of
from postroom.mailboxes.following.source import CHUNK, MailSource, SourceMessage
from postroom.operations.accounts.accounts import check_in_use, find_account
from postroom.operations.accounts.contacts import known_to
from postroom.operations.preview.arrivals import IncomingMessage
from postroom.store.engine.database import Database

PAGE = 100
LONG_AGO = datetime.min.replace(tzinfo=UTC)
# A message that was archived since arrived in the inbox like any other.
NOT_ON_ARRIVAL = frozenset({"STARRED", "IMPORTANT"})

OpenSource = Callable[[Database, UUID], AbstractAsyncContextManager[MailSource]]
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class FetchedMail:
    """The mail of one account, its contacts, and the hosts that receive its mail, as far as they are known."""

    email: str
    messages: list[IncomingMessage]
    contacts: frozenset[str]
    hosts: frozenset[str] = frozenset()


async def fetch_mail(
    database: Database, account: str, most: int, open_source: OpenSource, progress: Progress
) -> FetchedMail:
    """Fetch the newest messages of the account with this id or address, its own sent mail among them."""
    view = await find_account(database, account)
    check_in_use(view)
    contacts = await known_to(database, view.endpoint_identity)
    async with open_source(database, view.id) as source:
        found = await fetch_newest(source, view.provider, most, progress)
    return FetchedMail(view.email, found, contacts, facts_of(view.provider).receiving_hosts(view.servers))


async def fetch_newest(source: MailSource, provider: str, most: int, progress: Progress) -> list[IncomingMessage]:
    """The newest messages of a mailbox, oldest first."""
    ids = await _newest(source, facts_of(provider).arrived, most)
    found: list[IncomingMessage] = []
    for at in range(0, len(ids), CHUNK):
        for message in await source.get_messages(ids[at : at + CHUNK], "raw"):
            if not isinstance(message, MailboxError) and "DRAFT" not in message.label_ids:
                found.append(_as_arrived(message))
        progress(len(found))
    return sorted(found, key=lambda each: each.at or LONG_AGO)


async def _newest(source: MailSource, query: str, most: int) -> list[str]:
    found: list[str] = []
    async with aclosing(source.message_pages(query, (), min(PAGE, most))) as pages:
        async for page in pages:
            found += [each.id for each in page.messages]
            if len(found) >= most:
                break
    return found[:most]


def _as_arrived(message: SourceMessage) -> IncomingMessage:
    labels = message.label_ids - NOT_ON_ARRIVAL
    if "SENT" not in labels:
        labels |= {"INBOX", "UNREAD"}
    return IncomingMessage(MailFile(message.id, message.raw or b""), labels, message.internal_date)

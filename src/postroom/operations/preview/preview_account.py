"""The newest mail of a connected mailbox, for a preview. The mailbox is only read, and nothing is stored."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.errors import MailboxError
from postroom.core.mail.files import MailFile
from postroom.core.mail.providers import facts_of
from postroom.mailboxes.following.source import CHUNK, MailSource, SourceMessage
from postroom.operations.accounts.accounts import check_in_use, find_account
from postroom.operations.accounts.contacts import known_to
from postroom.operations.preview.arrivals import ANY_ACCOUNT, IncomingMessage
from postroom.store.engine.database import Database

PAGE = 100
# So many messages at most are fetched to reach a time.
FURTHEST = 1_000
LONG_AGO = datetime.min.replace(tzinfo=UTC)
# A message that was archived since arrived in the inbox like any other.
NOT_ON_ARRIVAL = frozenset({"STARRED", "IMPORTANT"})

OpenSource = Callable[[Database, UUID], AbstractAsyncContextManager[MailSource]]
Progress = Callable[[int], None]


class NewestMail(NamedTuple):
    """The newest messages of a mailbox, oldest first. `reaches` is the time since when they are all its messages; None
    if the mailbox has no others.
    """

    messages: list[IncomingMessage]
    reaches: datetime | None


@dataclass(frozen=True, slots=True)
class FetchedMail:
    """The newest mail of one account, its contacts, and the hosts that receive its mail, as far as they are known."""

    email: str
    newest: NewestMail
    contacts: frozenset[str]
    hosts: frozenset[str] = frozenset()
    account_id: UUID = ANY_ACCOUNT


async def fetch_mail(
    database: Database,
    account: str,
    most: int,
    open_source: OpenSource,
    progress: Progress,
    since: datetime | None = None,
) -> FetchedMail:
    """Fetch the newest messages of the account with this id or address, its own sent mail among them; and those since a
    time, as far as that is not too much.
    """
    view = await find_account(database, account)
    check_in_use(view)
    contacts = await known_to(database, view.endpoint_identity)
    async with open_source(database, view.id) as source:
        found = await fetch_newest(source, view.provider, most, progress, since)
    return FetchedMail(view.email, found, contacts, facts_of(view.provider).receiving_hosts(view.servers), view.id)


async def fetch_newest(
    source: MailSource, provider: str, most: int, progress: Progress, since: datetime | None = None
) -> NewestMail:
    """The newest messages of a mailbox; with `since`, more of them, until one is older."""
    found: list[IncomingMessage] = []
    asked, furthest = 0, most if since is None else max(most, FURTHEST)
    async with aclosing(_newest(source, facts_of(provider).arrived, min(PAGE, most))) as chunks:
        async for ids in chunks:
            ids = ids[: furthest - asked]
            asked += len(ids)
            chunk = [each for each in await source.get_messages(ids, "raw") if not isinstance(each, MailboxError)]
            found += [_as_arrived(each) for each in chunk if "DRAFT" not in each.label_ids]
            progress(len(found))
            is_behind = since is not None and any(each.internal_date < since for each in chunk)
            if asked >= furthest or (asked >= most and is_behind):
                break
    found.sort(key=lambda each: each.at or LONG_AGO)
    return NewestMail(found, found[0].at if found and asked >= most else None)


async def _newest(source: MailSource, query: str, at_once: int) -> AsyncGenerator[list[str]]:
    """The ids of the messages, newest first, some at a time."""
    async with aclosing(source.message_pages(query, (), at_once)) as pages:
        async for page in pages:
            ids = [each.id for each in page.messages]
            for at in range(0, len(ids), CHUNK):
                yield ids[at : at + CHUNK]


def _as_arrived(message: SourceMessage) -> IncomingMessage:
    labels = message.label_ids - NOT_ON_ARRIVAL
    is_in_inbox = "INBOX" in labels
    if "SENT" not in labels:
        labels |= {"INBOX", "UNREAD"}
    return IncomingMessage(MailFile(message.id, message.raw or b""), labels, message.internal_date, is_in_inbox)

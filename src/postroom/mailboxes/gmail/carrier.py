"""Sends mail from a Gmail mailbox, and finds out what became of it.

A draft that still exists was not sent. One that is gone was sent or deleted: only the mailbox's sent mail shows which.
Lists by label show a message at once, while a search finds it a little later, so nothing here searches.
"""

import contextlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from postroom.core.mail.addresses import addresses
from postroom.core.mail.carrier import MARK, SOURCE, DraftKept, MarkedDraft, SentMail
from postroom.mailboxes.gmail import calls
from postroom.mailboxes.gmail.calls import Call
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import (
    DraftNotFound,
    GmailError,
    NotThere,
    ServerError,
    ThreadNotFound,
    Unreachable,
)
from postroom.mailboxes.gmail.resources import Message, MessageRef

T = TypeVar("T")

SENT = "SENT"
HEADERS = (MARK, SOURCE, "To", "Auto-Submitted")
PAGE = 50
# How far back drafts and sent mail are read, and how often each call is tried.
MOST_PAGES = 10
TRIES = 5
# Clocks differ; this margin keeps sent mail from being missed.
EARLIER = timedelta(hours=1)


class GmailCarrier:
    """Sends mail from a Gmail mailbox. Read-only calls are retried a few times: reading a full mailbox takes many
    calls, none of which may fail.
    """

    def __init__(self, client: GmailClient) -> None:
        """The client must be allowed to change the mailbox: `GmailClient.under` gives it a permit."""
        self._client = client

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        made = await self._client.create_draft(mail, thread_id)
        return DraftKept(made.id, made.message.id)

    async def drafts_of(self, mark: UUID) -> list[DraftKept]:
        found: list[DraftKept] = []
        token: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._ask(calls.list_drafts("", token, PAGE))
            drafts = await self._all_asked([calls.get_draft(each.id, "metadata") for each in page.drafts])
            found += [DraftKept(each.id, each.message.id) for each in drafts if _carries(each.message, mark)]
            token = page.next_page_token
            if token is None:
                break
        return found

    async def has_draft(self, draft_id: str) -> bool:
        try:
            await self._ask(calls.get_draft(draft_id, "minimal"))
        except DraftNotFound:
            return False
        return True

    async def send_draft(self, draft_id: str) -> str | None:
        try:
            return (await self._client.send_draft(draft_id)).id
        except DraftNotFound:
            return None

    async def delete_draft(self, draft_id: str) -> None:
        try:
            await self._client.delete_draft(draft_id)
        except DraftNotFound:
            return

    async def find_sent(self, mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        for thread_id in threads:
            if (found := await self._in_thread(mark, thread_id)) is not None:
                return found
        return await self._among_sent(mark, since - EARLIER)

    async def newest_sent(self) -> list[SentMail]:
        page = await self._ask(calls.list_messages("", [SENT], None, PAGE, include_spam_trash=True))
        return _ours(await self._headers_of(page.messages))

    async def sent_since(self, since: datetime) -> list[SentMail]:
        found: list[SentMail] = []
        token: str | None = None
        while True:
            page = await self._ask(calls.list_messages("", [SENT], token, PAGE, include_spam_trash=True))
            messages = await self._headers_of(page.messages)
            found += _ours(messages)
            token = page.next_page_token
            if token is None or any(each.internal_date < since for each in messages):
                return found

    async def marked_drafts(self) -> list[MarkedDraft]:
        found: list[MarkedDraft] = []
        token: str | None = None
        while True:
            page = await self._ask(calls.list_drafts("", token, PAGE))
            drafts = await self._all_asked([calls.get_draft(each.id, "metadata") for each in page.drafts])
            for each in drafts:
                if (mark := _mark(each.message)) is not None:
                    found.append(MarkedDraft(each.id, each.message.id, mark))
            token = page.next_page_token
            if token is None:
                return found

    async def _headers_of(self, listed: Iterable[MessageRef]) -> list[Message]:
        return await self._all_asked([calls.get_message(each.id, "metadata", HEADERS) for each in listed])

    async def _in_thread(self, mark: UUID, thread_id: str) -> str | None:
        try:
            thread = await self._ask(calls.get_thread(thread_id, "metadata", [MARK]))
        except ThreadNotFound:
            return None
        return _sent_with(mark, thread.messages)

    async def _among_sent(self, mark: UUID, since: datetime) -> str | None:
        """Search sent mail, newest first, as far back as the mail can be."""
        token: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._ask(calls.list_messages("", [SENT], token, PAGE, include_spam_trash=True))
            found = await self._all_asked([calls.get_message(each.id, "metadata", [MARK]) for each in page.messages])
            if (id := _sent_with(mark, found)) is not None:
                return id
            token = page.next_page_token
            if token is None or any(each.internal_date < since for each in found):
                break
        return None

    async def _ask(self, call: Call[T]) -> T:
        for _ in range(TRIES - 1):
            with contextlib.suppress(Unreachable, ServerError):
                return await self._client.run(call)
        return await self._client.run(call)

    async def _all_asked(self, wanted: Sequence[Call[T]]) -> list[T]:
        """Messages that still exist. Any other error is raised: a partial result must not be taken for a
        complete one.
        """
        for _ in range(TRIES - 1):
            with contextlib.suppress(Unreachable, ServerError):
                return list(_there(await self._client.batch(wanted)))
        return list(_there(await self._client.batch(wanted)))


def _there(outcomes: Sequence[T | GmailError]) -> Iterable[T]:
    """The outcomes without messages that are gone by now."""
    for outcome in outcomes:
        if isinstance(outcome, NotThere):
            continue
        if isinstance(outcome, GmailError):
            raise outcome
        yield outcome


def _ours(messages: Iterable[Message]) -> list[SentMail]:
    """The sent messages that Postroom has sent."""
    found: list[SentMail] = []
    for each in messages:
        if SENT in each.label_ids and (mark := _mark(each)) is not None:
            to = addresses(each.header("To") or "")
            answered = to[0] if to and (each.header("Auto-Submitted") or "").strip() == "auto-replied" else None
            source = (each.header(SOURCE) or "").strip() or None
            found.append(SentMail(each.id, mark, source, each.internal_date, answered))
    return found


def _mark(message: Message) -> UUID | None:
    try:
        return UUID((message.header(MARK) or "").strip())
    except ValueError:
        return None


def _carries(message: Message, mark: UUID) -> bool:
    return (message.header(MARK) or "").strip().lower() == str(mark)


def _sent_with(mark: UUID, messages: Iterable[Message]) -> str | None:
    return next((each.id for each in messages if SENT in each.label_ids and _carries(each, mark)), None)

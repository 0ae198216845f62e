"""Fills the index of sent mail from before the connector began: newest first, beside live mail, without haste."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from postroom.connectors.gmail.fetch import CHUNK
from postroom.connectors.gmail.knowledge import SentIds
from postroom.connectors.gmail.parse import headers_of
from postroom.core.errors import PostroomError
from postroom.core.mime_headers import values
from postroom.core.tiers import message_ids
from postroom.gmail.client import GmailClient
from postroom.gmail.errors import GmailError, NotThere
from postroom.gmail.resources import Message

log = structlog.get_logger()

# What people still reply to; at Gmail's rate for bulk reading this takes about twenty minutes.
MOST = 5_000
PAGE = 500
AFTER_TROUBLE_S = 300.0


class FillableIndex(SentIds, Protocol):
    @property
    def is_filled(self) -> bool: ...

    def mark_filled(self) -> None: ...


async def keep_filling(client: GmailClient, index: FillableIndex, most: int = MOST) -> None:
    """Until it is filled, which is remembered. Trouble only makes it wait: live mail goes on meanwhile."""
    while not index.is_filled:
        try:
            await fill(client.for_use("bulk"), index, most)
        except PostroomError as error:
            log.warning("connector.sent_mail_waits", error=type(error).__name__)
            await asyncio.sleep(AFTER_TROUBLE_S)


async def fill(client: GmailClient, index: FillableIndex, most: int = MOST) -> int:
    """Reads the Message-IDs of the newest sent mail; returns of how many messages."""
    seen = 0
    async for page in client.message_pages(label_ids=("SENT",), max_results=PAGE):
        ids = [ref.id for ref in page.messages][: most - seen]
        for at in range(0, len(ids), CHUNK):
            await _fill_chunk(client, index, ids[at : at + CHUNK])
        seen += len(ids)
        if seen >= most:
            break
    index.mark_filled()
    log.info("connector.sent_mail_read", messages=seen)
    return seen


async def _fill_chunk(client: GmailClient, index: FillableIndex, ids: Sequence[str]) -> None:
    outcomes = await client.get_messages(ids, "metadata", ("Message-ID",))
    found = [each for each in outcomes if isinstance(each, Message)]
    index.add(id for message in found for value in _ids_in(message) for id in message_ids(value))
    for outcome in outcomes:
        if isinstance(outcome, GmailError) and not isinstance(outcome, NotThere):
            raise outcome


def _ids_in(message: Message) -> list[str]:
    headers, _ = headers_of(message)
    return values(headers, "message-id")

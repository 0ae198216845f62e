"""A mailbox at Gmail, behind the port that all providers implement."""

from collections.abc import Collection, Sequence
from contextlib import aclosing, suppress
from copy import copy

from postroom.core.actions.permits import Permit
from postroom.core.mail.mailbox import MailboxLabel, OnePlace, Placed, SeenMessage, find_label
from postroom.mailboxes.gmail import calls
from postroom.mailboxes.gmail.batched_calls import BatchedCalls
from postroom.mailboxes.gmail.calls import Call
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import (
    BadAnswer,
    EndlessPages,
    Forbidden,
    HistoryExpired,
    LabelExists,
    LabelNotFound,
    NotFromGmail,
    NotThere,
)
from postroom.mailboxes.gmail.resources import MessageRef

# How much of the history is searched for one message.
MOST_HISTORY_PAGES = 40
HISTORY_PAGE = 500


class GmailMailbox(OnePlace):
    """A mailbox at Gmail. A message keeps its id wherever it is put."""

    provider = "gmail"

    def __init__(self, client: GmailClient) -> None:
        self._client = client
        self._gathered = BatchedCalls(client)
        self._permit: Permit | None = None

    def under(self, permit: Permit) -> "GmailMailbox":
        """The same mailbox for one piece of work, with its permit; all of them still share requests."""
        other = copy(self)
        other._client = self._client.under(permit)
        other._permit = permit
        return other

    async def labels_of(self, provider_message_id: str) -> frozenset[str]:
        return (
            await self._gathered.run(calls.get_message(provider_message_id, "minimal"), provider_message_id)
        ).label_ids

    async def look_at(self, provider_message_id: str) -> SeenMessage:
        found = await self._gathered.run(calls.get_message(provider_message_id, "minimal"), provider_message_id)
        return SeenMessage(found.label_ids, found.history_id)

    async def entered_inbox_since(self, provider_message_id: str, history_id: int) -> bool:
        """Gmail forgets its history after about a week: False if it cannot be known."""
        pages = self._client.history_pages(
            history_id, ["labelAdded"], max_results=HISTORY_PAGE, most=MOST_HISTORY_PAGES
        )
        try:
            async for page in pages:
                for record in page.records:
                    if any(
                        each.message.id == provider_message_id and "INBOX" in each.label_ids
                        for each in record.labels_added
                    ):
                        return True
        except (HistoryExpired, EndlessPages):
            return False
        finally:
            await pages.aclose()
        return False

    async def raw(self, provider_message_id: str) -> bytes:
        return (await self._client.get_message(provider_message_id, "raw")).raw or b""

    async def find(self, query: str = "", label_ids: Collection[str] = ()) -> list[str]:
        found: list[str] = []
        async with aclosing(self._client.message_pages(query, label_ids)) as pages:
            async for page in pages:
                found += [each.id for each in page.messages]
        return found

    async def modify(self, provider_message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> Placed:
        if not add and not remove:
            # Gmail refuses a change without effect.
            return Placed(provider_message_id, await self.labels_of(provider_message_id))
        return await self._change(provider_message_id, calls.modify_message(provider_message_id, add, remove))

    async def trash(self, provider_message_id: str) -> Placed:
        return await self._change(provider_message_id, calls.trash_message(provider_message_id))

    async def untrash(self, provider_message_id: str) -> Placed:
        return await self._change(provider_message_id, calls.untrash_message(provider_message_id))

    async def _change(self, provider_message_id: str, call: Call[MessageRef]) -> Placed:
        return Placed(
            provider_message_id, (await self._gathered.run(call.under(self._permit), provider_message_id)).label_ids
        )

    async def delete(self, provider_message_id: str) -> None:
        """Delete for good; this cannot be undone."""
        await self._client.delete_message(provider_message_id)

    async def labels(self) -> Sequence[MailboxLabel]:
        return [each.as_mailbox_label() for each in await self._client.list_labels()]

    async def create_label(self, name: str) -> str:
        try:
            return (await self._client.create_label(name)).id
        except LabelExists:
            return await self.label_id(name, create=False)

    async def label_id(self, name: str, create: bool = True) -> str:
        if (found := find_label(await self.labels(), name)) is not None:
            return found.id
        if not create:
            raise LabelNotFound(name)
        return await self.create_label(name)

    async def display_name(self, address: str) -> str:
        with suppress(Forbidden, NotThere, BadAnswer, NotFromGmail):
            for each in await self._client.list_send_as():
                if each.address.lower() == address.lower():
                    return each.name
        return ""

"""A mailbox whose every use is a span. The span says what was asked for, not of which message or label."""

from collections.abc import Collection, Sequence

from postroom.core.mail.mailbox import Mailbox, MailboxLabel, SeenMessage
from postroom.telemetry.tracing import span


class TracedMailbox:
    """The same mailbox, with its uses told to the tracer."""

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    async def labels_of(self, message_id: str) -> frozenset[str]:
        with span("gmail labels_of"):
            return await self._mailbox.labels_of(message_id)

    async def look_at(self, message_id: str) -> SeenMessage:
        with span("gmail look_at"):
            return await self._mailbox.look_at(message_id)

    async def entered_inbox_since(self, message_id: str, history_id: int) -> bool:
        with span("gmail entered_inbox_since"):
            return await self._mailbox.entered_inbox_since(message_id, history_id)

    async def modify(self, message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> frozenset[str]:
        with span("gmail modify"):
            return await self._mailbox.modify(message_id, add, remove)

    async def trash(self, message_id: str) -> frozenset[str]:
        with span("gmail trash"):
            return await self._mailbox.trash(message_id)

    async def untrash(self, message_id: str) -> frozenset[str]:
        with span("gmail untrash"):
            return await self._mailbox.untrash(message_id)

    async def delete(self, message_id: str) -> None:
        with span("gmail delete"):
            await self._mailbox.delete(message_id)

    async def labels(self) -> Sequence[MailboxLabel]:
        with span("gmail labels"):
            return await self._mailbox.labels()

    async def create_label(self, name: str) -> str:
        with span("gmail create_label"):
            return await self._mailbox.create_label(name)

    async def label_id(self, name: str, create: bool = True) -> str:
        with span("gmail label_id"):
            return await self._mailbox.label_id(name, create)

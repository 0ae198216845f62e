"""A mailbox at Gmail, behind the port that actions use."""

from collections.abc import Collection

from postroom.gmail.client import GmailClient
from postroom.gmail.errors import LabelExists, LabelNotFound


class GmailMailbox:
    """A mailbox at Gmail."""

    def __init__(self, client: GmailClient) -> None:
        self._client = client

    async def labels_of(self, message_id: str) -> frozenset[str]:
        return (await self._client.get_message(message_id, format="minimal")).label_ids

    async def modify(self, message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> frozenset[str]:
        if not add and not remove:
            # Gmail refuses a change that changes nothing.
            return await self.labels_of(message_id)
        return await self._client.modify_message(message_id, add, remove)

    async def label_id(self, name: str, create: bool = True) -> str:
        found = await self._find(name)
        if found is None and create:
            try:
                found = (await self._client.create_label(name)).id
            except LabelExists:
                # Somebody else created it since we looked.
                found = await self._find(name)
        if found is None:
            raise LabelNotFound(name)
        return found

    async def _find(self, name: str) -> str | None:
        """Gmail keeps the case of a label's name, and allows no second one that differs in case only."""
        wanted = name.casefold()
        labels = await self._client.list_labels()
        return next((label.id for label in labels if label.name.casefold() == wanted), None)

"""A mailbox at Gmail, behind the port that actions use."""

from collections.abc import Collection, Sequence

from postroom.gmail.calls import MOST_IDS
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

    async def batch_modify(
        self, message_ids: Sequence[str], add: Collection[str] = (), remove: Collection[str] = ()
    ) -> None:
        """The same change to many. Nothing is told of each, so whoever needs to know reads them again."""
        if not add and not remove:
            return
        for start in range(0, len(message_ids), MOST_IDS):
            await self._client.batch_modify(message_ids[start : start + MOST_IDS], add, remove)

    async def trash(self, message_id: str) -> frozenset[str]:
        return await self._client.trash_message(message_id)

    async def untrash(self, message_id: str) -> frozenset[str]:
        return await self._client.untrash_message(message_id)

    async def delete(self, message_id: str) -> None:
        """Deletes for good: there is no way back."""
        await self._client.delete_message(message_id)

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
        """By name or id. Gmail keeps the case of a name, and allows no second one that differs in case only."""
        wanted = name.casefold()
        labels = await self._client.list_labels()
        found = next((label.id for label in labels if label.name.casefold() == wanted), None)
        return found or next((label.id for label in labels if label.id == name), None)

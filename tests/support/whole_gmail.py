"""The methods of Gmail's API that Postroom itself does not call: with them a test uses a mailbox as its owner does."""

import base64
import json
from collections.abc import Collection, Sequence

from postroom.core import base64url
from postroom.mailboxes.gmail import calls
from postroom.mailboxes.gmail.calls import Call, Format, HistoryType, nothing
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import LabelNotFound
from postroom.mailboxes.gmail.methods import Method
from postroom.mailboxes.gmail.resources import (
    Draft,
    DraftPage,
    HistoryPage,
    Label,
    MessagePage,
    MessageRef,
    Thread,
    read_label,
    read_message_ref,
)
from postroom.mailboxes.gmail.scopes import FULL, LABELS, MODIFY, READONLY, SEND

STOP = Method("stop", "POST", READONLY)
BATCH_MODIFY = Method("messages.batchModify", "POST", MODIFY, changes=True)
BATCH_DELETE = Method("messages.batchDelete", "POST", FULL, changes=True)
SEND_MESSAGE = Method("messages.send", "POST", SEND, changes=True)
GET_ATTACHMENT = Method("messages.attachments.get", "GET", READONLY)
GET_LABEL = Method("labels.get", "GET", READONLY)
UPDATE_LABEL = Method("labels.update", "PUT", LABELS, changes=True)
DELETE_LABEL = Method("labels.delete", "DELETE", LABELS, changes=True)


class WholeGmailClient(GmailClient):
    """The client, with more methods."""

    async def stop(self) -> None:
        await self.run(Call(STOP, "/stop", nothing))

    async def list_messages(
        self, q: str = "", label_ids: Collection[str] = (), page_token: str | None = None, max_results: int = 100
    ) -> MessagePage:
        return await self.run(calls.list_messages(q, label_ids, page_token, max_results, False))

    async def list_history(
        self,
        start_history_id: int,
        page_token: str | None = None,
        history_types: Collection[HistoryType] = (),
        label_id: str | None = None,
    ) -> HistoryPage:
        return await self.run(calls.list_history(start_history_id, page_token, history_types, label_id, None))

    async def modify_message(
        self, message_id: str, add: Collection[str] = (), remove: Collection[str] = ()
    ) -> frozenset[str]:
        return (await self.run(calls.modify_message(message_id, add, remove))).label_ids

    async def trash_message(self, message_id: str) -> frozenset[str]:
        return (await self.run(calls.trash_message(message_id))).label_ids

    async def untrash_message(self, message_id: str) -> frozenset[str]:
        return (await self.run(calls.untrash_message(message_id))).label_ids

    async def batch_modify(
        self, message_ids: Sequence[str], add: Collection[str] = (), remove: Collection[str] = ()
    ) -> None:
        body = {"ids": list(message_ids), "addLabelIds": sorted(add), "removeLabelIds": sorted(remove)}
        await self.run(Call(BATCH_MODIFY, "/messages/batchModify", nothing, content=_json(body)))

    async def batch_delete(self, message_ids: Sequence[str]) -> None:
        body = _json({"ids": list(message_ids)})
        await self.run(Call(BATCH_DELETE, "/messages/batchDelete", nothing, content=body))

    async def send_message(self, raw: bytes, thread_id: str | None = None) -> MessageRef:
        fields = {"raw": base64.urlsafe_b64encode(raw).decode()} | ({"threadId": thread_id} if thread_id else {})
        return await self.run(Call(SEND_MESSAGE, "/messages/send", read_message_ref, content=_json(fields)))

    async def get_attachment(self, message_id: str, attachment_id: str) -> bytes:
        path = f"/messages/{message_id}/attachments/{attachment_id}"
        return await self.run(Call(GET_ATTACHMENT, path, lambda fields: base64url.decode(str(fields["data"]))))

    async def get_thread(
        self, thread_id: str, format: Format = "full", metadata_headers: Collection[str] = ()
    ) -> Thread:
        return await self.run(calls.get_thread(thread_id, format, metadata_headers))

    async def get_draft(self, draft_id: str) -> Draft:
        return await self.run(calls.get_draft(draft_id))

    async def list_drafts(self) -> DraftPage:
        return await self.run(calls.list_drafts("", None, 100))

    async def get_label(self, label_id: str) -> Label:
        return await self.run(Call(GET_LABEL, f"/labels/{label_id}", read_label, on={404: LabelNotFound(label_id)}))

    async def update_label(self, label: Label, name: str) -> Label:
        body = {"id": label.id, "name": name, "labelListVisibility": "labelShow", "messageListVisibility": "show"}
        return await self.run(Call(UPDATE_LABEL, f"/labels/{label.id}", read_label, content=_json(body)))

    async def delete_label(self, label_id: str) -> None:
        await self.run(Call(DELETE_LABEL, f"/labels/{label_id}", nothing, on={404: LabelNotFound(label_id)}))


def _json(body: object) -> bytes:
    return json.dumps(body).encode()

"""A small mailbox in memory that keeps mail in folders, as IMAP does: a message is in one of them, and a move gives it
a new id. Read and starred are flags, which no move touches.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from uuid import UUID

from postroom.core.actions.permits import Permit
from postroom.core.errors import LabelMissing, MailboxError, MailboxRefused, MessageGone
from postroom.core.mail.carrier import MARK, SOURCE, DraftKept, MarkedDraft, SentMail
from postroom.core.mail.gate import ClearanceRequest, Gate
from postroom.core.mail.mailbox import MailboxLabel, OnePlace, Placed, SeenMessage, find_label

FLAGS = frozenset({"UNREAD", "STARRED"})
FOLDERS = ("INBOX", "SPAM", "TRASH", "SENT", "DRAFT")
# Where a message is that is in no other place: a folder that is nobody's label.
ARCHIVE = "archive"


@dataclass
class _Kept:
    content: bytes
    folder: str
    flags: set[str]
    changed: int
    entered_inbox: list[int] = field(default_factory=list[int])
    came_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(self.flags) | (frozenset({self.folder}) - {ARCHIVE})

    def header(self, name: str) -> str:
        return str(message_from_bytes(self.content, policy=policy.default).get(name, ""))


@dataclass
class Folders:
    """What the server keeps. `fails_with` is raised instead of an answer."""

    messages: dict[str, _Kept] = field(default_factory=dict[str, _Kept])
    created: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    fails_with: MailboxError | None = None
    changes: int = 0
    _ids: int = 0

    def put(self, content: bytes, folder: str = "INBOX", flags: Collection[str] = ("UNREAD",), id: str = "") -> str:
        self.changes += 1
        kept = _Kept(content, folder, set(flags), self.changes)
        return self.place(kept, id)

    def place(self, kept: _Kept, id: str = "") -> str:
        self._ids += 1
        new = id or f"{kept.folder}/{self._ids}"
        self.messages[new] = kept
        return new

    def get(self, id: str) -> _Kept:
        if self.fails_with is not None:
            raise self.fails_with
        if id not in self.messages:
            raise MessageGone(f"no folder has a message {id}")
        return self.messages[id]

    async def clear(
        self, gate: Gate, permit: Permit | None, list_labels: Callable[[], Awaitable[Sequence[MailboxLabel]]]
    ) -> None:
        """Ask the gate until it has answered; raise what it refuses with."""
        if permit is None:
            raise MailboxRefused("a change was asked for without a permit; nothing was changed")
        asking = ClearanceRequest(gate, [permit], self._labels_of, list_labels)
        while (clearance := await asking.clearance()) is None:
            pass
        for error in clearance.refused.values():
            raise error
        with clearance.on_the_wire():
            clearance.check()

    async def _labels_of(self, ids: Sequence[str]) -> dict[str, frozenset[str] | None]:
        return {id: self.messages[id].labels if id in self.messages else None for id in ids}


class FolderMailbox(OnePlace):
    """The port over these folders."""

    provider = "folders"

    def __init__(self, folders: Folders, gate: Gate) -> None:
        self._folders = folders
        self._gate = gate
        self._permit: Permit | None = None

    def under(self, permit: Permit) -> "FolderMailbox":
        other = copy(self)
        other._permit = permit
        return other

    async def labels_of(self, provider_message_id: str) -> frozenset[str]:
        return self._folders.get(provider_message_id).labels

    async def look_at(self, provider_message_id: str) -> SeenMessage:
        kept = self._folders.get(provider_message_id)
        return SeenMessage(kept.labels, kept.changed)

    async def entered_inbox_since(self, provider_message_id: str, history_id: int) -> bool:
        return any(each > history_id for each in self._folders.get(provider_message_id).entered_inbox)

    async def raw(self, provider_message_id: str) -> bytes:
        return self._folders.get(provider_message_id).content

    async def find(self, query: str = "", label_ids: Collection[str] = ()) -> list[str]:
        return [
            id
            for id, kept in reversed(self._folders.messages.items())
            if frozenset(label_ids) <= kept.labels and query.encode() in kept.content
        ]

    async def modify(self, provider_message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> Placed:
        kept = await self._changing(provider_message_id)
        for label in {*add, *remove} - FLAGS - {*FOLDERS, *self._folders.created}:
            raise LabelMissing(f"there is no folder {label}")
        kept.flags |= FLAGS.intersection(add)
        kept.flags -= FLAGS.intersection(remove)
        folder = next((each for each in add if each not in FLAGS), ARCHIVE if kept.folder in remove else kept.folder)
        return self._moved(provider_message_id, kept, folder)

    async def trash(self, provider_message_id: str) -> Placed:
        return self._moved(provider_message_id, await self._changing(provider_message_id), "TRASH")

    async def untrash(self, provider_message_id: str) -> Placed:
        return self._moved(provider_message_id, await self._changing(provider_message_id), ARCHIVE)

    async def delete(self, provider_message_id: str) -> None:
        await self._changing(provider_message_id)
        del self._folders.messages[provider_message_id]

    async def labels(self) -> Sequence[MailboxLabel]:
        own = [MailboxLabel(id, name, is_system=False) for id, name in self._folders.created.items()]
        return [*(MailboxLabel(each, each, is_system=True) for each in (*FOLDERS, *sorted(FLAGS))), *own]

    async def create_label(self, name: str) -> str:
        await self._clear()
        if (found := find_label(await self.labels(), name)) is not None:
            return found.id
        id = f"folder-{len(self._folders.created) + 1}"
        self._folders.created[id] = name
        return id

    async def label_id(self, name: str, create: bool = True) -> str:
        if (found := find_label(await self.labels(), name)) is not None:
            return found.id
        if not create:
            raise LabelMissing(f"there is no folder {name!r}")
        return await self.create_label(name)

    async def display_name(self, address: str) -> str:
        return self._folders.names.get(address.lower(), "")

    async def _changing(self, provider_message_id: str) -> _Kept:
        await self._clear()
        return self._folders.get(provider_message_id)

    async def _clear(self) -> None:
        await self._folders.clear(self._gate, self._permit, self.labels)

    def _moved(self, id: str, kept: _Kept, folder: str) -> Placed:
        self._folders.changes += 1
        kept.changed = self._folders.changes
        if folder != kept.folder:
            kept.folder = folder
            del self._folders.messages[id]
            id = self._folders.place(kept)
            if folder == "INBOX":
                kept.entered_inbox.append(kept.changed)
        return Placed(id, kept.labels)


class FolderCarrier:
    """The way out: what is sent is moved from the drafts to the sent mail."""

    def __init__(self, folders: Folders, gate: Gate, permit: Permit) -> None:
        self._folders = folders
        self._gate = gate
        self._permit = permit

    async def _clear(self) -> None:
        await self._folders.clear(self._gate, self._permit, FolderMailbox(self._folders, self._gate).labels)

    async def create_draft(self, mail: bytes, thread_id: str | None) -> DraftKept:
        await self._clear()
        id = self._folders.put(mail, "DRAFT", ())
        return DraftKept(id, id)

    async def drafts_of(self, mark: UUID) -> list[DraftKept]:
        return [DraftKept(each.id, each.message_id) for each in await self.marked_drafts() if each.delivery_id == mark]

    async def has_draft(self, draft_id: str) -> bool:
        return draft_id in self._folders.messages

    async def send_draft(self, draft_id: str) -> str | None:
        await self._clear()
        kept = self._folders.messages.pop(draft_id, None)
        if kept is None:
            return None
        kept.folder = "SENT"
        return self._folders.place(kept)

    async def delete_draft(self, draft_id: str) -> None:
        await self._clear()
        self._folders.messages.pop(draft_id, None)

    async def find_sent(self, mark: UUID, threads: Sequence[str], since: datetime) -> str | None:
        return next((each.id for each in await self.sent_since(since) if each.delivery_id == mark), None)

    async def newest_sent(self) -> list[SentMail]:
        return (await self.sent_since(datetime.min.replace(tzinfo=UTC)))[:50]

    async def sent_since(self, since: datetime) -> list[SentMail]:
        return [
            SentMail(id, UUID(kept.header(MARK)), kept.header(SOURCE) or None, kept.came_at)
            for id, kept in reversed(self._folders.messages.items())
            if kept.folder == "SENT" and kept.header(MARK) and kept.came_at >= since
        ]

    async def marked_drafts(self) -> list[MarkedDraft]:
        return [
            MarkedDraft(id, id, UUID(kept.header(MARK)))
            for id, kept in self._folders.messages.items()
            if kept.folder == "DRAFT" and kept.header(MARK)
        ]

"""A mailbox on an IMAP server, behind the port that all providers implement.

A message keeps its id wherever it is put, by us or by others (`identity.py`); where it is, is looked up. Labels of the
user are keywords or folders, as they choose; a folder is a place (`labels.py`).
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from copy import copy
from typing import Literal

from postroom.core.actions.permits import Permit
from postroom.core.mail.gate import Gate, Labels
from postroom.core.mail.mailbox import MailboxLabel, Placed, SeenMessage, find_label
from postroom.mailboxes.imap.account import ImapAccount
from postroom.mailboxes.imap.changes import Changer, PlaceLost
from postroom.mailboxes.imap.commands import is_keyword
from postroom.mailboxes.imap.errors import (
    AnswerTooLarge,
    CommandRefused,
    ImapError,
    NoSuchFolder,
    NoSuchMessage,
    NotOffered,
    ServerFailed,
)
from postroom.mailboxes.imap.folder_cache import CachedFolders
from postroom.mailboxes.imap.folders import Folder
from postroom.mailboxes.imap.gated import GatedCommands
from postroom.mailboxes.imap.gmail_changes import GmailChanger
from postroom.mailboxes.imap.identity import MessageId, read_id
from postroom.mailboxes.imap.labels import KEYWORD, Keywords, is_label, plan_of, written_keyword
from postroom.mailboxes.imap.places import Expected, Finder, KnownPlaces, Place, read_spot, written_spot
from postroom.mailboxes.imap.search import found_pages
from postroom.mailboxes.imap.source import LARGEST_MESSAGE

LabelsAs = Literal["keywords", "folders"]
# How often a message is looked for that others move away while we act on it.
TRIES = 3
# More copies of one message than this are not deleted in one go.
MOST_COPIES = 20


class ImapMailbox:
    """A mailbox on an IMAP server. `always_folders` are the names of labels that are folders even if labels are
    keywords, such as the one for snoozed mail.
    """

    provider = "imap"

    def __init__(
        self,
        account: ImapAccount,
        gate: Gate | None = None,
        labels_as: LabelsAs = "keywords",
        always_folders: Collection[str] = (),
    ) -> None:
        self._account = account
        self._gate = gate
        self._labels_as = labels_as
        self._always_folders = frozenset(each.casefold() for each in always_folders)
        self._permit: Permit | None = None
        self._known = KnownPlaces()
        self._keywords = Keywords()
        self._folders = CachedFolders()

    def under(self, permit: Permit) -> "ImapMailbox":
        """The same mailbox for one piece of work, with its permit; all of them share the connection."""
        other = copy(self)
        other._permit = permit
        other._known = self._known.for_work()
        return other

    # reading

    async def labels_of(self, provider_message_id: str) -> frozenset[str]:
        async with self.finding() as finder:
            return (await finder.find(provider_message_id)).labels

    async def look_at(self, provider_message_id: str) -> SeenMessage:
        """The position in the history is the next UID of the inbox: whatever enters it later has a higher one."""
        async with self.finding() as finder:
            labels = (await finder.find(provider_message_id)).labels
            return SeenMessage(labels, await _inbox_position(finder))

    async def entered_inbox_since(self, provider_message_id: str, history_id: int) -> bool:
        """False if it is no longer there: IMAP does not remember where a message was."""
        async with self.finding() as finder:
            found = [await finder.find(provider_message_id)]
            inbox = finder.folders.of_role("INBOX")
            if finder.folders.is_gmail and inbox is not None:
                # There the inbox only shows what has its label; a message that gets it again has a new UID in it.
                found = await finder.in_folder(inbox, _parse_id(provider_message_id))
            positions = [_position(each.uidvalidity, each.uid) for each in found if each.folder.role == "INBOX"]
            return any(each >= history_id and _same_inbox(each, history_id) for each in positions)

    async def place_of(self, provider_message_id: str) -> str | None:
        spot = self._known.get(provider_message_id)
        return None if spot is None else written_spot(spot)

    async def expect(
        self,
        provider_message_id: str,
        place: str | None,
        labels: frozenset[str] | None,
        moved_to: frozenset[str] | None = None,
    ) -> None:
        self._known.expect(provider_message_id, Expected(read_spot(place), labels, moved_to))

    async def renamed(self, provider_message_id: str, place: str) -> str | None:
        spot = read_spot(place)
        if spot is None:
            return None
        async with self.finding() as finder:
            return await finder.renamed(await finder.find(provider_message_id), spot)

    async def raw(self, provider_message_id: str) -> bytes:
        async with self.finding() as finder:
            place = await finder.find(provider_message_id)
            (found,) = await finder.session.fetch([place.uid], "RFC822.SIZE") or [None]
            if found is None:
                raise NoSuchMessage
            if found.size > LARGEST_MESSAGE:
                raise AnswerTooLarge(f"a message has {found.size:,} bytes; at most {LARGEST_MESSAGE:,} are read")
            content = bytearray()
            async for chunk in finder.session.body(place.uid, found.size):
                content += chunk
            return bytes(content)

    async def find(self, query: str = "", label_ids: Collection[str] = ()) -> list[str]:
        found: list[str] = []
        async with aclosing(found_pages(self.finding, self._keywords, query, label_ids)) as pages:
            async for page in pages:
                for each in page.messages:
                    if not each.place.folder.is_label:
                        self._known.keep(each.id, each.place)
                    found.append(each.id)
        return found

    async def labels(self) -> Sequence[MailboxLabel]:
        async with self.finding() as finder:
            return await self._list_labels(finder)

    async def display_name(self, address: str) -> str:
        del address
        return ""

    # changing

    async def modify(self, provider_message_id: str, add: Collection[str] = (), remove: Collection[str] = ()) -> Placed:
        async def change(finder: Finder, changer: Changer, place: Place) -> Place:
            try:
                plan = plan_of(finder.folders, self._keywords, place.folder, add, remove)
            except NoSuchFolder:
                # It may be newer than our list.
                finder.folders = await self._folders.read(finder.session)
                plan = plan_of(finder.folders, self._keywords, place.folder, add, remove)
            return await changer.carry_out(_parse_id(provider_message_id), place, plan)

        return await self._change("modify", provider_message_id, change)

    async def trash(self, provider_message_id: str) -> Placed:
        async def change(finder: Finder, changer: Changer, place: Place) -> Place:
            del finder
            return await changer.move(_parse_id(provider_message_id), place, await changer.role_folder("TRASH"))

        return await self._change("trash", provider_message_id, change)

    async def untrash(self, provider_message_id: str) -> Placed:
        async def change(finder: Finder, changer: Changer, place: Place) -> Place:
            del finder
            if place.folder.role != "TRASH":
                return place
            return await changer.move(_parse_id(provider_message_id), place, await changer.role_folder("ARCHIVE"))

        return await self._change("untrash", provider_message_id, change)

    async def delete(self, provider_message_id: str) -> None:
        """Delete for good, every copy, also those that an interrupted move has marked; this cannot be undone. A server
        without UIDPLUS can only remove everything that is marked, also by others: there the message is put into the
        trash, and NotOffered says so.
        """
        message = _parse_id(provider_message_id)
        async with self.changing("delete") as (finder, changer):
            await finder.find(provider_message_id)
            if not finder.session.offers("UIDPLUS"):
                await self._to_trash(finder, changer, provider_message_id)
                raise NotOffered("it was put into the trash instead of being deleted for good", "UIDPLUS")
            for place in (await finder.everywhere(provider_message_id))[:MOST_COPIES]:
                with suppress(PlaceLost):
                    await changer.remove(message, place)
            self._known.forget(provider_message_id)

    async def create_label(self, name: str) -> str:
        async with self.changing("create_label") as (finder, changer):
            if (found := find_label(await self._list_labels(finder), name)) is not None:
                await changer.ask("create_label")
                return found.id
            if not finder.folders.is_gmail and not self._is_folder(name):
                await changer.ask("create_label")
                keyword = written_keyword(name)
                self._keywords.learn([keyword])
                return KEYWORD + keyword.lower()
            try:
                made = await changer.create(name)
            except (ServerFailed, CommandRefused):
                # Somebody else may have made it just now.
                again = find_label(await self._list_labels(finder), name)
                if again is None:
                    raise
                return again.id
            if made.label is None:
                raise NoSuchFolder(name)
            return made.label

    async def label_id(self, name: str, create: bool = True) -> str:
        if (found := find_label(await self.labels(), name)) is not None:
            return found.id
        if not create:
            raise NoSuchFolder(name)
        return await self.create_label(name)

    def _is_folder(self, name: str) -> bool:
        if self._labels_as == "folders" or name.casefold() in self._always_folders:
            return True
        keyword = written_keyword(name)
        return not (is_keyword(keyword) and is_label(keyword))

    async def _to_trash(self, finder: Finder, changer: Changer, id: str) -> None:
        for _ in range(TRIES):
            with suppress(PlaceLost):
                place = await finder.find(id)
                self._known.keep(id, await changer.move(_parse_id(id), place, await changer.role_folder("TRASH")))
                return
        raise ServerFailed("trash", "it does not stay where it is")

    async def _change(self, name: str, id: str, change: Callable[[Finder, Changer, Place], Awaitable[Place]]) -> Placed:
        async with self.changing(name) as (finder, changer):
            for _ in range(TRIES):
                place = await finder.find(id)
                try:
                    place = await change(finder, changer, place)
                except PlaceLost:
                    self._known.forget(id)
                    finder.session.selected = None
                    continue
                self._known.keep(id, place)
                if not changer.has_asked:
                    await changer.ask(name)
                return Placed(id, place.labels)
            raise ServerFailed(name, "the message does not stay where it is")

    # one connection for all

    @asynccontextmanager
    async def finding(self) -> AsyncGenerator[Finder]:
        """Use the connection, to read."""
        async with self._account.session() as session:
            folders = await self._folders.of(session)
            yield Finder(
                session,
                folders,
                self._known,
                self._keywords,
                self._always_folders,
                lambda: self._folders.read(session),
            )

    @asynccontextmanager
    async def changing(self, name: str) -> AsyncGenerator[tuple[Finder, Changer]]:
        """Use the connection, to change something under the permit."""
        GatedCommands(self._gate, self._permit, _no_labels, _no_list).check_permit(name)
        async with self.finding() as finder:

            async def labels_of(ids: Sequence[str]) -> Labels:
                found: dict[str, frozenset[str] | None] = {}
                for id in ids:
                    try:
                        found[id] = (await finder.find(id)).labels
                    except NoSuchMessage:
                        found[id] = None
                return found

            async def list_labels() -> Sequence[MailboxLabel]:
                return await self._list_labels(finder)

            gated = GatedCommands(self._gate, self._permit, labels_of, list_labels)
            changer = GmailChanger if finder.folders.is_gmail else Changer
            yield finder, changer(finder, gated, lambda: self._folders.read(finder.session))

    async def _list_labels(self, finder: Finder) -> list[MailboxLabel]:
        finder.folders = await self._folders.read(finder.session)
        for role in ("INBOX", "ARCHIVE"):
            if (folder := finder.folders.of_role(role)) is not None:
                with suppress(ImapError):
                    # Opened anew: it tells which keywords its messages have.
                    finder.session.selected = None
                    await finder.open(folder)
        keywords = () if finder.folders.is_gmail else self._keywords.labels()
        return [*finder.folders.labels(), *keywords]


def _parse_id(id: str) -> MessageId:
    found = read_id(id)
    if found is None:
        raise NoSuchMessage
    return found


async def _no_labels(ids: Sequence[str]) -> Labels:
    del ids
    return {}


async def _no_list() -> Sequence[MailboxLabel]:
    return []


def _position(uidvalidity: int, uid: int) -> int:
    """A UID of the inbox as a position in its history; positions of an inbox that was made anew are not comparable."""
    return (uidvalidity & 0x7FFFFFFF) << 32 | uid


def _same_inbox(one: int, other: int) -> bool:
    return one >> 32 == other >> 32


async def _inbox_position(finder: Finder) -> int:
    inbox: Folder | None = finder.folders.of_role("INBOX")
    if inbox is None:
        return 0
    found = await finder.session.status(inbox.wire, "UIDVALIDITY", "UIDNEXT")
    return _position(found.get("UIDVALIDITY", 0), found.get("UIDNEXT", 0))

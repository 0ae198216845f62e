"""Finds messages in a mailbox by their ids: where each was last seen, or by a search through the folders."""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from postroom.mailboxes.imap.answers import Fetched, Selected
from postroom.mailboxes.imap.errors import FolderForbidden, NoSuchFolder, NoSuchMessage, NotOffered
from postroom.mailboxes.imap.folders import Folder, FolderMap
from postroom.mailboxes.imap.identity import EXTENSIONS, MessageId, Scheme, id_of, read_id
from postroom.mailboxes.imap.labels import DELETED, Keywords
from postroom.mailboxes.imap.labels import labels_of as labels_in
from postroom.mailboxes.imap.session import ImapSession

MOST_KNOWN = 2_000
# A search by a Message-ID finds one message, or its copies; but anybody may send more with the same one, or with one
# that is a part of many. So many are looked at together, the newest first, and so many in all.
CANDIDATES = 200
MOST_CANDIDATES = 10_000
_SPOT = re.compile(r"(\d{1,19})\.(\d{1,19})\.(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message is: its folder, the folder's UIDVALIDITY, and its UID there; and its flags."""

    folder: Folder
    uidvalidity: int
    uid: int
    flags: frozenset[str]

    @property
    def labels(self) -> frozenset[str]:
        return labels_in(self.folder, self.flags)

    @property
    def is_deleted(self) -> bool:
        return DELETED.lower() in {each.lower() for each in self.flags}


Spot = tuple[bytes, int, int]
"""A folder's name, its UIDVALIDITY, and a UID."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Where an earlier piece of work has left a message, as in the port's `expect`."""

    spot: Spot | None
    labels: frozenset[str] | None
    moved_to: frozenset[str] | None


@dataclass
class KnownPlaces:
    """Where up to `most` messages were last seen: it saves the search, and is never trusted without a look.

    A piece of work has places of its own, before those that it shares: of several copies of a message it must mean the
    same one until its end, whatever others see meanwhile.
    """

    most: int = MOST_KNOWN
    shared: "KnownPlaces | None" = None
    _places: OrderedDict[str, Spot] = field(default_factory=OrderedDict[str, Spot])
    _expected: dict[str, Expected] = field(default_factory=dict[str, Expected])
    copying: set[str] = field(default_factory=set[str])
    """Messages that are being copied, or were when that was interrupted."""

    def for_work(self) -> "KnownPlaces":
        return KnownPlaces(self.most, shared=self.shared or self)

    def get(self, id: str) -> Spot | None:
        return self._places.get(id) or (None if self.shared is None else self.shared.get(id))

    def is_own(self, id: str) -> bool:
        return id in self._places

    def keep(self, id: str, place: Place) -> None:
        self._keep(id, (place.folder.wire, place.uidvalidity, place.uid))
        if self.shared is not None:
            self.shared.keep(id, place)

    def forget(self, id: str) -> None:
        self._places.pop(id, None)
        if self.shared is not None:
            self.shared.forget(id)

    def expect(self, id: str, expected: Expected) -> None:
        self._expected = {id: expected}
        if expected.spot is not None:
            self._keep(id, expected.spot)

    def expected(self, id: str) -> Expected | None:
        return self._expected.get(id)

    def _keep(self, id: str, spot: Spot) -> None:
        self._places[id] = spot
        self._places.move_to_end(id)
        if len(self._places) > self.most:
            self._places.popitem(last=False)


def written_spot(spot: Spot) -> str:
    """As a text that is stored with an action."""
    wire, uidvalidity, uid = spot
    return f"{uidvalidity}.{uid}.{wire.decode('latin-1')}"


def read_spot(text: str | None) -> Spot | None:
    found = _SPOT.fullmatch(text or "")
    return None if found is None else (found[3].encode("latin-1"), int(found[1]), int(found[2]))


class Finder:
    """Finds messages on one connection. Of copies in several folders of the user, one in the folders named `first` (in
    lower case) is the message: snoozed mail must come back, wherever else somebody has put a copy. `refresh` reads the
    list of folders again.
    """

    def __init__(
        self,
        session: ImapSession,
        folders: FolderMap,
        known: KnownPlaces,
        keywords: Keywords,
        first: Collection[str] = (),
        refresh: Callable[[], Awaitable[FolderMap]] | None = None,
    ) -> None:
        self.session = session
        self.folders = folders
        self.scheme: Scheme = session.scheme
        self._known = known
        self._keywords = keywords
        self._first = first
        self._refresh = refresh

    async def open(self, folder: Folder, *, is_fresh: bool = False) -> Selected:
        """Open the folder. In one that is open, messages are shown as they were at the last command, so it is asked for
        news first, unless that was just done. Raises NoSuchFolder, FolderForbidden.
        """
        selected = self.session.selected
        if selected is None or selected.name != folder.wire:
            selected = await self.session.select(folder.wire)
            self._keywords.learn(selected.flags)
        elif not is_fresh:
            await self.session.noop()
        return selected

    async def find(self, id: str) -> Place:
        """Where the message is now. Raises NoSuchMessage; NotOffered if another server gave it its id."""
        wanted = read_id(id)
        if wanted is None:
            raise NoSuchMessage
        if (needed := EXTENSIONS.get(wanted.scheme)) is not None and not self.session.offers(needed):
            raise NotOffered("the message is known by an id that this server does not give", needed)
        if (place := await self._still_there(wanted)) is not None:
            return place
        # Twice: somebody may move it into a folder that was just searched.
        if (found := await self._in_one_of(await self._search_order(id) * 2, wanted)) is None:
            # It may be in a folder that is newer than our list, or has another name by now.
            before, self.folders = self.folders, await self._refresh() if self._refresh else self.folders
            new = [each for each in self.folders.search_order(self._first) if before.at(each.wire) is None]
            found = await self._in_one_of(new, wanted)
        if found is None:
            self._known.forget(id)
            raise NoSuchMessage
        self._known.keep(id, found)
        return found

    async def _in_one_of(self, folders: Sequence[Folder], wanted: MessageId) -> Place | None:
        """The message in the first of these folders that has it."""
        for folder in folders:
            for each in await self.in_folder(folder, wanted):
                if not each.is_deleted:
                    return each
        return None

    def begin_copy(self, id: str) -> None:
        """A copy of the message is about to be made, so that the message can be removed where it is."""
        self._known.copying.add(id)

    def end_copy(self, id: str) -> None:
        self._known.copying.discard(id)

    def may_have_copied(self, id: str) -> bool:
        """Whether an attempt that was interrupted may have made a copy, in this piece of work or an earlier one."""
        expected = self._known.expected(id)
        return id in self._known.copying or (expected is not None and expected.moved_to is not None)

    async def everywhere(self, id: str) -> list[Place]:
        """All copies of the message, those that are marked as deleted last."""
        wanted = read_id(id)
        if wanted is None:
            return []
        found = [each for folder in self.folders.search_order() for each in await self.in_folder(folder, wanted)]
        return sorted(found, key=lambda each: each.is_deleted)

    async def in_folder(self, folder: Folder, wanted: MessageId) -> list[Place]:
        """The message in this folder, also if it is marked as deleted. A folder that is gone or forbidden has none."""
        try:
            selected = await self.open(folder)
            uids = await self.session.search(*wanted.criteria())
        except (NoSuchFolder, FolderForbidden):
            return []
        if wanted.is_dated:
            uids = await self._of_that_time(uids, wanted)
        newest = uids[::-1][:MOST_CANDIDATES]
        for begin in range(0, len(newest), CANDIDATES):
            some = newest[begin : begin + CANDIDATES]
            if found := await self.matching(folder, selected.uidvalidity, some, wanted):
                return found
        return []

    async def matching(self, folder: Folder, uidvalidity: int, uids: Sequence[int], wanted: MessageId) -> list[Place]:
        """Those of these messages, in the open folder, that are the one: a search may lie."""
        if not uids:
            return []
        fetched = await self.session.fetch_identified(uids, "FLAGS", wanted.scheme)
        return [
            Place(folder, uidvalidity, each.uid, each.flags)
            for each in fetched
            if id_of(each, wanted.scheme) == wanted.text
        ]

    async def renamed(self, place: Place, before: Spot) -> str | None:
        """The label of the folder in which the message is, if it was called as this spot says: it has the UIDVALIDITY
        and the message the UID, and no folder of the old name has.
        """
        wire, uidvalidity, uid = before
        if (place.uidvalidity, place.uid) != (uidvalidity, uid) or place.folder.wire == wire:
            return None
        return None if await self._is_unchanged(wire, uidvalidity) else place.folder.label

    async def _search_order(self, id: str) -> list[Folder]:
        """The folders to look into, first those where an earlier piece of work may have left the message."""
        usual, expected = self.folders.search_order(self._first), self._known.expected(id)
        if expected is None:
            return usual
        has_left = expected.spot is not None and await self._is_unchanged(*expected.spot[:2])
        likely = [expected.moved_to] if has_left else [expected.labels, expected.moved_to]
        first = [self.folders.with_labels(each) for each in likely if each is not None]
        return sorted(usual, key=lambda each: first.index(each) if each in first else len(first))

    async def _is_unchanged(self, wire: bytes, uidvalidity: int) -> bool:
        """Whether the folder of this name still has the same UIDs."""
        folder = self.folders.at(wire)
        try:
            return folder is not None and (await self.open(folder)).uidvalidity == uidvalidity
        except (NoSuchFolder, FolderForbidden):
            return False

    async def _of_that_time(self, uids: Sequence[int], wanted: MessageId) -> list[int]:
        moment = datetime.fromtimestamp(int(wanted.token), UTC)
        return [each.uid for each in await self.session.fetch(uids, "INTERNALDATE") if _has_arrived_at(each, moment)]

    async def _still_there(self, wanted: MessageId) -> Place | None:
        known = self._known.get(wanted.text)
        folder = None if known is None else self.folders.at(known[0])
        if known is None or folder is None:
            return None
        expected = self._known.expected(wanted.text)
        labels = None if expected is None or self._known.is_own(wanted.text) else expected.labels
        if labels is not None and folder != self.folders.with_labels(labels):
            # Others have seen a copy, which need not be the one that is meant.
            return None
        try:
            selected = await self.open(folder)
        except (NoSuchFolder, FolderForbidden):
            return None
        if selected.uidvalidity != known[1]:
            return None
        found = [each for each in await self.matching(folder, known[1], [known[2]], wanted) if not each.is_deleted]
        return found[0] if found else None


def _has_arrived_at(message: Fetched, moment: datetime) -> bool:
    return (message.internal_date or datetime.fromtimestamp(0, UTC)) == moment

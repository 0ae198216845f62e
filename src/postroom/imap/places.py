"""Finds messages in a mailbox by their ids: where each was last seen, or by a search through the folders."""

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from postroom.imap.answers import Fetched, Selected
from postroom.imap.errors import FolderForbidden, NoSuchFolder, NoSuchMessage
from postroom.imap.folders import Folder, FolderMap
from postroom.imap.identity import MessageId, Scheme, id_of, items_for, read_id, scheme_of
from postroom.imap.labels import DELETED, Keywords
from postroom.imap.labels import labels_of as labels_in
from postroom.imap.session import Session

MOST_KNOWN = 2_000
# A search by a Message-ID finds one message, or its copies; but anybody may send more with the same one, or with one
# that is a part of many. So many are looked at together, the newest first, and so many in all.
CANDIDATES = 200
MOST_CANDIDATES = 10_000


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


@dataclass
class KnownPlaces:
    """Where up to `most` messages were last seen: it saves the search, and is never trusted without a look."""

    most: int = MOST_KNOWN
    _places: OrderedDict[str, tuple[bytes, int, int]] = field(default_factory=OrderedDict[str, tuple[bytes, int, int]])

    def get(self, id: str) -> tuple[bytes, int, int] | None:
        return self._places.get(id)

    def keep(self, id: str, place: Place) -> None:
        self._places[id] = (place.folder.wire, place.uidvalidity, place.uid)
        self._places.move_to_end(id)
        if len(self._places) > self.most:
            self._places.popitem(last=False)

    def forget(self, id: str) -> None:
        self._places.pop(id, None)


class Finder:
    """Finds messages on one connection. Of copies in several folders of the user, one in the folders named `first` (in
    lower case) is the message: snoozed mail must come back, wherever else somebody has put a copy.
    """

    def __init__(
        self,
        session: Session,
        folders: FolderMap,
        known: KnownPlaces,
        keywords: Keywords,
        first: Collection[str] = (),
    ) -> None:
        self.session = session
        self.folders = folders
        self.scheme: Scheme = scheme_of(session.connection.capabilities)
        self._known = known
        self._keywords = keywords
        self._first = first

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
        """Where the message is now. Raises NoSuchMessage."""
        wanted = read_id(id)
        if wanted is None:
            raise NoSuchMessage
        if (place := await self._still_there(wanted)) is not None:
            return place
        # Twice: somebody may move it into a folder that was just searched.
        for folder in self.folders.search_order(self._first) * 2:
            for each in await self.in_folder(folder, wanted):
                if not each.is_deleted:
                    self._known.keep(id, each)
                    return each
        self._known.forget(id)
        raise NoSuchMessage

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
        fetched = await self.session.fetch(uids, f"FLAGS {items_for(wanted.scheme)}")
        return [
            Place(folder, uidvalidity, each.uid, each.flags)
            for each in fetched
            if id_of(each, wanted.scheme) == wanted.text
        ]

    async def _of_that_time(self, uids: Sequence[int], wanted: MessageId) -> list[int]:
        moment = datetime.fromtimestamp(int(wanted.token), UTC)
        return [each.uid for each in await self.session.fetch(uids, "INTERNALDATE") if _arrived(each, moment)]

    async def _still_there(self, wanted: MessageId) -> Place | None:
        known = self._known.get(wanted.text)
        folder = None if known is None else self.folders.at(known[0])
        if known is None or folder is None:
            return None
        try:
            selected = await self.open(folder)
        except (NoSuchFolder, FolderForbidden):
            return None
        if selected.uidvalidity != known[1]:
            return None
        found = [each for each in await self.matching(folder, known[1], [known[2]], wanted) if not each.is_deleted]
        return found[0] if found else None


def _arrived(message: Fetched, moment: datetime) -> bool:
    return (message.internal_date or datetime.fromtimestamp(0, UTC)) == moment

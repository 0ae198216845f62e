"""Follows a mailbox on an IMAP server: in each round, the folders that have changed are looked at, new mail is put on
the reading list, what other programs did is reported, and only then is it all written down.

Of many new messages the headers are fetched first, hundreds in one answer: they tell the tier, in whose order the
messages are read.

A message that has left its folder may be on its way to another: it counts as deleted only if the next round does not
find it either. Mail in the trash, in spam and in drafts is not read; if it is moved elsewhere, it is new there.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import structlog

from postroom.core.actions.label_changes import PLACES
from postroom.core.queue.queues import LOWEST
from postroom.mailboxes.following.ingester import MailIngester
from postroom.mailboxes.following.knowledge import Knowledge
from postroom.mailboxes.following.message_reader import MessageReader
from postroom.mailboxes.following.reading_list import FoundMessage
from postroom.mailboxes.following.source import CHUNK
from postroom.mailboxes.imap.account import ImapAccount
from postroom.mailboxes.imap.errors import FolderForbidden, NoSuchFolder, ServerFailed
from postroom.mailboxes.imap.folder_cache import CachedFolders
from postroom.mailboxes.imap.folders import Folder
from postroom.mailboxes.imap.following.idle import FIGURES
from postroom.mailboxes.imap.following.looking import Identified, identify, look_at
from postroom.mailboxes.imap.following.place_index import FolderNews, FolderState, PlaceIndex
from postroom.mailboxes.imap.labels import Keywords
from postroom.mailboxes.imap.places import Finder, KnownPlaces, Place
from postroom.mailboxes.imap.session import ImapSession

log = structlog.get_logger()

# How many new messages are looked at before the place is kept.
MOST_NEW = 500
_NOTHING = Identified({}, {}, {})
_AT_ONCE = 200
_NOT_READ = frozenset({"TRASH", "SPAM", "DRAFT"})
_ORDERED = frozenset({"INBOX", "ARCHIVE", None})
_USUAL = PLACES | {"UNREAD", "STARRED"}
_ORDER = {"SENT": 0, "INBOX": 1, None: 2, "ARCHIVE": 3, "DRAFT": 4, "SPAM": 5, "TRASH": 6}


_Spot = tuple[bytes, int]
"""A folder and a UID in it."""
_BeforeAndAfter = tuple[frozenset[str] | None, frozenset[str] | None]
"""The labels of a message; None if it is in no folder."""


class _Differences(NamedTuple):
    """The reports of a round, and the messages that are in no folder, with their labels, or in one again."""

    reports: list[dict[str, Any]]
    missing: dict[str, frozenset[str]]
    found_again: set[str]


@dataclass(eq=False, slots=True)
class Follower:
    """One mailbox, followed. `known` tells the reader where the messages are that it is about to read."""

    account: ImapAccount
    index: PlaceIndex
    known: KnownPlaces
    keywords: Keywords
    knowledge: Knowledge
    reader: MessageReader
    ingester: MailIngester
    clock: Callable[[], datetime]
    _folders: CachedFolders = field(default_factory=CachedFolders, init=False)
    _turn: int = field(default=0, init=False)
    fresh: int = field(default=0, init=False)

    async def round(self, since: datetime, *, again: bool = False) -> int:
        """List and report everything that changed, and read sent mail; return how many messages were new. Mail from
        before `since` is not listed: somebody has only moved it.
        With `again`, all folders are looked at from `since` on, as at first.
        """
        began, self._turn = self.clock(), self._turn + 1
        suspects = self.index.missing()
        news: list[FolderNews] = []
        listed: set[str] = set()
        self.fresh = 0
        for folder in await self._changed_folders(again):
            with suppress(NoSuchFolder, FolderForbidden):
                await self._look_into(folder, since, again, news, listed)
        await self._settle(news, suspects, listed, began)
        return self.fresh

    def expect(self, ids: Sequence[str]) -> None:
        """Tell the reader where these messages are, as far as the index knows: then it need not search for them."""
        places: dict[str, Place] = {}
        for id, wire, uidvalidity, uid in self.index.places_of(ids):
            folder = self._folders.at(wire)
            if folder is not None and (id not in places or _ORDER[folder.role] < _ORDER[places[id].folder.role]):
                places[id] = Place(folder, uidvalidity, uid, frozenset())
        for id, place in places.items():
            self.known.keep(id, place)

    async def _look_into(
        self, folder: Folder, since: datetime, again: bool, news: list[FolderNews], listed: set[str]
    ) -> None:
        """List what is new in the folder; add to `news` and `listed`. Many new messages are kept part by part."""
        try:
            async with self._finding() as finder:
                seen = await look_at(finder, folder, self.index, since, self._turn, again=again)
        except ServerFailed as error:
            if folder.role == "INBOX":
                raise
            # One folder that the server cannot open must not hold up the others. It is tried again in each round.
            log.warning("connector.folder_left_out", code=error.code)
            return
        gone, read_until = seen.gone, seen.begun.uidnext
        # Few new messages are read together, unless others wait already.
        is_ordered = len(seen.new) > CHUNK or (seen.new and len(self.index.waiting))
        known = self.knowledge.known() if is_ordered and folder.role in _ORDERED else None
        if seen.is_anew:
            # The new UIDs would be taken for the old ones.
            lost = self.index.held_at(folder.wire, gone)
            self.index.settle([], {each.id: each.labels for each in lost.values()}, (), None)
            self.index.forget_folder(folder.wire)
            gone = frozenset[int]()
        for begin in range(0, max(len(seen.new), 1), MOST_NEW):
            part = seen.new[begin : begin + MOST_NEW]
            async with self._finding() as finder:
                found = await identify(finder, folder, seen, part, known) if part else _NOTHING
            if found is None:
                return
            wanted = self._messages_to_read(folder, seen.state.uidvalidity, found, since)
            listed.update(wanted)
            if folder.role == "SENT":
                # It tells which other mail is a reply, and whom the user knows.
                self.fresh += await self.reader.take(wanted)
            else:
                self.index.waiting.add([FoundMessage(id, tier=found.tiers.get(id, LOWEST)) for id in wanted])
            if begin + MOST_NEW >= len(seen.new):
                news.append(FolderNews(folder.wire, seen.state, {**seen.changed, **found.held}, gone))
            else:
                read_until = max(read_until, part[-1] + 1)
                state = seen.begun._replace(uidnext=read_until)
                await self._settle_part(FolderNews(folder.wire, state, found.held, frozenset()), listed)

    async def _changed_folders(self, again: bool) -> list[Folder]:
        async with self.account.session() as session:
            # The figures of an open folder are those of when it was last asked for news.
            await session.unselect()
            await session.enable("QRESYNC")
            folders = await self._folders.read(session)
            figures = await session.all_statuses(*FIGURES)
            changed = [each for each in folders.stores if again or await self._has_changed(session, each, figures)]
        return sorted(changed, key=lambda each: _ORDER[each.role])

    async def _has_changed(
        self, session: ImapSession, folder: Folder, figures: Mapping[bytes, Mapping[str, int]]
    ) -> bool:
        """Whether the folder may have changed. Without CONDSTORE flags change unnoticed, so it always may."""
        before = self.index.state(folder.wire)
        condstore = session.offers("CONDSTORE")
        if before is None or before.modseq is None or not condstore:
            return True
        try:
            found = figures.get(folder.wire) or await session.status(folder.wire, *FIGURES)
        except (NoSuchFolder, FolderForbidden):
            return False
        now = FolderState(found.get("UIDVALIDITY", 0), found.get("UIDNEXT", 0), found.get("HIGHESTMODSEQ"))
        return now != before

    @asynccontextmanager
    async def _finding(self) -> AsyncGenerator[Finder]:
        async with self.account.session() as session:
            yield Finder(session, await self._folders.of(session), self.known, self.keywords)

    def _messages_to_read(self, folder: Folder, uidvalidity: int, found: Identified, since: datetime) -> list[str]:
        """The messages to read: new ones, by date, whose places the reader is told."""
        if folder.role in _NOT_READ:
            return []
        wanted = [
            id
            for id, arrived in sorted(found.arrived.items(), key=lambda each: each[1])
            if arrived >= since and not self.ingester.has(id)
        ]
        uids = {held.id: uid for uid, held in found.held.items()}
        for id in wanted:
            self.known.keep(id, Place(folder, uidvalidity, uids[id], frozenset()))
        return wanted

    async def _settle(
        self, news: Sequence[FolderNews], suspects: dict[str, frozenset[str]], read: set[str], began: datetime
    ) -> None:
        """Report the differences between the index and the mailbox, then write them."""
        vanished = self._of_lost_folders()
        after = await self._labels_after([*news, *vanished])
        found = self._differences(after, read)
        deleted = [
            _report(id, (), (), deleted=True)[0]
            for id in suspects
            if id not in after and not self.index.labels_by_place(id)
        ]
        await self.ingester.report([*found.reports, *deleted])
        found_again = (suspects.keys() - found.missing.keys()) | found.found_again
        self.index.settle([*news, *vanished], found.missing, found_again, began)
        for each in vanished:
            self.index.forget_folder(each.folder)

    async def _settle_part(self, news: FolderNews, read: set[str]) -> None:
        """Report and write a part of what is new in a folder: once it is written, nothing about it seems to differ."""
        found = self._differences(await self._labels_after([news]), read)
        await self.ingester.report(found.reports)
        self.index.settle([news], found.missing, found.found_again, None)

    def _differences(self, after: Mapping[str, _BeforeAndAfter], read: set[str]) -> "_Differences":
        """Compare these messages with the index. Those in `read` were just ingested as they are."""
        found = _Differences([], {}, set())
        # Those of a folder that was made anew are missing only until they are found in it.
        lost = self.index.missing()
        for id, (before, now) in after.items():
            old = lost.get(id, before or frozenset())
            if now is None:
                found.missing[id] = old
            elif id in read:
                continue
            elif before is not None or id in lost:
                found.reports.extend(_report(id, now - old, old - now))
                found.found_again.add(id)
            elif self.ingester.has(id):
                # It was moved here from where the index does not reach.
                found.reports.extend(_report(id, now, _USUAL - now))
        return found

    def _of_lost_folders(self) -> list[FolderNews]:
        """The messages of folders that no longer exist."""
        listed = self._folders.listed()
        return [
            FolderNews(each, state, {}, self.index.uids_in(each))
            for each in self.index.folders()
            if each not in listed and (state := self.index.state(each)) is not None
        ]

    async def _labels_after(self, news: Sequence[FolderNews]) -> dict[str, _BeforeAndAfter]:
        """For each message that the news are about, its labels before and after: None if it is in no folder."""
        gone: set[_Spot] = set()
        now_at: dict[str, dict[_Spot, frozenset[str]]] = {}
        for each in news:
            for uid, item in self.index.held_at(each.folder, each.gone).items():
                gone.add((each.folder, uid))
                now_at.setdefault(item.id, {})
            for uid, item in each.held.items():
                now_at.setdefault(item.id, {})[each.folder, uid] = item.labels
        found: dict[str, _BeforeAndAfter] = {}
        for number, (id, places) in enumerate(now_at.items()):
            if number % _AT_ONCE == 0:
                # Somebody may have marked a whole folder as read: others in this process have work to do too.
                await asyncio.sleep(0)
            before = self.index.labels_by_place(id)
            stayed = {spot: labels for spot, labels in before.items() if spot not in gone}
            found[id] = (_union(before.values()), _union({**stayed, **places}.values()))
        return found


def _union(places: Iterable[frozenset[str]]) -> frozenset[str] | None:
    """The labels of a message in several places: read if any copy is."""
    all_places = list(places)
    if not all_places:
        return None
    labels = frozenset[str]().union(*all_places)
    return labels if all("UNREAD" in each for each in all_places) else labels - {"UNREAD"}


def _report(
    id: str, added: frozenset[str] | tuple[()], removed: frozenset[str] | tuple[()], *, deleted: bool = False
) -> list[dict[str, Any]]:
    if not added and not removed and not deleted:
        return []
    return [{"message_id": id, "labels_added": sorted(added), "labels_removed": sorted(removed), "deleted": deleted}]

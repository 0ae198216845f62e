"""Looks at a folder: which messages are new in it, which have other flags, and which are gone, since it was last read.

With CONDSTORE the server tells whose flags changed; without, all are read that the index knows. Messages that are
marked as deleted count as gone.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from postroom.connectors.imap.place_index import FolderNews, FolderState, Held
from postroom.imap.answers import Fetched, Selected, written_day
from postroom.imap.folders import Folder
from postroom.imap.identity import id_of, items_for
from postroom.imap.labels import DELETED, labels_of
from postroom.imap.places import Finder

# How many new messages are handed in before the place is kept.
MOST_NEW = 500
# Without CONDSTORE, the flags of this many messages are read in each round, the newest.
MOST_FLAGS = 2_000
_AT_ONCE = 250


class Seen(NamedTuple):
    """A look at a folder. `arrived` are new messages with their times; there are more if not `is_all`."""

    news: FolderNews
    arrived: Mapping[str, datetime]
    is_all: bool


async def look_at(
    finder: Finder, folder: Folder, before: FolderState | None, held: Mapping[int, Held], since: datetime
) -> Seen:
    """Look at the folder. One that is new, or was made anew, is read from `since` on, the oldest first."""
    finder.session.selected = None
    selected = await finder.open(folder)
    gone = set[int]()
    if before is not None and before.uidvalidity != selected.uidvalidity:
        gone, before = set(held), None
        held = {}
    new = await _new_uids(finder, before, selected, since)
    part, is_all = new[:MOST_NEW], len(new) <= MOST_NEW
    fetched = await _identified(finder, part)
    found = {each.uid: Held(id, labels_of(folder, each.flags)) for id, each in fetched}
    changed = await _changed(finder, folder, before, selected, held)
    there = await _still_there(finder, held)
    gone |= held.keys() - there
    if is_all:
        uidnext = max(selected.uidnext, (new[-1] + 1) if new else 0, 0 if before is None else before.uidnext)
    else:
        uidnext = part[-1] + 1
    modseq = selected.highest_modseq if is_all else (None if before is None else before.modseq)
    state = FolderState(selected.uidvalidity, uidnext, modseq)
    kept = {uid: each for uid, each in changed.items() if uid in there}
    arrived = {id: each.internal_date or since for id, each in fetched}
    return Seen(FolderNews(folder.wire, state, {**kept, **found}, frozenset(gone)), arrived, is_all)


async def _new_uids(finder: Finder, before: FolderState | None, selected: Selected, since: datetime) -> list[int]:
    if selected.exists == 0:
        return []
    if before is None:
        # Days are compared in the server's time zone.
        return await finder.session.search(b"UNDELETED SINCE", written_day(since - timedelta(days=1)))
    if selected.uidnext and selected.uidnext <= before.uidnext:
        return []
    found = await finder.session.search(f"UNDELETED UID {before.uidnext}:*".encode())
    # `n:*` always names the last message too.
    return [uid for uid in found if uid >= before.uidnext]


async def _identified(finder: Finder, uids: Sequence[int]) -> list[tuple[str, Fetched]]:
    own = items_for(finder.scheme)
    items = own if "INTERNALDATE" in own else f"INTERNALDATE {own}"
    found: list[tuple[str, Fetched]] = []
    for begin in range(0, len(uids), _AT_ONCE):
        for each in await finder.session.fetch(uids[begin : begin + _AT_ONCE], f"FLAGS {items}"):
            id = id_of(each, finder.scheme)
            if id is not None and not _is_deleted(each):
                found.append((id, each))
    return found


async def _changed(
    finder: Finder, folder: Folder, before: FolderState | None, selected: Selected, held: Mapping[int, Held]
) -> dict[int, Held]:
    """The messages that the index knows with other labels."""
    if not held or before is None:
        return {}
    since = before.modseq if selected.highest_modseq is not None else None
    if since is not None and since == selected.highest_modseq:
        return {}
    wanted = sorted(held) if since is not None else sorted(held)[-MOST_FLAGS:]
    found: dict[int, Held] = {}
    for each in await finder.session.fetch(wanted, "FLAGS", changed_since=since):
        labels = labels_of(folder, each.flags)
        if each.uid in held and labels != held[each.uid].labels and not _is_deleted(each):
            found[each.uid] = Held(held[each.uid].id, labels)
    return found


async def _still_there(finder: Finder, held: Mapping[int, Held]) -> frozenset[int]:
    if not held:
        return frozenset()
    found = await finder.session.search(f"UNDELETED UID {min(held)}:{max(held)}".encode())
    return frozenset(held.keys() & set(found))


def _is_deleted(message: Fetched) -> bool:
    return DELETED.lower() in {each.lower() for each in message.flags}

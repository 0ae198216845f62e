"""Looks at a folder: which messages are new in it, which have other flags, and which are gone, since it was last read.

With CONDSTORE the server tells whose flags changed, and with QRESYNC which messages are gone: its answer is as large as
the change. Without, one search tells which messages of the index are still there, and the flags of the newest are read,
with those of some older ones in each round. Messages that are marked as deleted count as gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from postroom.core.mail.dates import header_date
from postroom.core.mail.tiers import TIER_HEADERS, Known, assign_tier_from_raw
from postroom.core.queue.envelope import PolicyTier
from postroom.mailboxes.imap.answers import Fetched, Selected, written_day
from postroom.mailboxes.imap.folders import Folder
from postroom.mailboxes.imap.following.place_index import FolderState, Held, PlaceIndex
from postroom.mailboxes.imap.identity import header_fields, id_of
from postroom.mailboxes.imap.labels import DELETED, labels_of
from postroom.mailboxes.imap.places import Finder

# Without CONDSTORE, the flags of this many messages are read in each round: the newest, and as many older ones.
MOST_FLAGS = 2_000
# Messages that the index does not know although it has read their UIDs: old ones, or such as were marked as deleted.
# The newest of those that changed are identified in each round.
MOST_UNKNOWN = 500
_AT_ONCE = 250
# Mail whose last step on its way was so long before it came into the mailbox did not come by itself.
BROUGHT_IN = timedelta(days=30)
MOST_RECEIVED = 100
LARGEST_FIELDS = 16_384
TRACE_ITEM = "BODY.PEEK[HEADER.FIELDS (DATE RECEIVED)]"
TIER_ITEM = f"BODY.PEEK[HEADER.FIELDS ({' '.join(each.upper() for each in TIER_HEADERS)})]<0.{LARGEST_FIELDS}>"
_HEADER = "BODY[HEADER.FIELDS"


class Seen(NamedTuple):
    """A look at a folder. `begun` is the state as long as `new` has not been read, `state` the one afterwards.
    `is_anew`: its UIDs are new ones, and those that the index knows mean nothing.
    """

    begun: FolderState
    state: FolderState
    new: Sequence[int]
    changed: Mapping[int, Held]
    gone: frozenset[int]
    is_anew: bool


class Identified(NamedTuple):
    """Some messages of a folder; and by their ids, when they arrived, and their tiers if those were asked for."""

    held: Mapping[int, Held]
    arrived: Mapping[str, datetime]
    tiers: Mapping[str, PolicyTier]


@dataclass
class _Changes:
    """Changes of messages that were read before. `unknown` are there, and are not in the index or not to be trusted."""

    held: dict[int, Held] = field(default_factory=dict[int, Held])
    gone: frozenset[int] = frozenset()
    unknown: Sequence[int] = ()


async def look_at(
    finder: Finder, folder: Folder, index: PlaceIndex, since: datetime, turn: int, *, again: bool = False
) -> Seen:
    """Look at the folder. A new one is read from `since` on, and any one if it is looked at `again`; one that was made
    anew as a whole, since messages that the index knows would otherwise seem to be gone. `turn` counts the rounds.
    """
    finder.session.selected = None
    selected = await finder.open(folder)
    before, gone = index.state(folder.wire), frozenset[int]()
    is_anew = before is not None and before.uidvalidity != selected.uidvalidity
    if is_anew:
        gone, before = index.uids_in(folder.wire), None
    new = await _new_uids(finder, before, selected, None if gone else since)
    changes = _Changes(gone=gone)
    if before is not None:
        changes = await _changes(finder, folder, before, selected, index, turn)
        if again and selected.exists:
            recent = [uid for uid in await _since(finder, since) if uid < before.uidnext]
            changes.unknown = sorted({*changes.unknown, *recent})
    uidnext = max(selected.uidnext, (new[-1] + 1) if new else 0, 0 if before is None else before.uidnext)
    return Seen(
        FolderState(selected.uidvalidity, 0, selected.highest_modseq) if before is None else before,
        FolderState(selected.uidvalidity, uidnext, selected.highest_modseq),
        [*changes.unknown, *new],
        changes.held,
        changes.gone,
        is_anew,
    )


async def identify(
    finder: Finder, folder: Folder, seen: Seen, uids: Sequence[int], known: Known | None
) -> Identified | None:
    """Those of these messages that are there, with their tiers if what is known about the user is given; None if the
    folder is not the same any more.
    """
    selected = await finder.open(folder)
    if selected.uidvalidity != seen.state.uidvalidity:
        return None
    # In a folder that is read for the first time, nothing has just come.
    newest = seen.begun.uidnext or max(uids) + 1
    items = "FLAGS"
    if finder.scheme != "hash":
        items = f"FLAGS INTERNALDATE {TRACE_ITEM}" if max(uids) >= newest else "FLAGS INTERNALDATE"
    if known is not None:
        items = f"{items} {TIER_ITEM}"
    held: dict[int, Held] = {}
    arrived: dict[str, datetime] = {}
    tiers: dict[str, PolicyTier] = {}
    for begin in range(0, len(uids), _AT_ONCE):
        for each in await finder.session.fetch_identified(uids[begin : begin + _AT_ONCE], items, finder.scheme):
            id = id_of(each, finder.scheme)
            if id is not None and not _is_deleted(each.flags):
                held[each.uid] = Held(id, labels_of(folder, each.flags))
                arrived[id] = _arrival(each, has_just_come=each.uid >= newest)
                if known is not None:
                    tiers[id] = assign_tier_from_raw(_fields(each, "PRECEDENCE"), known).tier
    return Identified(held, arrived, tiers)


async def _new_uids(
    finder: Finder, before: FolderState | None, selected: Selected, since: datetime | None
) -> list[int]:
    if selected.exists == 0:
        return []
    if before is None:
        return await _since(finder, since)
    if selected.uidnext and selected.uidnext <= before.uidnext:
        return []
    found = await finder.session.search(f"UNDELETED UID {max(before.uidnext, 1)}:*".encode())
    # `n:*` always names the last message too.
    return [uid for uid in found if uid >= before.uidnext]


async def _since(finder: Finder, since: datetime | None) -> list[int]:
    # Days are compared in the server's time zone.
    days = [] if since is None else [b"SINCE", written_day(since - timedelta(days=1))]
    return await finder.session.search(b"UNDELETED", *days)


async def _changes(
    finder: Finder, folder: Folder, before: FolderState, selected: Selected, index: PlaceIndex, turn: int
) -> _Changes:
    if before.uidnext <= 1:
        return _Changes()
    if before.modseq is None or selected.highest_modseq is None:
        return await _compare(finder, folder, before, index, turn)
    if before.modseq == selected.highest_modseq:
        return _Changes()
    told = await finder.session.changes(f"1:{before.uidnext - 1}", before.modseq)
    deleted = [uid for uid, flags in told.flags.items() if _is_deleted(flags)]
    gone = index.held_at(folder.wire, deleted).keys()
    if told.vanished is None:
        known = index.uids_in(folder.wire)
        gone |= known - await _still_there(finder, known)
    else:
        gone |= index.uids_within(folder.wire, told.vanished)
    return _sort_changes(folder, index, {uid: flags for uid, flags in told.flags.items() if uid not in gone}, gone)


async def _compare(finder: Finder, folder: Folder, before: FolderState, index: PlaceIndex, turn: int) -> _Changes:
    """The changes by comparison, on a server that cannot tell."""
    known = index.uids_in(folder.wire)
    there = await _still_there(finder, known)
    ordered = sorted(known & there)
    older, newest = ordered[:-MOST_FLAGS], ordered[-MOST_FLAGS:]
    begin = turn * MOST_FLAGS % max(len(older), 1)
    found = await finder.session.fetch([*older[begin : begin + MOST_FLAGS], *newest], finder.session.flag_items)
    made = _sort_changes(folder, index, {each.uid: each.flags for each in found}, known - there)
    made.unknown = sorted(uid for uid in there - known if uid < before.uidnext)[-MOST_UNKNOWN:]
    return made


def _sort_changes(
    folder: Folder, index: PlaceIndex, flags: Mapping[int, frozenset[str]], gone: frozenset[int] | set[int]
) -> _Changes:
    """These messages, whose flags were told: those with other labels than in the index, and those it does not know."""
    known = index.held_at(folder.wire, flags)
    there = {uid: each for uid, each in flags.items() if not _is_deleted(each)}
    labels = {uid: labels_of(folder, each) for uid, each in there.items() if uid in known}
    return _Changes(
        {uid: Held(known[uid].id, now) for uid, now in labels.items() if now != known[uid].labels},
        frozenset(gone),
        sorted(there.keys() - known.keys())[-MOST_UNKNOWN:],
    )


async def _still_there(finder: Finder, known: frozenset[int]) -> frozenset[int]:
    if not known:
        return frozenset()
    return frozenset(await finder.session.search(f"UNDELETED UID {min(known)}:{max(known)}".encode()))


def _arrival(message: Fetched, *, has_just_come: bool) -> datetime:
    """When it arrived, by the server's clock. If the server does not say, it counts as new.

    That clock may be wrong, and then none of its mail would ever be new; and a program that brings in old mail may date
    it today. So for what has just come into a folder, the times that the servers on its way and its sender have written
    count too: one of them is recent, or it was brought in.
    """
    arrived = message.internal_date
    if arrived is None:
        return datetime.max.replace(tzinfo=UTC)
    sent, received = _trace(message) if has_just_come else (None, None)
    latest = max((each for each in (sent, received) if each is not None), default=arrived)
    # Mail that came by itself has a recent line of the server that took it; mail without any such line may be local.
    return latest if received is not None and latest < arrived - BROUGHT_IN else max(latest, arrived)


def _trace(message: Fetched) -> tuple[datetime | None, datetime | None]:
    """When the message was sent, and when it was last received on its way, by its header."""
    fields = header_fields(_fields(message, "DATE"))
    dates = [header_date(value) for name, value in fields if name == "date"]
    received = [header_date(value.rpartition(";")[2]) for name, value in fields if name == "received"][:MOST_RECEIVED]
    return dates[0] if dates else None, max((each for each in received if each is not None), default=None)


def _fields(message: Fetched, one: str) -> bytes:
    """The fetched header fields of which this is one."""
    found = (each for each in message.items if each.upper().startswith(_HEADER) and one in each.upper())
    return next((message.content(each) for each in found), b"")


def _is_deleted(flags: frozenset[str]) -> bool:
    return DELETED.lower() in {each.lower() for each in flags}

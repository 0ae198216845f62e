"""The messages that a search has found, newest first, by their dates of arrival.

UIDs do not tell which message is newer: old mail that was moved has a new one. So the dates of all messages are needed,
which for 200,000 are 14 MB in 400 answers. Where there are many, those of the last weeks are asked for first: whoever
wants only the newest does not pay for all.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from postroom.mailboxes.imap.answers import written_day
from postroom.mailboxes.imap.errors import FolderForbidden, NoSuchFolder, ServerFailed
from postroom.mailboxes.imap.folders import Folder
from postroom.mailboxes.imap.places import Finder

# Up to so many messages, the dates of all are asked for at once.
MOST_AT_ONCE = 2_000
_AGES = (timedelta(days=14), timedelta(days=120), timedelta(days=1_000))
# The dates of this many messages are asked for in one command.
_IN_COMMAND = 500
_MOST_FOLDERS = 2**32 - 1


class Spot(NamedTuple):
    """Where a message is that may be meant."""

    folder: Folder
    uidvalidity: int
    uid: int


@dataclass
class _Matches:
    """Messages of a folder, and the dates of those that came earlier than what was asked for, in seconds."""

    folder: Folder
    uidvalidity: int
    undated: set[int]
    earlier: dict[int, int] = field(default_factory=dict[int, int])


class NewestFirst:
    """The messages that a search has found. Each is one number in memory: there may be hundreds of thousands."""

    def __init__(self) -> None:
        self._found: list[_Matches] = []
        self.count = 0

    def add(self, folder: Folder, uidvalidity: int, uids: Collection[int]) -> None:
        self._found.append(_Matches(folder, uidvalidity, set(uids)))
        self.count += len(uids)

    def begins(self, now: datetime) -> Iterator[datetime | None]:
        """The beginnings of the spans to ask for, each until the one before; None at last, for all that is left."""
        if self.count > MOST_AT_ONCE:
            yield from (now - age for age in _AGES)
        yield None

    async def since(self, finder: Finder, begin: datetime | None) -> list[int]:
        """The messages since then that were not returned before, newest first; of those of the same second, the one
        that was put there last. `spot` tells where each is. Raises ServerFailed if a folder was made anew meanwhile.
        """
        second = None if begin is None else int(begin.timestamp())
        keys: list[int] = []
        for number, each in enumerate(self._found):
            if each.undated:
                await _date(finder, each, begin)
            due = [uid for uid, at in each.earlier.items() if second is None or at >= second]
            keys += [each.earlier.pop(uid) << 64 | uid << 32 | (_MOST_FOLDERS - number) for uid in due]
        keys.sort(reverse=True)
        return keys

    def spot(self, key: int) -> Spot:
        found = self._found[_MOST_FOLDERS - (key & 0xFFFFFFFF)]
        return Spot(found.folder, found.uidvalidity, key >> 32 & 0xFFFFFFFF)


async def _date(finder: Finder, matches: _Matches, begin: datetime | None) -> None:
    """Ask for the dates of those that may have come since then."""
    try:
        selected = await finder.open(matches.folder)
        if selected.uidvalidity != matches.uidvalidity:
            raise ServerFailed("UID SEARCH", "a folder was made anew meanwhile")
        uids = sorted(matches.undated)
        if begin is not None:
            # Days are compared in the server's time zone.
            day = written_day(begin - timedelta(days=1))
            uids = [uid for uid in await finder.session.search(b"SINCE", day) if uid in matches.undated]
    except (NoSuchFolder, FolderForbidden):
        matches.undated.clear()
        return
    for at in range(0, len(uids), _IN_COMMAND):
        for each in await finder.session.fetch(uids[at : at + _IN_COMMAND], "INTERNALDATE"):
            arrived = each.internal_date or datetime.fromtimestamp(0, UTC)
            matches.earlier[each.uid] = int(arrived.timestamp())
    matches.undated.difference_update(uids)

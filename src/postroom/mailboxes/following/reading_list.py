"""The messages that a connector has found and not read yet, on disk, and which of them are read next.

A connector first writes down the ids of new mail, and only then moves its place in the mailbox; so a process that is
killed reads again only what it was reading. Each message has a provisional tier, which only orders the reading: the
tier that counts is assigned when the message was read.

**Order.** The picker of the queues (`core/queue/picker.py`) chooses the tier, with its guard, so that no tier waits for
ever. Within a tier three lines take turns: the newest that was just found, the oldest that was just found, and the
newest that was there already when the connector looked back. So whoever fills a tier, by a flood or by forged senders,
keeps waiting neither the message that has just come nor the one that has waited longest.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, zip_longest
from typing import NamedTuple
from uuid import uuid4

import orjson

from postroom.core.queue.envelope import PolicyTier
from postroom.core.queue.picker import Head, pick_many
from postroom.core.queue.queues import EMAIL, LOWEST
from postroom.mailboxes.following.index_file import IndexFile

URGENT: PolicyTier = "high_priority"
MOST = 50_000
"""With so many on the list, the rest stays in the mailbox until there is room."""
_AT_ONCE = 500
# The picker ages nothing in this queue, so that no time is needed.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS to_read (
        place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, thread TEXT NOT NULL, tier TEXT NOT NULL,
        is_own INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX IF NOT EXISTS to_read_of_tier ON to_read (tier, place)",
    "CREATE INDEX IF NOT EXISTS to_read_of_thread ON to_read (thread)",
    "CREATE INDEX IF NOT EXISTS to_read_own ON to_read (place) WHERE is_own = 1",
    """CREATE TABLE IF NOT EXISTS reading (
        only_one INTEGER PRIMARY KEY CHECK (only_one = 1), name TEXT NOT NULL, state TEXT NOT NULL)""",
)


class FoundMessage(NamedTuple):
    """A message that was found. `thread` is empty if it is not known."""

    id: str
    thread: str = ""
    tier: PolicyTier = LOWEST


class NextMessages(NamedTuple):
    """The messages to read next. Once they were read, these are the streaks of the tiers, and how many turns the lines
    of each have had.
    """

    ids: list[str]
    is_urgent: bool
    streaks: Mapping[str, int]
    turns: Mapping[str, int]


class ReadingList:
    """The list of one mailbox, in a file whose schema includes `SCHEMA`. Raises StoreError.

    `place` orders it by age: what was just found is above 0, the newest highest; what was there before is below 0.
    """

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    @property
    def name(self) -> str:
        """The name that this list was given when it was made: another one means that the list was lost."""
        found = self._file.run("SELECT name FROM reading")
        if not found:
            self._file.run("INSERT INTO reading VALUES (1, ?, '[{}, {}]')", uuid4().hex)
            found = self._file.run("SELECT name FROM reading")
        return str(found[0][0])

    def __len__(self) -> int:
        return int(self._file.run("SELECT count(*) FROM to_read")[0][0])

    def __contains__(self, id: object) -> bool:
        return bool(self._file.run("SELECT 1 FROM to_read WHERE id = ?", id))

    def count(self, tier: PolicyTier) -> int:
        return int(self._file.run("SELECT count(*) FROM to_read WHERE tier = ?", tier)[0][0])

    @property
    def is_full(self) -> bool:
        return len(self) >= MOST

    @property
    def has_older(self) -> bool:
        """Whether mail is on it that was there when the connector looked back."""
        return bool(self._file.run("SELECT 1 FROM to_read WHERE place < 0 LIMIT 1"))

    def add(self, found: Sequence[FoundMessage]) -> int:
        """Add messages that were just found, the oldest first; return how many were not on the list yet."""
        last = self._file.run("SELECT max(max(place), 0) FROM to_read")[0][0] or 0
        return self._insert({last + number: each for number, each in enumerate(found, 1)})

    def add_older(self, found: Sequence[FoundMessage]) -> int:
        """Add messages of a list that is read from its newest to its oldest; return how many were not on it yet."""
        first = self._file.run("SELECT min(min(place), 0) FROM to_read")[0][0] or 0
        return self._insert({first - number: each for number, each in enumerate(found, 1)})

    def _insert(self, found: Mapping[int, FoundMessage]) -> int:
        if not found:
            return 0
        before = len(self)
        self._file.run(_ADD, orjson.dumps([(place, *each) for place, each in found.items()]).decode())
        return len(self) - before

    def mark_own(self, ids: Sequence[str]) -> None:
        """Mark messages that the user sent: they tell which other mail is a reply, so that they are read before it."""
        sql = "UPDATE to_read SET is_own = 1 WHERE id IN (SELECT value FROM json_each(?))"
        self._file.run(sql, orjson.dumps(ids).decode())

    def own(self, most: int) -> list[str]:
        """The newest of the user's own messages that wait."""
        return [
            id for (id,) in self._file.run("SELECT id FROM to_read WHERE is_own = 1 ORDER BY place DESC LIMIT ?", most)
        ]

    def raise_tier(self, tier: PolicyTier, *, ids: Iterable[str] = (), threads: Iterable[str] = ()) -> int:
        """Give these messages and conversations this tier, where they have a lower one; return how many waited."""
        lower = orjson.dumps(EMAIL.tiers[EMAIL.tiers.index(tier) + 1 :]).decode()
        raised = 0
        for sql, given in ((_RAISE_IDS, sorted(ids)), (_RAISE_THREADS, sorted(threads))):
            for at in range(0, len(given), _AT_ONCE):
                part = orjson.dumps(given[at : at + _AT_ONCE]).decode()
                raised += len(self._file.run(sql, tier, part, lower))
        return raised

    def next(self, most: int, only: PolicyTier | None = None) -> NextMessages:
        """Up to so many messages to read next; only of one tier, if one is given. Urgent ones come without others
        behind them, which would only make them wait.
        """
        tiers = EMAIL.tiers if only is None else (only,)
        streaks, turns = self._state()
        places = {tier: self._line(tier, most, turns.get(tier, 0)) for tier in tiers}
        waiting = {tier: [Head(place, _ANY_TIME) for place in line] for tier, line in places.items() if line}
        batch = pick_many(EMAIL, waiting, streaks, _ANY_TIME, most)
        urgent = [number for number, each in enumerate(batch.picks) if each.tier == URGENT]
        if urgent and len(batch.picks) > urgent[-1] + 1:
            batch = pick_many(EMAIL, waiting, streaks, _ANY_TIME, urgent[-1] + 1)
        order = {tier: number for number, tier in enumerate(EMAIL.tiers)}
        picks = sorted(batch.picks, key=lambda each: (order[each.tier], each.head.seq < 0, abs(each.head.seq)))
        ids = dict(self._file.run(_IDS, orjson.dumps([each.head.seq for each in picks]).decode()))
        after = {tier: turns.get(tier, 0) + sum(each.tier == tier for each in picks) for tier in EMAIL.tiers}
        return NextMessages([ids[each.head.seq] for each in picks], bool(urgent), batch.streaks, after)

    def done(self, read: NextMessages) -> None:
        """Take messages off the list that have an outcome."""
        self._file.run_all(
            [
                (_REMOVE, (orjson.dumps(read.ids).decode(),)),
                ("UPDATE reading SET state = ?", (orjson.dumps([dict(read.streaks), dict(read.turns)]).decode(),)),
            ]
        )

    def discard(self, ids: Iterable[str]) -> None:
        """Take messages off the list that are gone."""
        if given := list(ids):
            self._file.run(_REMOVE, orjson.dumps(given).decode())

    def rest(self) -> None:
        """Close the file until it is needed again."""
        self._file.close()

    def _state(self) -> tuple[dict[str, int], dict[str, int]]:
        """The streaks of the tiers, and how many turns the lines of each have had."""
        _ = self.name
        streaks, turns = orjson.loads(self._file.run("SELECT state FROM reading")[0][0])
        return streaks, turns

    def _line(self, tier: str, most: int, turn: int) -> list[int]:
        """The places of a tier in the order of their turns."""
        found = [[place for (place,) in self._file.run(sql, tier, most)] for sql in (_NEWEST, _OLDEST, _OLDER)]
        lines = [line for line in found if line]
        begin = turn % len(lines) if lines else 0
        in_turn = chain.from_iterable(zip_longest(*lines[begin:], *lines[:begin]))
        return list(dict.fromkeys(place for place in in_turn if place is not None))[:most]


_ADD = """
    INSERT INTO to_read (place, id, thread, tier)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) WHERE true ON CONFLICT DO NOTHING
"""
_RAISE = """
    UPDATE to_read SET tier = ?
    WHERE {} IN (SELECT value FROM json_each(?)) AND tier IN (SELECT value FROM json_each(?)) RETURNING 1
"""
_RAISE_IDS, _RAISE_THREADS = _RAISE.format("id"), _RAISE.format("thread")
_REMOVE = "DELETE FROM to_read WHERE id IN (SELECT value FROM json_each(?))"
_IDS = "SELECT place, id FROM to_read WHERE place IN (SELECT value FROM json_each(?))"
_NEWEST = "SELECT place FROM to_read WHERE tier = ? AND place > 0 ORDER BY place DESC LIMIT ?"
_OLDEST = "SELECT place FROM to_read WHERE tier = ? AND place > 0 ORDER BY place LIMIT ?"
_OLDER = "SELECT place FROM to_read WHERE tier = ? AND place < 0 ORDER BY place DESC LIMIT ?"

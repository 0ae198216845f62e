"""Which installation a database belongs to, and whether it has gone back in time: restored, copied, or rolled back.

`observe_timeline` runs when a process starts and every half minute. It compares three things:

    place    the file or server recorded in the database, with the one it is found in: a different one means
             that it was copied there (`cp`, `pg_restore` into a new database, a server restored to a point in time)
    ticks    a count that grows with every observation, with its copy in the data folder: a database that is behind
             was overwritten by an older one
    epoch    the same, for restores that were detected before

A standby that was promoted is another server with the same content, and no restore: every commit had waited for it, it
has the last transactions that were acknowledged to this process, and its count is not behind. Mail that was never
leased is then known to be unsent, and mail that was being sent is settled like that of a process that died.

When the database has gone back, the epoch is raised, and every mailbox has to be compared with it (see `restores`).
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.store.engine.codecs import as_time, as_uuid
from postroom.store.engine.database import Database, Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.outbound.outbound_turns import leaving
from postroom.store.people.audit import Signature, auditing

CHANNEL = "restores"

DOUBTED = (
    "the database was restored, and it may have been sent since the backup; look at the destination, then run "
    "`postroom outbound resolve`"
)

_POSTGRES_PLACE = re.compile(r"server (?P<server>\S+) history (?P<history>[0-9A-F]{8}) database (?P<oid>\d+)")

NoticedBy = Literal["command", "place", "ticks", "sent_mail"]


class DatabasePlace(NamedTuple):
    """Where the database is, as a text that changes when it is copied elsewhere or its server is replaced."""

    text: str
    is_replicated: bool = False
    """Whether every commit waits until a standby has it too."""


class Seen(NamedTuple):
    """The data folder's record of the database. `is_replicated` as in its place, when it was seen."""

    instance_id: UUID
    epoch: int
    ticks: int
    is_replicated: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """The database's record of itself. `noticed_by` says how a restore was just detected."""

    instance_id: UUID
    epoch: int
    ticks: int
    place: str
    alive_at: datetime
    noticed_by: NoticedBy | None = None
    is_replicated: bool = False
    is_promoted: bool = False
    """Whether a standby was just found in place of the server."""

    @property
    def seen(self) -> Seen:
        return Seen(self.instance_id, self.epoch, self.ticks, self.is_replicated)


async def place_of(database: Database) -> DatabasePlace:
    if isinstance(database, SqliteDatabase):
        return DatabasePlace(f"file {os.stat(database.path).st_ino}")
    return await database.run(_postgres_place())


@query
def _postgres_place() -> Script[DatabasePlace]:
    ((oid, history, may_ask, is_replicated),) = yield sql("select_place")
    server = (yield sql("select_server_id"))[0][0] if may_ask else "-"
    return DatabasePlace(f"server {server} history {history} database {oid}", is_replicated)


@query
def load_timeline() -> Script[Timeline | None]:
    return read_first(Timeline, (yield sql("select_timeline")))


@transaction
def observe_timeline(
    fresh_id: UUID,
    place: DatabasePlace,
    seen: Seen | None,
    signed: Signature,
    now: datetime,
    acknowledged: Sequence[UUID] = (),
) -> Script[Timeline]:
    """Record that the database is in use, here and now. A new database gets `fresh_id` as its identity. `acknowledged`
    are receipts that the database must have, if its server was replaced by a standby.
    """
    known = read_first(Timeline, (yield sql("lock_timeline")))
    if known is None:
        return (yield from _first(fresh_id, place, seen, signed, now))
    is_promoted = yield from _is_promoted(known.place, place.text, seen, acknowledged)
    noticed_by = _gone_back(known, known.place if is_promoted else place.text, seen)
    is_promoted = is_promoted and noticed_by is None
    epoch, ticks = known.epoch, known.ticks
    if is_promoted:
        after = {"before": known.place, "now": place.text}
        yield from auditing(signed.under("database.promoted", "database", str(epoch), after=after), now)
    if noticed_by is not None:
        epoch = max(epoch, seen.epoch if seen else 0) + 1
        ticks = max(ticks, seen.ticks if seen else 0)
        yield from _requiring_checks(epoch, noticed_by, known.alive_at, signed, now)
    yield sql("update_timeline", epoch, ticks + 1, place.text, now)
    return Timeline(known.instance_id, epoch, ticks + 1, place.text, now, noticed_by, place.is_replicated, is_promoted)


def _is_promoted(before: str, now: str, seen: Seen | None, acknowledged: Sequence[UUID]) -> Script[bool]:
    """Whether a standby took the server's place, and has all that was acknowledged to us. Without synchronous
    replication nobody can tell what it lacks.
    """
    if seen is None or not seen.is_replicated or not _is_later_history(before, now):
        return False
    ((found,),) = yield sql("count_receipts", list(acknowledged))
    return found == len(acknowledged)


def _is_later_history(before: str, now: str) -> bool:
    """Whether both places are the same server and database, and the second is a later part of its history."""
    old, new = _POSTGRES_PLACE.fullmatch(before), _POSTGRES_PLACE.fullmatch(now)
    if old is None or new is None or (old["server"], old["oid"]) != (new["server"], new["oid"]):
        return False
    return int(new["history"], 16) > int(old["history"], 16)


def _first(
    fresh_id: UUID, place: DatabasePlace, seen: Seen | None, signed: Signature, now: datetime
) -> Script[Timeline]:
    """Identify the database. Without an identity, in a folder that has one, it is a copy from before identities."""
    if seen is None:
        yield sql("insert_timeline", fresh_id, 1, 1, place.text, now)
        return Timeline(fresh_id, 1, 1, place.text, now, None, place.is_replicated)
    epoch, ticks = seen.epoch + 1, seen.ticks + 1
    yield sql("insert_timeline", seen.instance_id, epoch, ticks, place.text, now)
    yield from _requiring_checks(epoch, "ticks", (yield from _last_delivered(now)), signed, now)
    return Timeline(seen.instance_id, epoch, ticks, place.text, now, "ticks", place.is_replicated)


def _gone_back(known: Timeline, place: str, seen: Seen | None) -> NoticedBy | None:
    if known.place != place:
        return "place"
    if seen is None or known.epoch > seen.epoch:
        return None
    if seen.instance_id != known.instance_id or known.epoch < seen.epoch or known.ticks < seen.ticks:
        return "ticks"
    return None


@transaction
def mark_restored(
    fresh_id: UUID, place: DatabasePlace, seen: Seen | None, backup_at: datetime, signed: Signature, now: datetime
) -> Script[Timeline]:
    """Record that `postroom restore` installed a backup: everything after `backup_at` is unknown to this database."""
    known = read_first(Timeline, (yield sql("lock_timeline")))
    instance_id, epoch, ticks, _ = known.seen if known is not None else Seen(fresh_id, 0, 0)
    if seen is not None:
        epoch, ticks = max(epoch, seen.epoch), max(ticks, seen.ticks)
    epoch, ticks = epoch + 1, ticks + 1
    if known is not None:
        yield sql("update_timeline", epoch, ticks, place.text, now)
    else:
        yield sql("insert_timeline", instance_id, epoch, ticks, place.text, now)
    yield from _requiring_checks(epoch, "command", backup_at, signed, now)
    return Timeline(instance_id, epoch, ticks, place.text, now, "command", place.is_replicated)


@transaction
def suspect_restore(signed: Signature, now: datetime) -> Script[Timeline | None]:
    """Record a restore that was not detected otherwise: the mailbox has mail of ours unknown to the database."""
    known = read_first(Timeline, (yield sql("lock_timeline")))
    if known is None:
        return None
    epoch, ticks = known.epoch + 1, known.ticks + 1
    yield from _requiring_checks(epoch, "sent_mail", (yield from _last_delivered(now)), signed, now)
    yield sql("update_timeline", epoch, ticks, known.place, now)
    return Timeline(known.instance_id, epoch, ticks, known.place, now, "sent_mail")


def _last_delivered(now: datetime) -> Script[datetime]:
    """The last event that this copy of the database is sure to have seen."""
    ((delivered, created),) = yield sql("select_last_sign")
    return min(as_time(delivered or created or now), now)


def _requiring_checks(
    epoch: int, noticed_by: NoticedBy, backup_at: datetime, signed: Signature, now: datetime
) -> Script[None]:
    """Part of a transaction: nothing is sent from a mailbox until it has been compared with the database."""
    since = min(backup_at, now)
    yield sql("insert_restore", epoch, noticed_by, since, now)
    yield sql("require_restore_checks", epoch, since, now)
    for (mail_id,) in (yield sql("select_open_smtp_mail")):
        # Nothing can be asked whether it was sent since the backup.
        yield from leaving(as_uuid(mail_id))
        yield sql("doubt_restored_mail", as_uuid(mail_id), DOUBTED, now)
    after = {"epoch": epoch, "noticed_by": noticed_by, "backup_at": since.isoformat()}
    yield from auditing(signed.under("database.restored", "database", str(epoch), after=after), now)
    yield Notify(CHANNEL, "restored")

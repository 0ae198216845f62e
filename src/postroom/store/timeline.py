"""Which installation a database belongs to, and whether it has gone back in time: restored, copied, or rolled back.

`observe_timeline` runs when a process starts and every half minute. It compares three things:

    place    the file or server recorded in the database, with the one it is found in: a different one means
             that it was copied there (`cp`, `pg_restore` into a new database, a server restored to a point in time)
    ticks    a count that grows with every observation, with its copy in the data folder: a database that is behind
             was overwritten by an older one
    epoch    the same, for restores that were detected before

When the database has gone back, the epoch is raised, and every mailbox has to be compared with it (see `restores`).
"""

import os
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.store.audit import Signature, auditing
from postroom.store.engine.codecs import as_time, as_uuid
from postroom.store.engine.database import Database, Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.outbound_turns import leaving

CHANNEL = "restores"

DOUBTED = (
    "the database was restored, and it may have been sent since the backup; look at the destination, then run "
    "`postroom outbound resolve`"
)

NoticedBy = Literal["command", "place", "ticks", "sent_mail"]


class Seen(NamedTuple):
    """The data folder's record of the database."""

    instance_id: UUID
    epoch: int
    ticks: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """The database's record of itself. `noticed_by` says how a restore was just detected."""

    instance_id: UUID
    epoch: int
    ticks: int
    place: str
    alive_at: datetime
    noticed_by: NoticedBy | None = None

    @property
    def seen(self) -> Seen:
        return Seen(self.instance_id, self.epoch, self.ticks)


async def place_of(database: Database) -> str:
    """Where the database is, as a text that changes when it is copied to another place."""
    if isinstance(database, SqliteDatabase):
        return f"file {os.stat(database.path).st_ino}"
    return await database.run(_postgres_place())


@query
def _postgres_place() -> Script[str]:
    ((oid, history, may_ask),) = yield sql("select_place")
    server = (yield sql("select_server_id"))[0][0] if may_ask else "-"
    return f"server {server} history {history} database {oid}"


@query
def load_timeline() -> Script[Timeline | None]:
    return read_first(Timeline, (yield sql("select_timeline")))


@transaction
def observe_timeline(
    fresh_id: UUID, place: str, seen: Seen | None, signed: Signature, now: datetime
) -> Script[Timeline]:
    """Record that the database is in use, here and now. A new database gets `fresh_id` as its identity."""
    known = read_first(Timeline, (yield sql("lock_timeline")))
    if known is None:
        return (yield from _first(fresh_id, place, seen, signed, now))
    noticed_by = _gone_back(known, place, seen)
    epoch, ticks = known.epoch, known.ticks
    if noticed_by is not None:
        epoch = max(epoch, seen.epoch if seen else 0) + 1
        ticks = max(ticks, seen.ticks if seen else 0)
        yield from _requiring_checks(epoch, noticed_by, known.alive_at, signed, now)
    yield sql("update_timeline", epoch, ticks + 1, place, now)
    return Timeline(known.instance_id, epoch, ticks + 1, place, now, noticed_by)


def _first(fresh_id: UUID, place: str, seen: Seen | None, signed: Signature, now: datetime) -> Script[Timeline]:
    """Identify the database. Without an identity, in a folder that has one, it is a copy from before identities."""
    if seen is None:
        yield sql("insert_timeline", fresh_id, 1, 1, place, now)
        return Timeline(fresh_id, 1, 1, place, now)
    epoch, ticks = seen.epoch + 1, seen.ticks + 1
    yield sql("insert_timeline", seen.instance_id, epoch, ticks, place, now)
    yield from _requiring_checks(epoch, "ticks", (yield from _last_delivered(now)), signed, now)
    return Timeline(seen.instance_id, epoch, ticks, place, now, "ticks")


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
    fresh_id: UUID, place: str, seen: Seen | None, backup_at: datetime, signed: Signature, now: datetime
) -> Script[Timeline]:
    """Record that `postroom restore` installed a backup: everything after `backup_at` is unknown to this database."""
    known = read_first(Timeline, (yield sql("lock_timeline")))
    instance_id, epoch, ticks = known.seen if known is not None else Seen(fresh_id, 0, 0)
    if seen is not None:
        epoch, ticks = max(epoch, seen.epoch), max(ticks, seen.ticks)
    epoch, ticks = epoch + 1, ticks + 1
    if known is not None:
        yield sql("update_timeline", epoch, ticks, place, now)
    else:
        yield sql("insert_timeline", instance_id, epoch, ticks, place, now)
    yield from _requiring_checks(epoch, "command", backup_at, signed, now)
    return Timeline(instance_id, epoch, ticks, place, now, "command")


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

"""Everything that tests do with the inbox, on one database and one clock, and a view of its whole content."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import apsw
import asyncpg

from postroom.core.errors import LeaseLost, PostroomError
from postroom.core.queue.queues import Queues
from postroom.intake.buffer import Buffer, Delivery
from postroom.intake.intake import Intake
from postroom.operations.caller import Caller
from postroom.operations.jobs.queues import replay
from postroom.operations.people.audit import signature
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import connect_database
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.intake.acceptance import Accepted
from postroom.store.intake.inbox import LeaseRef
from postroom.store.mail.mail import keep_account
from support.backfills import open_backfill
from support.clocks import ManualClock

OWNER = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{OWNER}"
STATES = ("waiting", "leased", "done", "failed", "coalesced", "auto_acked", "duplicate")
LOOK = """
    SELECT e.id, e.queue, COALESCE(q.tier, e.tier), q.state, x.state, COALESCE(q.attempts, x.attempts),
        COALESCE(q.reason, x.reason), x.linked_to, e.members, e.copy_of
    FROM envelopes e LEFT JOIN inbox_queue q ON q.seq = e.seq LEFT JOIN inbox_ends x ON x.seq = e.seq ORDER BY e.seq
"""


def event(number: object = 1, **parts: dict[str, Any]) -> dict[str, Any]:
    """Something for the queue `gateway`; `parts` are laid over its parts."""
    return _laid_over(
        {
            "schema_version": "ingest.v1",
            "source": {"channel": "webhook", "provider": "webhook", "endpoint_identity": "ci"},
            "event": {"external_event_id": f"event-{number}", "observed_at": "2026-11-15T08:00:00Z"},
            "sender": {"identity": "builder"},
            "payload": {"raw": {"number": str(number)}, "normalized_text": f"event {number}"},
        },
        parts,
    )


def mail(number: object = 1, tier: str = "default", **parts: dict[str, Any]) -> dict[str, Any]:
    """A message for the queue `email`."""
    headers = [["From", "ann@example.org"], ["Subject", f"Subject {number}"]]
    whole = {
        "schema_version": "ingest.v1",
        "source": {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT},
        "event": {"external_event_id": f"mail-{number}", "observed_at": "2026-11-15T08:00:00Z"},
        "sender": {"identity": "ann@example.org"},
        "payload": {"raw": {"headers": headers, "labels": ["INBOX"]}, "normalized_text": f"words {number}"},
        "control": {"policy_tier": tier},
    }
    return _laid_over(whole, parts)


def metadata(whole: dict[str, Any]) -> dict[str, Any]:
    """The same, known by its metadata only."""
    return _laid_over(whole, {"payload": {"raw": None}, "control": {"ingestion_tier": "metadata"}})


def kind(name: str) -> dict[str, Any]:
    return {"kind": name}


def _laid_over(whole: dict[str, Any], parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {**whole, **{name: {**whole.get(name, {}), **part} for name, part in parts.items()}}


class Row(NamedTuple):
    """A message as the tables have it."""

    id: UUID
    queue: str
    tier: str
    state: str
    attempts: int
    reason: str | None
    linked_to: UUID | None
    members: int | None
    copy_of: UUID | None


async def look(database: Database) -> list[Row]:
    """Every message there is, in accepted order; each is in exactly one state."""
    return _rows(await select(database, LOOK))


async def select(database: Database, text: str) -> Sequence[Sequence[Any]]:
    """The rows of a query of the test's own."""
    if isinstance(database, SqliteDatabase):
        connection = apsw.Connection(str(database.path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()
    assert isinstance(database, PostgresDatabase)
    postgres = await asyncpg.connect(database._url, server_settings={"search_path": "postroom"})
    try:
        return [tuple(row) for row in await postgres.fetch(text)]
    finally:
        await postgres.close()


def _rows(found: Iterable[Sequence[Any]]) -> list[Row]:
    rows: list[Row] = []
    for id, queue, tier, live, ended, attempts, reason, linked_to, members, copy_of in found:
        assert (live is None) != (ended is None), f"{id} is {live} and {ended}"
        links = [None if each is None else as_uuid(each) for each in (linked_to, copy_of)]
        rows.append(Row(as_uuid(id), queue, tier, live or ended, attempts, reason, links[0], members, links[1]))
    return rows


def check_books(rows: Sequence[Row], accepted: int) -> None:
    """Nothing has vanished: what was accepted is in one state each, and what ended for another leads there."""
    by_id = {row.id: row for row in rows}
    own = [row for row in rows if row.members is None]
    counts = {state: sum(row.state == state for row in own) for state in STATES}
    assert len(by_id) == len(rows)
    assert sum(counts.values()) == len(own) == accepted, counts
    for row in rows:
        match row.state:
            case "coalesced":
                assert row.linked_to is not None
                assert by_id[row.linked_to].members is not None
            case "duplicate":
                assert row.linked_to is not None
                assert by_id[row.linked_to].members is None
                assert by_id[row.linked_to].state != "duplicate"
            case _:
                assert row.linked_to is None
        if row.members is not None:
            assert row.members == sum(each.linked_to == row.id for each in rows)


def refs(deliveries: Iterable[Delivery]) -> list[LeaseRef]:
    return [LeaseRef(each.message_id, each.lease_token) for each in deliveries]


class InboxSetup:
    """Intake and buffer on one clock. `restart` puts new ones in their place, as after a crash."""

    def __init__(self, database: Database, clock: ManualClock, queues: Queues | None = None) -> None:
        self.database = database
        self.clock = clock
        self.queues = queues or Queues()
        self._own: Database | None = None
        self._begin()

    def _begin(self) -> None:
        self.intake = Intake(self.database, None, self.clock, queues=self.queues)
        self.buffer = Buffer(self.database, self.queues, self.clock)

    async def open_account(self) -> None:
        """Mail is accepted only for an account that there is."""
        await self.database.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, self.clock()))

    async def open_backfill(self) -> None:
        """An active backfill, which mail may name."""
        await open_backfill(self.database, ENDPOINT, self.clock())

    async def restart(self, queues: Queues | None = None) -> None:
        await self.close()
        await self.database.close()
        self.database = self._own = reopened(self.database)
        self.queues = queues or self.queues
        self._begin()

    async def close(self) -> None:
        """Closes the database if it was opened here."""
        if self._own is not None:
            await self._own.close()

    async def ingest(self, *envelopes: dict[str, Any]) -> list[Accepted]:
        """One after another."""
        return [await self.intake.ingest(each) for each in envelopes]

    async def batch(self, *envelopes: object) -> list[Accepted | PostroomError]:
        return await self.intake.ingest_batch(envelopes)

    async def next(self, most: int = 1, queue: str = "gateway") -> list[Delivery]:
        """What is leased, once all that is due has been swept."""
        await self.buffer.sweep()
        return await self.buffer.next(queue, most)

    async def next_ids(self, most: int = 100, queue: str = "gateway") -> list[UUID]:
        return [each.message_id for each in await self.next(most, queue)]

    async def replay(self, queue: str, **which: Any) -> list[UUID]:
        return await replay(Caller(self.database, signature("cli", "admin"), self.clock), self.queues, queue, **which)

    async def ack(self, deliveries: Iterable[Delivery]) -> list[LeaseLost | None]:
        return await self.buffer.ack(refs(deliveries))

    async def nack(self, deliveries: Iterable[Delivery], reason: str = "not now") -> list[LeaseLost | None]:
        return await self.buffer.nack(refs(deliveries), reason)

    async def look(self) -> list[Row]:
        return await look(self.database)

    async def states(self) -> list[str]:
        """The state of each message, in accepted order."""
        return [row.state for row in await self.look()]


def reopened(database: Database) -> Database:
    """The same database, opened once more."""
    if isinstance(database, SqliteDatabase):
        return connect_database(database.path.parent)
    assert isinstance(database, PostgresDatabase)
    return PostgresDatabase(database._url)

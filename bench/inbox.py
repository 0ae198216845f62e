"""Postroom's side of the queue claims: leases and acks in full batches, over a backlog of any length.

The backlog is laid straight into the tables: a million messages through the intake would take longer than all the
measurements. What is measured goes through the buffer, as it does for every consumer.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg

from postroom.core.queue.envelope import envelope_text, parse_envelope
from postroom.core.queue.queues import EMAIL
from postroom.intake.buffer import Buffer
from postroom.store.engine.codecs import json_text
from postroom.store.engine.database import Database
from postroom.store.engine.sqlite_connection import connect
from postroom.store.intake.history import count_states
from postroom.store.intake.inbox import LeaseRef
from postroom.system.wall_clock import wall_clock

from .messages import IDENTITY, mail
from .order import Order, Outcome, Verb, VerbFunction
from .ours import opened

FILL_CHUNK = 100_000
TIERS = ("high_priority", "interactive", "default")
NUMBER = "9999999999"
_COLUMNS = """(id, queue, tier, channel, provider, endpoint_identity, external_event_id, sender, policy_tier,
    ingestion_tier, envelope_json, observed_at, accepted_at)"""
_POSTGRES = (
    f"""INSERT INTO postroom.envelopes {_COLUMNS}
    SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'email', tier, 'email', 'gmail', $5,
        'm' || n, 'ada@example.com', tier, 'full', replace(($4::text[])[n % 3 + 1], '{NUMBER}', n::text)::json, $6, $6
    FROM generate_series($1::bigint, $2::bigint) AS n, LATERAL (SELECT ($3::text[])[n % 3 + 1]) AS t (tier)""",
    """INSERT INTO postroom.inbox_queue (seq, id, queue, tier, state, accepted_at)
    SELECT seq, id, queue, tier, 'waiting', accepted_at FROM postroom.envelopes WHERE seq > $1""",
)
_SQLITE = (
    f"""INSERT INTO envelopes {_COLUMNS}
    WITH RECURSIVE numbers (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?2)
    SELECT printf('01900000-0000-7000-8000-%012x', n), 'email', ?3 ->> (n % 3), 'email', 'gmail', ?5,
        'm' || n, 'ada@example.com', ?3 ->> (n % 3), 'full', replace(?4 ->> (n % 3), '{NUMBER}', n), ?6, ?6
    FROM numbers""",
    """INSERT INTO inbox_queue (seq, id, queue, tier, state, accepted_at)
    SELECT seq, id, queue, tier, 'waiting', accepted_at FROM envelopes WHERE seq > ?1""",
)


async def fill_inbox(order: Order) -> Outcome:
    """Lays `count` waiting messages into the queue `email`, of each of its tiers in turn. Not measured."""
    texts = [envelope_text(parse_envelope(mail(NUMBER, tier))) for tier in TIERS]
    if order.target.database == "sqlite":
        _fill_sqlite(order.target.address, order.count, texts)
    else:
        await _fill_postgres(order.target.address, order.count, texts)
    return Outcome()


async def _fill_postgres(url: str, count: int, texts: list[str]) -> None:
    connection = await asyncpg.connect(url)
    last = int(await connection.fetchval("SELECT COALESCE(max(seq), 0) FROM postroom.envelopes"))
    for first, end in _chunks(last, count):
        async with connection.transaction():
            await connection.execute(_POSTGRES[0], first, end, list(TIERS), texts, IDENTITY, wall_clock())
            await connection.execute(_POSTGRES[1], first - 1)
    await connection.close()


def _fill_sqlite(path: str, count: int, texts: list[str]) -> None:
    connection = connect(Path(path))
    last = int(connection.execute("SELECT COALESCE(max(seq), 0) FROM envelopes").fetchall()[0][0])
    for first, end in _chunks(last, count):
        values = (first, end, json_text(TIERS), json_text(texts), IDENTITY, wall_clock())
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_SQLITE[0], values)
        connection.execute(_SQLITE[1], (first - 1,))
        connection.execute("COMMIT")
    connection.close()


def _chunks(last: int, count: int) -> Iterator[tuple[int, int]]:
    for first in range(last + 1, last + count + 1, FILL_CHUNK):
        yield first, min(last + count, first + FILL_CHUNK - 1)


async def _lease_and_ack(buffer: Buffer, batch: int) -> int:
    deliveries = await buffer.next(EMAIL.queue, batch)
    if not deliveries:
        return 0
    outcomes = await buffer.ack([LeaseRef(each.message_id, each.lease_token) for each in deliveries])
    return outcomes.count(None)


async def lease_cost(order: Order) -> Outcome:
    """Leases and acks `batch` messages, `count` times, after one time as warm-up."""
    latencies: list[float] = []
    handled = 0
    async with opened(order.target) as database:
        buffer = Buffer(database)
        await _lease_and_ack(buffer, order.batch)
        for _ in range(order.count):
            started = time.perf_counter()
            handled += await _lease_and_ack(buffer, order.batch)
            latencies.append(time.perf_counter() - started)
    return Outcome(seconds=sum(latencies), handled=handled, latencies=latencies)


async def consume(order: Order) -> Outcome:
    """`producers` consumers take and ack all there is, a batch at a time."""
    latencies: list[float] = []
    handled = 0
    async with opened(order.target) as database:
        buffer = Buffer(database)

        async def consumer() -> None:
            nonlocal handled
            while handled < order.count:
                started = time.perf_counter()
                done = await _lease_and_ack(buffer, order.batch)
                if not done:
                    return
                handled += done
                latencies.append(time.perf_counter() - started)

        started = time.perf_counter()
        await asyncio.gather(*(consumer() for _ in range(order.producers)))
        seconds = time.perf_counter() - started
        finished = await _count(database, "done")
    return Outcome(seconds=seconds, handled=handled, finished=finished, latencies=latencies)


async def count_inbox(order: Order) -> Outcome:
    """How many messages wait, as the database has them."""
    async with opened(order.target) as database:
        return Outcome(finished=await _count(database, "waiting"))


async def _count(database: Database, state: str) -> int:
    found = [await database.run(count_states(queue)) for queue in ("email", "gateway")]
    return sum(count for states in found for (_, its), count in states.items() if its == state)


VERBS: dict[Verb, VerbFunction] = {
    "fill_inbox": fill_inbox,
    "lease_cost": lease_cost,
    "consume": consume,
    "count_inbox": count_inbox,
}

"""The queue claims in bare SQL on PostgreSQL: the same rows of the same tables, moved by two statements a batch.

One statement leases the oldest of the highest tier there is, with their envelopes, the other ends them; each is a
transaction. There are no streaks, guards, counts or receipts, and nobody is woken.
"""

import asyncio
import time
import uuid

import asyncpg

from ..order import Order, Outcome

TIERS = ("high_priority", "interactive", "default")
LEASE = """
WITH taken AS (
    UPDATE inbox_queue SET state = 'leased', lease_token = $1, lease_until = now() + interval '60 s',
        attempts = attempts + 1
    WHERE seq = ANY (ARRAY(
        SELECT seq FROM inbox_queue WHERE state = 'waiting' AND queue = 'email' AND tier = $2
        ORDER BY seq LIMIT $3 FOR UPDATE SKIP LOCKED))
    RETURNING seq, attempts
)
SELECT t.seq, t.attempts, e.id, e.envelope_json FROM taken t JOIN envelopes e ON e.seq = t.seq
"""
END = """
WITH done AS (
    DELETE FROM inbox_queue WHERE seq = ANY ($1::bigint[]) AND state = 'leased' AND lease_token = $2
    RETURNING seq, attempts
)
INSERT INTO inbox_ends (seq, state, attempts, ended_at) SELECT seq, 'done', attempts, now() FROM done
"""


async def consume(order: Order) -> Outcome:
    """`producers` connections, each on its own."""
    connections = [
        await asyncpg.connect(order.target.address, server_settings={"search_path": "postroom"})
        for _ in range(order.producers)
    ]
    started = time.perf_counter()
    handled = await asyncio.gather(*(_consume(connection, order.batch) for connection in connections))
    seconds = time.perf_counter() - started
    finished = await connections[0].fetchval("SELECT count(*) FROM inbox_ends WHERE state = 'done'")
    for connection in connections:
        await connection.close()
    return Outcome(seconds=seconds, handled=sum(handled), finished=finished)


async def _consume(connection: asyncpg.Connection, batch: int) -> int:
    handled = 0
    for tier in TIERS:
        token = uuid.uuid4()
        while leased := await connection.fetch(LEASE, token, tier, batch):
            await connection.execute(END, [row[0] for row in leased], token)
            handled += len(leased)
    return handled

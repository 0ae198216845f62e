"""Bare PostgreSQL: a `SKIP LOCKED` lease-and-finish loop, and a group-commit enqueue probe.

The drain leases 1000 rows from the head of the queue in one transaction and completes them in a second one, on one
connection: what a batching engine cannot do without. It is also the peer that scans from the head when a long
transaction holds back vacuum.
"""

import asyncio
import time
import uuid
from datetime import UTC, datetime

import asyncpg
import orjson

from ..order import Order, Outcome, Verb, VerbFunction, produce

BATCH = 1000
FILL_CHUNK = 100_000

SCHEMA = """
CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    type text NOT NULL,
    payload jsonb NOT NULL,
    state text NOT NULL DEFAULT 'queued',
    attempts int NOT NULL DEFAULT 0,
    lease_token uuid,
    lease_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
CREATE INDEX jobs_queued ON jobs (id) WHERE state = 'queued';
"""
# The job row and the indexes as the requirements write them: an id of its own, JSON, two times.
PROBE_SCHEMA = """
CREATE TABLE probe_jobs (
    id uuid PRIMARY KEY,
    type text NOT NULL,
    payload_json json NOT NULL,
    priority integer NOT NULL DEFAULT 0,
    state text NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'canceled')),
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 5,
    not_before timestamptz,
    idempotency_key text,
    last_error text,
    heartbeat_at timestamptz,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX probe_jobs_state_idx ON probe_jobs (state, priority, not_before);
CREATE UNIQUE INDEX probe_jobs_idem_idx ON probe_jobs (idempotency_key);
"""
FILL = "INSERT INTO jobs (type, payload) SELECT 'noop', jsonb_build_object('n', n) FROM generate_series(1, $1::int) n"
LEASE = """
UPDATE jobs SET state = 'running', attempts = attempts + 1, lease_token = $1, lease_until = now() + interval '60 s'
WHERE id = ANY (ARRAY(
    SELECT id FROM jobs WHERE state = 'queued' ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING id, type, payload, attempts
"""
FINISH = """
UPDATE jobs SET state = 'completed', finished_at = now(), lease_token = NULL, lease_until = NULL
WHERE id = ANY ($1::bigint[]) AND state = 'running' AND lease_token = $2
"""
INSERT = """
INSERT INTO probe_jobs (id, type, payload_json, state, created_at, updated_at)
SELECT id, type, payload, 'queued', at, at
FROM unnest($1::uuid[], $2::text[], $3::json[], $4::timestamptz[]) AS row (id, type, payload, at)
"""


async def prepare(order: Order) -> Outcome:
    connection = await asyncpg.connect(order.target.address)
    await connection.execute(SCHEMA)
    await connection.execute(PROBE_SCHEMA)
    await connection.close()
    return Outcome()


async def fill(order: Order) -> Outcome:
    connection = await asyncpg.connect(order.target.address)
    for start in range(0, order.count, FILL_CHUNK):
        await connection.execute(FILL, min(FILL_CHUNK, order.count - start))
    await connection.close()
    return Outcome()


async def drain(order: Order) -> Outcome:
    connection = await asyncpg.connect(order.target.address)
    token = await connection.fetchval("SELECT gen_random_uuid()")
    handled = 0
    started = time.perf_counter()
    while leased := await connection.fetch(LEASE, token, BATCH):
        await connection.execute(FINISH, [row[0] for row in leased], token)
        handled += len(leased)
    seconds = time.perf_counter() - started
    finished = await connection.fetchval("SELECT count(*) FROM jobs WHERE state = 'completed'")
    await connection.close()
    return Outcome(seconds=seconds, handled=handled, finished=finished)


Row = tuple[uuid.UUID, str, str, datetime]


class GroupCommit:
    """Rows of concurrent callers go in with one statement; each caller goes on after the commit that holds its row."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._waiting: list[tuple[Row, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()

    async def append(self, payload: dict[str, int]) -> uuid.UUID:
        """A job as a caller wants it: given an object, told the id."""
        id = uuid.uuid4()
        durable = asyncio.get_running_loop().create_future()
        self._waiting.append(((id, "noop", orjson.dumps(payload).decode(), datetime.now(UTC)), durable))
        self._wake.set()
        await durable
        return id

    async def flush_forever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            group, self._waiting = self._waiting, []
            columns = zip(*(row for row, _ in group), strict=True)
            await self._connection.execute(INSERT, *(list(column) for column in columns))
            for _, durable in group:
                durable.set_result(None)


async def enqueue(order: Order) -> Outcome:
    connection = await asyncpg.connect(order.target.address)
    commit = GroupCommit(connection)
    flusher = asyncio.create_task(commit.flush_forever())
    seconds, latencies = await produce(
        lambda number: commit.append({"n": number}), producers=order.producers, total=order.count
    )
    flusher.cancel()
    await asyncio.wait([flusher])
    finished = await connection.fetchval("SELECT count(*) FROM probe_jobs")
    await connection.close()
    return Outcome(seconds=seconds, handled=len(latencies), finished=finished, latencies=latencies)


VERBS: dict[Verb, VerbFunction] = {"prepare": prepare, "fill": fill, "drain": drain, "enqueue": enqueue}

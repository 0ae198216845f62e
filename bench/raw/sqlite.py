"""Bare SQLite: a group-commit enqueue probe. One writer thread, WAL, `synchronous=FULL`, one commit per group."""

import asyncio
import queue
import threading
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

import apsw
import orjson

from ..order import Order, Outcome, Verb, VerbFunction, produce

# The job row and the indexes as the requirements write them: an id of its own, JSON, two times.
SCHEMA = """
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'failed', 'canceled')),
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL DEFAULT 5,
    not_before TEXT,
    idempotency_key TEXT,
    last_error TEXT,
    heartbeat_at TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_state_idx ON jobs (state, priority, not_before);
CREATE UNIQUE INDEX jobs_idem_idx ON jobs (idempotency_key);
"""
INSERT = "INSERT INTO jobs (id, type, payload_json, state, created_at, updated_at) VALUES (?, ?, ?, 'queued', ?, ?)"

Row = tuple[str, str, str, str, str]
Waiting = tuple[Row, "asyncio.Future[None]"]


def connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA synchronous = full")
    return connection


async def prepare(order: Order) -> Outcome:
    connection = connect(order.target.address)
    connection.execute(SCHEMA)
    connection.close()
    return Outcome()


class GroupCommit:
    """Rows of concurrent callers share one transaction; each caller goes on after the commit that holds its row."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._writer = threading.Thread(target=self._write_groups, name="writer")
        self._writer.start()

    async def append(self, payload: Mapping[str, object]) -> str:
        """A job as a caller wants it: given an object, told the id."""
        id, now = str(uuid.uuid4()), datetime.now(UTC).isoformat()
        durable = self._loop.create_future()
        self._waiting.put(((id, "noop", orjson.dumps(payload).decode(), now, now), durable))
        await durable
        return id

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._writer.join)

    def _write_groups(self) -> None:
        connection = connect(self._path)
        cursor = connection.cursor()
        while group := self._next_group():
            cursor.execute("BEGIN IMMEDIATE")
            cursor.executemany(INSERT, [row for row, _ in group])
            cursor.execute("COMMIT")
            self._loop.call_soon_threadsafe(_acknowledge, group)
        connection.close()

    def _next_group(self) -> list[Waiting]:
        """Everything that waits now, at least one; nothing once closed."""
        first = self._waiting.get()
        group: list[Waiting] = []
        while first is not None:
            group.append(first)
            try:
                first = self._waiting.get_nowait()
            except queue.Empty:
                break
        return group


def _acknowledge(group: list[Waiting]) -> None:
    for _, durable in group:
        durable.set_result(None)


async def enqueue(order: Order) -> Outcome:
    commit = GroupCommit(order.target.address)
    seconds, latencies = await produce(
        lambda number: commit.append({"n": number}), producers=order.producers, total=order.count
    )
    await commit.close()
    connection = connect(order.target.address)
    finished = int(connection.execute("SELECT count(*) FROM jobs").fetchall()[0][0])
    connection.close()
    return Outcome(seconds=seconds, handled=len(latencies), finished=finished, latencies=latencies)


VERBS: dict[Verb, VerbFunction] = {"prepare": prepare, "enqueue": enqueue}

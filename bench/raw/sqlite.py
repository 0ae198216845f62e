"""Bare SQLite: a group-commit enqueue probe. One writer thread, WAL, `synchronous=FULL`, one commit per group."""

import asyncio
import queue
import threading

import apsw

from ..order import Order, Outcome, Verb, VerbFunction, produce

SCHEMA = """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'queued',
    attempts INTEGER NOT NULL DEFAULT 0,
    lease_token TEXT,
    lease_until TEXT,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
    finished_at TEXT
) STRICT;
CREATE INDEX jobs_queued ON jobs (id) WHERE state = 'queued';
"""
INSERT = "INSERT INTO jobs (type, payload) VALUES ('noop', ?)"

Waiting = tuple[str, "asyncio.Future[None]"]


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

    async def append(self, payload: str) -> None:
        durable = self._loop.create_future()
        self._waiting.put((payload, durable))
        await durable

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._writer.join)

    def _write_groups(self) -> None:
        connection = connect(self._path)
        cursor = connection.cursor()
        while group := self._next_group():
            cursor.execute("BEGIN IMMEDIATE")
            cursor.executemany(INSERT, [(payload,) for payload, _ in group])
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
        lambda number: commit.append(f'{{"n": {number}}}'), producers=order.producers, total=order.count
    )
    await commit.close()
    connection = connect(order.target.address)
    finished = int(connection.execute("SELECT count(*) FROM jobs").fetchall()[0][0])
    connection.close()
    return Outcome(seconds=seconds, handled=len(latencies), finished=finished, latencies=latencies)


VERBS: dict[Verb, VerbFunction] = {"prepare": prepare, "enqueue": enqueue}

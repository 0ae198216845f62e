"""The queue claims in bare SQL on SQLite: the same rows of the same tables, moved by two transactions a batch.

One connection, WAL, `synchronous=FULL`: SQLite has one writer, so more consumers would only wait for each other.
"""

import time
import uuid
from datetime import UTC, datetime, timedelta

import orjson

from ..order import Order, Outcome
from .sqlite import connect

TIERS = ("high_priority", "interactive", "default")
HEADS = """
SELECT q.seq, e.id, e.envelope_json FROM inbox_queue q JOIN envelopes e ON e.seq = q.seq
WHERE q.state = 'waiting' AND q.queue = 'email' AND q.tier = ? ORDER BY q.seq LIMIT ?
"""
LEASE = """
UPDATE inbox_queue SET state = 'leased', lease_token = ?, lease_until = ?, attempts = attempts + 1
WHERE seq IN (SELECT value FROM json_each(?))
"""
END = """
INSERT INTO inbox_ends (seq, state, attempts, ended_at)
SELECT seq, 'done', attempts, ? FROM inbox_queue
WHERE seq IN (SELECT value FROM json_each(?)) AND state = 'leased' AND lease_token = ?
"""
LEAVE = "DELETE FROM inbox_queue WHERE seq IN (SELECT value FROM json_each(?)) AND state = 'leased' AND lease_token = ?"


async def consume(order: Order) -> Outcome:
    connection = connect(order.target.address)
    cursor = connection.cursor()
    handled = 0
    started = time.perf_counter()
    for tier in TIERS:
        while True:
            token, now = str(uuid.uuid4()), datetime.now(UTC)
            cursor.execute("BEGIN IMMEDIATE")
            rows = cursor.execute(HEADS, (tier, order.batch)).fetchall()
            seqs = orjson.dumps([row[0] for row in rows]).decode()
            cursor.execute(LEASE, (token, (now + timedelta(seconds=60)).isoformat(), seqs))
            cursor.execute("COMMIT")
            if not rows:
                break
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute(END, (datetime.now(UTC).isoformat(), seqs, token))
            cursor.execute(LEAVE, (seqs, token))
            cursor.execute("COMMIT")
            handled += len(rows)
    seconds = time.perf_counter() - started
    finished = int(cursor.execute("SELECT count(*) FROM inbox_ends WHERE state = 'done'").fetchall()[0][0])
    connection.close()
    return Outcome(seconds=seconds, handled=handled, finished=finished)

"""The process in which one side chooses outgoing mail: `python -m bench.choosing SIDE DATABASE ADDRESS NUMBER …`.

    fill       lays waiting mails of many tenants into the tables of all sides; not measured
    postroom   lane, tenant, domain and sender are fair; what was chosen leaves the queue
    by_hand    reads, writes and deletes as many rows of the same tables as that needs, by fixed statements, and chooses
               nothing: what any program would need for turns that are kept in rows
    leasing    the same, and the whole lease: states of mail and recipients, and what a dispatcher must know of each
    flat       a fair key that was written with the mail: the smallest keys go next
    window     the fair place of every mail, worked out anew for each batch by window functions

Each batch is a durable transaction. What was taken is put back afterwards, so that the next round finds as much.
"""

import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

import asyncpg

from postroom.compose.tasks import settle_memory
from postroom.core.outbound.fair_nodes import InFlight, Picked
from postroom.core.outbound.lanes import LanePolicy
from postroom.store.engine.codecs import array_text, as_uuid
from postroom.store.engine.database import Script, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import migrate
from postroom.store.engine.sqlite_connection import connect
from postroom.store.engine.statements import blocks
from postroom.store.mail.mail import keep_account
from postroom.store.outbound.outbound import Capacity, lease_mail
from postroom.store.outbound.outbound_turns import ReadyMail, TurnPlace, choosing, joining, keeping
from postroom.system.wall_clock import wall_clock

from .order import Outcome, Target, answer, run
from .ours import opened

BATCH = 100
SENDERS = 2
"""Each tenant has one domain with as many senders, in one of three lanes."""
POLICY = LanePolicy.of()
LANES = "CASE {tenant} % 3 WHEN 0 THEN 'high' WHEN 1 THEN 'normal' ELSE 'low' END"
TENANT = f"((n - 1) / {SENDERS} + 1)"
SENDER_OF_MAIL = f"((n - 1) % (:tenants * {SENDERS}) + 1)"
TENANT_OF_MAIL = f"(({SENDER_OF_MAIL} - 1) / {SENDERS} + 1)"
BUSY_LANES = ("high", "normal", "low")
Rows = Sequence[tuple[Any, ...]]
MAIL_ID = {
    "postgres": "('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid",
    "sqlite": "printf('01900000-0000-7000-8000-%012x', n)",
}
FILL = (
    "INSERT INTO tenants (id, name, created_at, updated_at) {system} SELECT n, 't' || n, :now, :now FROM {tenants}",
    "INSERT INTO sender_domains (id, tenant_id, name, created_at) {system} SELECT n, n, 'd' || n, :now FROM {tenants}",
    f"""INSERT INTO senders (id, domain_id, username, addresses_json, plan, queue_lane, created_at, updated_at)
    {{system}}
    SELECT n, {TENANT}, 'u' || n, '[]', 'standard', {LANES.format(tenant=TENANT)}, :now, :now FROM {{senders}}""",
    f"""INSERT INTO outbound_mail (id, seq, tenant, domain, username, message_class, envelope_sender, kind, subject,
        account_id, state, not_before, asked_at, admitted_at, updated_at, sender_id, ready)
    SELECT {{mail_id}}, n, 't', 'd', 'u', 'transactional', 'e', 'submitted', 's', :account,
        'queued', :now, :now, :now, :now, {SENDER_OF_MAIL}, {{true}} FROM {{mails}}""",
    """INSERT INTO outbound_recipients (mail_id, position, address, state, not_before, updated_at)
    SELECT {mail_id}, 0, 'r@example.com', 'queued', :now, :now FROM {mails}""",
    f"""INSERT INTO outbound_ready (seq, mail_id, turn_id, retry, bulk, cost)
    SELECT n, {{mail_id}}, {SENDER_OF_MAIL}, {{false}}, {{false}}, 1 FROM {{mails}}""",
    f"""INSERT INTO outbound_turns (lane, level, node_id, parent_id, waiting, busy)
    SELECT {LANES.format(tenant="n")}, 'tenant', n, 0, 1, {{true}} FROM {{tenants}}""",
    f"""INSERT INTO outbound_turns (lane, level, node_id, parent_id, waiting, busy)
    SELECT {LANES.format(tenant="n")}, 'domain', n, n, {SENDERS}, {{true}} FROM {{tenants}}""",
    f"""INSERT INTO outbound_turns (lane, level, node_id, parent_id, waiting, busy)
    SELECT {LANES.format(tenant=TENANT)}, 'sender', n, {TENANT}, :count / (:tenants * {SENDERS}), {{true}}
    FROM {{senders}}""",
    "CREATE TABLE flat_queue (key bigint NOT NULL, seq bigint NOT NULL, PRIMARY KEY (key, seq)) {without_rowid}",
    f"INSERT INTO flat_queue SELECT (n - 1) / (:tenants * {SENDERS}), n FROM {{mails}}",
    """CREATE TABLE window_queue (seq bigint PRIMARY KEY, tenant bigint NOT NULL, domain bigint NOT NULL,
        sender bigint NOT NULL)""",
    f"""INSERT INTO window_queue SELECT n, {TENANT_OF_MAIL}, {TENANT_OF_MAIL}, {SENDER_OF_MAIL} FROM {{mails}}""",
)
FLAT = """DELETE FROM flat_queue WHERE (key, seq) IN (SELECT key, seq FROM flat_queue ORDER BY key, seq LIMIT 100)
    RETURNING key, seq"""
WINDOW = """WITH by_sender AS (
        SELECT seq, tenant, domain, row_number() OVER (PARTITION BY sender ORDER BY seq) AS place FROM window_queue
    ), by_domain AS (
        SELECT seq, tenant, row_number() OVER (PARTITION BY domain ORDER BY place, seq) AS place FROM by_sender
    ), by_tenant AS (
        SELECT seq, row_number() OVER (PARTITION BY tenant ORDER BY place, seq) AS place FROM by_domain
    )
    DELETE FROM window_queue WHERE seq IN (SELECT seq FROM by_tenant ORDER BY place, seq LIMIT 100)
    RETURNING seq, tenant, domain, sender"""


class Raw(Protocol):
    """A bare connection to either database."""

    async def execute(self, text: str, values: Mapping[str, Any]) -> list[Any]: ...

    async def many(self, name: str, *lists: Rows) -> list[Any]:
        """A statement of the product for many rows: those that have moved, and those that have only changed."""
        ...


class RawSqlite:
    def __init__(self, address: str) -> None:
        self._connection = connect(Path(address))

    async def execute(self, text: str, values: Mapping[str, Any]) -> list[Any]:
        bindings: Any = values
        return self._connection.execute(text, bindings).fetchall()

    async def many(self, name: str, *lists: Rows) -> list[Any]:
        found: list[Any] = []
        for part, rows in zip(blocks("sqlite")[name], lists, strict=True):
            found += self._connection.cursor().executemany(part.text, [part.arguments(row) for row in rows]).fetchall()
        return found


class RawPostgres:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def execute(self, text: str, values: Mapping[str, Any]) -> list[Any]:
        used = [name for name in values if f":{name}" in text]
        for place, name in enumerate(used):
            text = text.replace(f":{name}", f"${place + 1}{_type_of(values[name])}")
        return await self._connection.fetch(text, *(values[name] for name in used))

    async def many(self, name: str, *lists: Rows) -> list[Any]:
        (part,) = blocks("postgres")[name]
        return await self._connection.fetch(part.text, *map(array_text, zip(*chain(*lists), strict=True)))


def _type_of(value: object) -> str:
    match value:
        case int():
            return "::bigint"
        case datetime():
            return "::timestamptz"
        case _:
            return "::uuid"


async def _raw(target: Target) -> Raw:
    if target.database == "sqlite":
        return RawSqlite(target.address)
    connection = await asyncpg.connect(target.address, server_settings={"search_path": "postroom,public"})
    return RawPostgres(connection)


async def fill(target: Target, tenants: int, count: int) -> Outcome:
    async with opened(target) as database:
        await migrate(database)
        account = await database.run(keep_account(new_id(), "gmail", "gmail:user:m@x", "m@x.example", wall_clock()))
    postgres, raw = target.database == "postgres", await _raw(target)
    words = {
        "system": "OVERRIDING SYSTEM VALUE" if postgres else "",
        "without_rowid": "" if postgres else "WITHOUT ROWID",
        "mail_id": MAIL_ID[target.database],
        "true": "true" if postgres else "1",
        "false": "false" if postgres else "0",
        **{
            name: f"generate_series(1, {most}) AS n" if postgres else _numbers(most)
            for name, most in {"tenants": tenants, "senders": tenants * SENDERS, "mails": count}.items()
        },
    }
    now = wall_clock() if postgres else wall_clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    values = {
        "now": now,
        "tenants": tenants,
        "count": count,
        "account": account.id if postgres else str(account.id),
    }
    for text in FILL:
        await raw.execute(text.format(**words), values)
    return Outcome()


def _numbers(most: int) -> str:
    return f"(WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {most}) SELECT n FROM s)"


@transaction
def _choose(most: int) -> Script[list[Picked]]:
    chosen = yield from choosing(POLICY, InFlight(10**9), most)
    seqs = ",".join(str(picked.mail.seq) for picked in chosen.picks)
    yield Text(f"DELETE FROM outbound_ready WHERE seq IN ({seqs})")
    yield from keeping(chosen)
    return chosen.picks


@transaction
def _put_back(picks: Iterable[Picked]) -> Script[None]:
    mails: list[tuple[TurnPlace, ReadyMail]] = []
    for mail, lane, tenant, domain, sender in picks:
        id = as_uuid(f"01900000-0000-7000-8000-{mail.seq:012x}")
        mails.append((TurnPlace(lane, (tenant, domain, sender)), ReadyMail(id, mail.seq, mail.bulk, int(mail.cost))))
    yield from joining(mails)


async def postroom(target: Target, batches: int) -> Outcome:
    taken: list[Picked] = []
    settle_memory()  # as the product does before it serves
    async with opened(target) as database:

        async def choose() -> int:
            picks = await database.run(_choose(BATCH))
            taken.extend(picks)
            return len(picks)

        outcome = await _timed(choose, batches)
        await database.run(_put_back(taken))
    return replace(outcome, finished=len({picked.mail.seq for picked in taken}))


async def leasing(target: Target, batches: int) -> Outcome:
    """What was leased is not put back: it is measured last."""
    handled: set[object] = set()
    settle_memory()
    async with opened(target) as database:

        async def lease() -> int:
            now = wall_clock()
            capacity = Capacity(InFlight(10**9), POLICY)
            leased = await database.run(lease_mail(new_id(), BATCH, now, now + timedelta(hours=1), capacity))
            handled.update(each.id for each in leased)
            return len(leased)

        outcome = await _timed(lease, batches)
    return replace(outcome, finished=len(handled))


async def by_hand(target: Target, batches: int) -> Outcome:
    raw = await _raw(target)
    seqs: list[int] = []

    async def choose() -> int:
        await raw.execute("BEGIN" if target.database == "postgres" else "BEGIN IMMEDIATE", {})
        await raw.execute(blocks(target.database)["lock_turns"][0].text, {})
        tenants = await raw.many("select_first_tenants", [(n, lane, BATCH) for n, lane in enumerate(BUSY_LANES)])
        tenants.sort(key=itemgetter(2, 1))
        del tenants[BATCH:]
        names = [BUSY_LANES[row[0]] for row in tenants]
        wanted = [(n, lane, row[1]) for n, (lane, row) in enumerate(zip(names, tenants, strict=True))]
        ways = await raw.many("select_first_mails", wanted)
        each = -(-BATCH // len(ways))
        mails = await raw.many("select_first_ready", [(n, row[6], False, each) for n, row in enumerate(ways)])
        taken = [row[1] for row in mails[:BATCH]]
        await raw.execute(f"DELETE FROM outbound_ready WHERE seq IN ({','.join(map(str, taken))})", {})
        senders = [(row[7] + 1, row[8], 0, names[row[0]], "sender", row[6]) for row in ways]
        domains = [(row[2], row[3] + 1, 0, names[row[0]], "domain", row[1]) for row in ways]
        moved = [(row[2] + 1, row[3] + 1, 0, lane, "tenant", row[1]) for lane, row in zip(names, tenants, strict=True)]
        await raw.many("keep_turns", senders, [])
        await raw.many("keep_turns", moved, domains)
        await raw.execute("COMMIT", {})
        seqs.extend(taken)
        return len(taken)

    outcome = await _timed(choose, batches)
    back = f"SELECT seq, id, sender_id, false, false, 1 FROM outbound_mail WHERE seq IN ({','.join(map(str, seqs))})"
    await raw.execute(f"INSERT INTO outbound_ready (seq, mail_id, turn_id, retry, bulk, cost) {back}", {})
    return replace(outcome, finished=len(set(seqs)))


async def flat(target: Target, batches: int) -> Outcome:
    return await _by_hand(target, batches, FLAT, "INSERT INTO flat_queue (key, seq) VALUES (:key, :seq)")


async def window(target: Target, batches: int) -> Outcome:
    back = "INSERT INTO window_queue (seq, tenant, domain, sender) VALUES (:seq, :tenant, :domain, :sender)"
    return await _by_hand(target, batches, WINDOW, back)


async def _by_hand(target: Target, batches: int, take: str, back: str) -> Outcome:
    raw = await _raw(target)
    columns = [name for name in ("key", "seq", "tenant", "domain", "sender") if f":{name}" in back]
    taken: list[Any] = []

    async def choose() -> int:
        rows = await raw.execute(take, {})
        taken.extend(rows)
        return len(rows)

    outcome = await _timed(choose, batches)
    for row in taken:
        await raw.execute(back, dict(zip(columns, row, strict=True)))
    return replace(outcome, finished=len({tuple(row) for row in taken}))


async def _timed(choose: Callable[[], Awaitable[int]], batches: int) -> Outcome:
    """One batch to warm up, then those that count;"""
    handled, latencies = await choose(), list[float]()
    for _ in range(batches):
        started = time.perf_counter()
        handled += await choose()
        latencies.append(time.perf_counter() - started)
    return Outcome(seconds=sum(latencies), handled=handled, latencies=latencies)


SIDES: dict[str, Callable[[Target, int], Awaitable[Outcome]]] = {
    "postroom": postroom,
    "leasing": leasing,
    "by_hand": by_hand,
    "flat": flat,
    "window": window,
}


if __name__ == "__main__":
    side, kind, address, *numbers = sys.argv[1:]
    where = Target("postgres" if kind == "postgres" else "sqlite", address)
    first, second = map(int, numbers)
    work = fill(where, first, second) if side == "fill" else SIDES[side](where, first)
    answer(run(work).to_json())

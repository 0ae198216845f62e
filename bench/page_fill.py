"""Fills a database with the pages' history, and brings a filled one up to date.

`python -m bench.page_fill KIND ADDRESS COUNT`

A database that was filled before gets what would have come in since, so that "the last hour" is never empty.
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from random import Random
from typing import Protocol
from uuid import UUID

import asyncpg

from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.codecs import time_text
from postroom.store.engine.migrate import migrate
from postroom.store.engine.sqlite_connection import connect
from postroom.store.installation import figure_folds
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock

from . import page_figures, page_history
from .order import Database, Target
from .ours import opened
from .page_history import (
    ACCOUNTS,
    BEGAN_MS,
    DAY_MS,
    DAYS,
    FIGURE_DAYS,
    HOUR_MS,
    RULES,
    SENDERS,
    SENTENCES,
    TENANTS,
    Fill,
    Span,
)
from .searching import VOCABULARY, word

_FUNCTIONS = """
    CREATE FUNCTION pg_temp.made_id(kind bigint, ms bigint, n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS
    $$ SELECT (lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex(kind), 3, '0') || '8000'
        || lpad(to_hex(n), 12, '0'))::uuid $$;
    CREATE FUNCTION pg_temp.at(ms bigint) RETURNS timestamptz IMMUTABLE LANGUAGE sql AS
    $$ SELECT to_timestamp(ms / 1000.0) $$;
    CREATE FUNCTION pg_temp.doc(content text) RETURNS json IMMUTABLE LANGUAGE sql AS $$ SELECT content::json $$;
    CREATE FUNCTION pg_temp.day(ms bigint) RETURNS date IMMUTABLE LANGUAGE sql AS
    $$ SELECT (to_timestamp(ms / 1000.0) AT TIME ZONE 'UTC')::date $$;
    CREATE FUNCTION pg_temp.hour_of(moment timestamptz) RETURNS timestamptz IMMUTABLE LANGUAGE sql AS
    $$ SELECT date_trunc('hour', moment, 'UTC') $$;
    CREATE FUNCTION pg_temp.bits(ms bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS
    $$ SELECT length(ltrim(ms::bit(64)::text, '0')) $$;
"""
_OWN_FUNCTIONS = ("made_id", "at", "doc", "day", "hour_of", "bits")
_LARGE = (
    "'messages', 'actions', 'decisions', 'envelopes', 'jobs', 'job_ends', 'job_steps', 'outbound_mail', "
    "'sender_hours', 'inbox_ends', 'model_calls', 'message_header_ids'"
)
_NOTES = "CREATE TABLE page_history (count bigint, start_ms bigint, step_ms bigint, last bigint)"


def made_id(kind: int, ms: int, n: int) -> UUID:
    return UUID(f"{ms:012x}7{kind:03x}8000{n:012x}")


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _made_id(kind: int, ms: int, n: int) -> str:
    return str(made_id(kind, ms, n))


def _at(ms: int) -> str:
    return time_text(moment(ms))


def _day(ms: int) -> str:
    return _at(ms)[:10]


def _doc(content: str) -> str:
    return content


def _hour_of(text: str) -> str:
    return f"{text[:13]}:00:00.000000Z"


_HOOKS: dict[str, Callable[..., object]] = {
    "made_id": _made_id,
    "at": _at,
    "doc": _doc,
    "day": _day,
    "hour_of": _hour_of,
    "bits": int.bit_length,
}


class Filled(Protocol):
    """A database that is being filled."""

    in_one_table: bool

    async def run(self, sql: str) -> list[tuple[object, ...]]: ...
    async def begin(self, *, is_new: bool) -> None: ...
    async def end(self, *, is_new: bool) -> None: ...


class FilledSqlite:
    in_one_table = True

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        self._indexes: list[str] = []
        for name, function in _HOOKS.items():
            self._connection.create_scalar_function(name, function, deterministic=True)

    async def run(self, sql: str) -> list[tuple[object, ...]]:
        return self._connection.execute(sql).fetchall()

    async def begin(self, *, is_new: bool) -> None:
        if is_new:
            await self.run("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; PRAGMA temp_store = MEMORY")
        await self.run("PRAGMA foreign_keys = OFF")
        await self.run("BEGIN")
        if is_new:
            found = await self.run(
                "SELECT sql, name FROM sqlite_master WHERE type = 'index' AND sql LIKE 'CREATE INDEX%' "
                f"AND tbl_name IN ({_LARGE})"
            )
            self._indexes = [str(sql) for sql, _ in found]
            for _, name in found:
                await self.run(f"DROP INDEX {name}")

    async def end(self, *, is_new: bool) -> None:
        for each in self._indexes:
            await self.run(each)
        await self.run("COMMIT")
        await self.run("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()


class FilledPostgres:
    in_one_table = False

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._indexes: list[str] = []

    async def run(self, sql: str) -> list[tuple[object, ...]]:
        for name in _OWN_FUNCTIONS:
            sql = sql.replace(f"{name}(", f"pg_temp.{name}(").replace(f"_pg_temp.{name}(", f"_{name}(")
        if ";" in sql:
            await self._connection.execute(sql)
            return []
        return [tuple(row) for row in await self._connection.fetch(sql)]

    async def begin(self, *, is_new: bool) -> None:
        await self._connection.execute("SET search_path TO postroom, switchboard; SET TIME ZONE 'UTC'")
        await self._connection.execute(_FUNCTIONS)
        await self._connection.execute("SET session_replication_role = replica; SET maintenance_work_mem = '1GB'")
        await self._connection.execute("SET synchronous_commit = off; SET work_mem = '256MB'")
        if is_new:
            found = await self._connection.fetch(
                "SELECT indexdef, schemaname || '.' || indexname FROM pg_indexes WHERE schemaname = 'postroom' "
                f"AND indexdef LIKE 'CREATE INDEX%' AND tablename IN ({_LARGE})"
            )
            self._indexes = [sql for sql, _ in found]
            for _, name in found:
                await self._connection.execute(f"DROP INDEX {name}")

    async def end(self, *, is_new: bool) -> None:
        for each in self._indexes:
            await self._connection.execute(each)
        for table, column in (("envelopes", "seq"), ("job_bodies", "seq"), ("outbound_mail", "seq")):
            await self._connection.execute(
                f"SELECT setval('{table}_{column}_seq', (SELECT max({column}) FROM {table}))"
            )
        await self._connection.execute("INSERT INTO job_marks (priority, low) VALUES (0, 0) ON CONFLICT DO NOTHING")
        if is_new:
            await self._connection.execute("VACUUM ANALYZE")
            await self._connection.execute("CHECKPOINT")


@asynccontextmanager
async def filling(target: Target) -> AsyncGenerator[Filled]:
    if target.database == "sqlite":
        yield FilledSqlite(Path(target.address))
        return
    connection = await asyncpg.connect(target.address)
    try:
        yield FilledPostgres(connection)
    finally:
        await connection.close()


async def fill(target: Target, count: int) -> None:
    async with opened(target) as database:
        await migrate(database)
        rules = [RuleDraft(f"Rule {n}", {"sender_domain": f"d{n}.example"}, "archive", {}) for n in range(RULES)]
        named = [(made_id(9, BEGAN_MS, n), rule) for n, rule in enumerate(rules)]
        span, is_new = await _span(target, count)
        if is_new:
            await database.run(add_rules(named, wall_clock()))
    async with filling(target) as filled:
        await filled.begin(is_new=is_new)
        if is_new:
            await _begin_history(filled, span)
        for each in _fills(filled, span):
            await _said(filled, each)
        if is_new:
            await _said(filled, Fill("outbound_turns", page_figures.TURNS))
        await _count(filled, span)
        # What an upgrade would index again beside the measurement has no letters that it is about.
        await filled.run("DELETE FROM search_backlog")
        await filled.run("DELETE FROM page_history")
        await filled.run(
            f"INSERT INTO page_history VALUES ({span.count}, {span.start_ms}, {span.step_ms}, {span.last})"
        )
        await filled.end(is_new=is_new)
    async with opened(target) as database:
        for name in figure_folds.STEPS:
            while await database.run(figure_folds.fold_next(name, wall_clock())):
                pass


async def _span(target: Target, count: int) -> tuple[Span, bool]:
    """What has to be filled in: everything, or what came since."""
    now = time.time_ns() // 1_000_000
    step = DAYS * DAY_MS // count
    async with filling(target) as filled:
        table = "sqlite_master WHERE name" if filled.in_one_table else "pg_tables WHERE tablename"
        if not await filled.run(f"SELECT 1 FROM {table} = 'page_history'"):
            return Span(count, now - count * step, step, 1, count), True
        if not filled.in_one_table:
            await filled.run("SET search_path TO postroom, switchboard")
        ((_, start, step, last),) = await filled.run("SELECT count, start_ms, step_ms, last FROM page_history")
        start, step, last = (int(str(each)) for each in (start, step, last))
        return Span(count, start, step, last + 1, max(last + 1, (now - start) // step)), False


async def _begin_history(filled: Filled, span: Span) -> None:
    rng = Random(7)
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    text = "bigint" if not filled.in_one_table else "INTEGER"
    await filled.run(f"CREATE TABLE page_sentences (number {text} PRIMARY KEY, words text)")
    for number in range(SENTENCES):
        words = " ".join(word(rank) for rank in rng.choices(range(VOCABULARY), weights, k=12))
        await filled.run(f"INSERT INTO page_sentences VALUES ({number}, '{words}')")
    if not filled.in_one_table:
        await filled.run("ALTER TABLE page_sentences ADD COLUMN vector tsvector")
        await filled.run("UPDATE page_sentences SET vector = to_tsvector('simple', folded(words))")
    await filled.run(_NOTES)
    time_type = "text" if filled.in_one_table else "timestamptz"
    await filled.run(f"CREATE TABLE page_hours (n bigint, hour {time_type})")
    begun = f"at({span.start_ms})"
    for k in range(ACCOUNTS):
        own = f"made_id(1, {BEGAN_MS}, {k})"
        await filled.run(
            f"""INSERT INTO accounts (id, provider, endpoint_identity, email, state, created_at, updated_at)
            VALUES ({own}, 'gmail', 'gmail:user:m{k}@team.example', 'm{k}@team.example', 'active', {begun}, {begun})"""
        )
        await filled.run(
            f"""INSERT INTO connectors (connector_type, endpoint_identity, instance_id, state, uptime_s, counters_json,
                first_seen_at, last_heartbeat_at, last_sent_at)
            VALUES ('gmail', 'gmail:user:m{k}@team.example', {own}, 'healthy', 90.0, doc('{{}}'), {begun},
                at({span.until_ms}), at({span.until_ms}))"""
        )
    own = "" if filled.in_one_table else "OVERRIDING SYSTEM VALUE"
    series = {"tenants": TENANTS, "senders": SENDERS, "suppressed": 20_000}
    given = {name: _series(filled, 1, last) for name, last in series.items()}
    await filled.run(page_figures.OWNERS.format(own=own, ms=span.start_ms, **given))
    await filled.run(
        f"""INSERT INTO backfill_jobs (id, connector_type, endpoint_identity, date_from, date_to, status,
            rows_processed,
            created_at, started_at, completed_at, updated_at)
        SELECT made_id(14, {BEGAN_MS}, n), 'gmail', 'gmail:user:m' || (n % {ACCOUNTS}) || '@team.example',
            day({span.start_ms}), day({span.start_ms}), 'completed', 900, {begun}, {begun}, {begun}, {begun}
        FROM {_series(filled, 0, 299)}"""
    )
    await filled.run(
        f"""INSERT INTO backfill_runs (job_id, mode, resume_daily, acts, message_cost_micros)
        SELECT made_id(14, {BEGAN_MS}, n), 'batch', n < 0, n < 0, 0 FROM {_series(filled, 0, 299)}"""
    )
    if not filled.in_one_table:
        for table, column in (("tenants", "id"), ("sender_domains", "id"), ("senders", "id")):
            await filled.run(f"SELECT setval('{table}_{column}_seq', (SELECT max({column}) FROM {table}))")


def _series(filled: Filled, first: int, last: int) -> str:
    if not filled.in_one_table:
        return f"generate_series({first}::bigint, {last}::bigint) AS s (n)"
    numbers = f"WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n < {last}) SELECT n FROM s"
    return f"({numbers}) AS s"


def _fills(filled: Filled, span: Span) -> Iterator[Fill]:
    rows = page_history.base(span, _series(filled, span.first, span.last))
    yield from chain(
        page_history.mail(span, rows, with_words=not filled.in_one_table), page_history.arrivals(span, rows)
    )
    yield from page_history.jobs(span, rows, in_one_table=filled.in_one_table)
    end = span.until_ms // HOUR_MS * HOUR_MS
    # A small history only shows that everything runs.
    days = FIGURE_DAYS if span.count >= 100_000 else 2
    begin = end - days * DAY_MS if span.is_whole else span.since_hour_ms + HOUR_MS
    last = (end - begin) // HOUR_MS
    if span.is_whole:
        outgoing = page_figures.outgoing_rows(span, _series(filled, 1, span.count // 2))
        yield from page_figures.outgoing(span, outgoing)
        yield _depths(span.until_ms, _series(filled, 0, DAYS * 288))
    if last >= 0:
        yield from page_figures.figures(begin, span.until_ms, _series(filled, 0, last))


def _depths(until_ms: int, series: str) -> Fill:
    tier = (
        "CASE l.number WHEN 0 THEN 'high_priority' WHEN 1 THEN 'interactive' WHEN 2 THEN 'default' ELSE 'history' END"
    )
    sql = f"""INSERT INTO queue_depths (at, queue, tier, waiting)
        SELECT at({until_ms // 300_000 * 300_000} - n * 300000), 'email', {tier}, (n * 7 + l.number) % 40
        FROM {series} CROSS JOIN page_sentences l WHERE l.number < 4"""
    return Fill("queue_depths", sql)


async def _count(filled: Filled, span: Span) -> None:
    since = f"at({span.since_hour_ms})"
    await filled.run(f"DELETE FROM rollups WHERE hour >= {since}")
    source = (
        "jobs" if filled.in_one_table else "(SELECT e.*, b.type FROM job_ends e JOIN job_bodies b ON b.seq = e.seq)"
    )
    for each in page_figures.counts(source):
        await _said(filled, Fill("rollups", each.replace("{since}", since)))
    await filled.run("DELETE FROM job_counting")
    await filled.run(f"INSERT INTO job_counting (only_row, counted_until) VALUES (1, at({span.until_ms}))")


async def _said(filled: Filled, fill: Fill) -> None:
    began = time.monotonic()
    await filled.run(fill.sql)
    print(f"{fill.table}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    kind, address, number = sys.argv[1:]
    where: Database = "postgres" if kind == "postgres" else "sqlite"
    asyncio.run(fill(Target(where, address), int(number)))

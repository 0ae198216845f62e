"""Every page reads what it shows, however long the history is: no statement looks through a table that keeps growing.

The plan tells. SQLite's is the same for any amount of data, as there are no statistics; PostgreSQL is told to avoid
reading whole tables, which it does where a table is small.
"""

import re
from pathlib import Path

import apsw
import asyncpg

from postroom.store.engine.codecs import sqlite_value
from postroom.store.engine.database import Database, Statement
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.engine.statements import blocks
from support.clocks import ManualClock
from support.page_app import visiting_pages
from support.page_statements import Recorded
from support.store import fault_cases_mail
from support.store.inbox_setup import select
from support.store.job_setup import JobSetup

GROWING = {
    "messages",
    "threads",
    "decisions",
    "actions",
    "action_links",
    "envelopes",
    "inbox_ends",
    "job_rows",
    "job_bodies",
    "job_ends",
    "job_steps",
    "outbound_mail",
    "outbound_recipients",
    "outbound_service",
    "outbound_times",
    "outbound_results",
    "sender_hours",
    "accepted_days",
    "rollups",
    "queue_depths",
    "audit",
    "model_calls",
    "message_documents",
    "suppressions",
}
PARTIAL = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'"
FORGET_STATISTICS = """
    DELETE FROM pg_statistic;
    UPDATE pg_class SET reltuples = -1, relpages = 0
    WHERE relkind IN ('r', 'i') AND relnamespace IN ('postroom'::regnamespace, 'switchboard'::regnamespace)
"""
LARGE = {"messages_kept", "messages_sent", "messages_list", "actions_executed", "actions_decision", "jobs_ended"}
"""Partial indexes of nearly everything."""
PATHS = (
    "/",
    "/?window=30d",
    "/mail",
    "/mail?kind=mail&since=7d",
    "/mail?kind=event",
    "/mail?state=asking",
    "/mail?state=failed",
    "/mail?state=undone",
    "/mail?state=done&by=rule&tier=default",
    "/mail?q=from%3Aada",
    "/approvals",
    "/rules",
    "/filters",
    "/connectors",
    "/backfill",
    "/queues?window=30d",
    "/queues?queue=gateway",
    "/jobs?window=30d",
    "/jobs?stage=failed",
    "/jobs?stage=ready",
    "/jobs?stage=scheduled",
    "/outbound?window=7d",
    "/outbound?state=failed",
    "/outbound?order=wait",
    "/audit",
    "/audit?actor=mara",
    "/audit?actor=mara&action=rule.edit",
    "/settings",
)


async def plan(database: Database, statement: Statement) -> list[str]:
    """How the database would run it: a line for each step."""
    lines: list[str] = []
    for part in blocks(database.dialect)[statement.name]:
        given = part.arguments(statement.parameters)
        if isinstance(database, SqliteDatabase):
            connection = apsw.Connection(str(database.path), flags=apsw.SQLITE_OPEN_READONLY)
            connection.convert_binding = lambda _cursor, _number, value: sqlite_value(value)
            lines += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {part.text}", given).fetchall()]
            connection.close()
        else:
            assert isinstance(database, PostgresDatabase)
            settings = {"search_path": "postroom,switchboard", "enable_seqscan": "off", "enable_bitmapscan": "off"}
            postgres = await asyncpg.connect(database._url, server_settings=settings)
            async with postgres.transaction():
                # What was learned about tables of a few rows, whenever that was, must not matter.
                await postgres.execute(FORGET_STATISTICS)
                lines += [row[0] for row in await postgres.fetch(f"EXPLAIN {part.text}", *given)]
                await postgres.execute("ROLLBACK AND CHAIN")
            await postgres.close()
    return lines


def looked_through(statement: Statement, lines: list[str], small: set[str]) -> set[str]:
    """The tables that grow and are read from one end to the other, unless by an index of the few rows that wait."""
    text = " ".join(part.text for part in blocks("sqlite")[statement.name])
    named = {alias: table for table, alias in re.findall(r"\b(?:FROM|JOIN)\s+(\w+)\s+(?:AS\s+)?(\w+)", text)}
    scans = [match for line in lines if (match := re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line))]
    return {named.get(match[1], match[1]) for match in scans if match[2] not in small} & GROWING


async def test_no_page_looks_through_what_keeps_growing(sqlite_setup: JobSetup, tmp_path: Path) -> None:
    database = sqlite_setup.database
    await database.run(await fault_cases_mail.complete_action(sqlite_setup))
    recorded, guilty = Recorded(database), dict[str, set[str]]()
    async with visiting_pages(recorded, tmp_path) as client:
        for path in PATHS:
            answer = await client.get(path)
            assert answer.status_code == 200, f"{path}: {answer.text}"
    small = {name for (name,) in await select(database, PARTIAL)} - LARGE
    for statement in recorded.statements.values():
        if tables := looked_through(statement, await plan(database, statement), small):
            guilty[statement.name] = tables
    assert not guilty, guilty


async def test_the_actions_of_a_message_are_found_by_the_message(database: Database, tmp_path: Path) -> None:
    setup = JobSetup(database, ManualClock())
    await database.run(await fault_cases_mail.complete_action(setup))
    recorded = Recorded(database)
    async with visiting_pages(recorded, tmp_path) as client:
        ((message,),) = await select(database, "SELECT id FROM messages")
        assert (await client.get(f"/mail/{message}")).status_code == 200
    steps = await plan(database, recorded.statements["select_actions_on"])
    assert any("actions_message" in step for step in steps), steps
    assert not any("actions_created" in step for step in steps), steps


async def test_watched_senders_are_found_without_the_hours_of_all_others(database: Database, tmp_path: Path) -> None:
    recorded = Recorded(database)
    async with visiting_pages(recorded, tmp_path) as client:
        assert (await client.get("/outbound")).status_code == 200
    steps = await plan(database, recorded.statements["select_scored_senders"])
    assert any("sender_hours_hour" in step for step in steps), steps

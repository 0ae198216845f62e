"""Every stored time is listed with what a jump of the clock does to it, so that none is stranded unnoticed."""

import asyncpg

from postroom.store.engine import clock_jumps
from support.store.stored_times import BOUNDED_BY_READERS, CHOSEN, LISTED, MENDED, RECORDS

COLUMNS = """
    SELECT table_name || '.' || column_name FROM information_schema.columns
    WHERE table_schema IN ('postroom', 'switchboard') AND data_type LIKE 'timestamp%'"""


async def test_every_stored_time_is_listed(emptied_postgres_url: str) -> None:
    """PostgreSQL knows which columns are times; SQLite has the same columns."""
    connection = await asyncpg.connect(emptied_postgres_url)
    try:
        stored = {name for (name,) in await connection.fetch(COLUMNS)}
    finally:
        await connection.close()
    assert stored - LISTED == set(), "add it to stored_times.py: is it mended, chosen by a person, or a record?"
    assert LISTED - stored == set(), "no longer stored"


def test_no_time_is_listed_twice() -> None:
    assert len(LISTED) == len(MENDED) + len(BOUNDED_BY_READERS) + len(CHOSEN) + len(RECORDS)


def test_what_is_mended_is_mended_by_a_verb_that_exists() -> None:
    elsewhere = {"keep_schedules", "lead"}
    assert all(hasattr(clock_jumps, verb) for verb in {*MENDED.values()} - elsewhere)

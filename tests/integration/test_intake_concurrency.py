"""Concurrent intake: large envelopes, or one that the database refuses, do not affect the others."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import apsw
import asyncpg
import pytest

from postroom.core.errors import BadInput
from postroom.intake.intake import HEAVIEST, Intake
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.opening import open_database
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.engine.sqlite import SqliteDatabase
from postroom.store.intake.acceptance import Accepted
from postroom.store.intake.history import count_states
from support.clocks import ManualClock
from support.switchboard import envelope

REFUSES_POISON = {
    "sqlite": """
        CREATE TRIGGER no_poison BEFORE INSERT ON envelopes WHEN new.sender = 'poison'
        BEGIN SELECT RAISE(ABORT, 'no'); END
    """,
    "postgres": """
        CREATE FUNCTION postroom.no_poison() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$;
        CREATE TRIGGER no_poison BEFORE INSERT ON postroom.envelopes FOR EACH ROW WHEN (new.sender = 'poison')
        EXECUTE FUNCTION postroom.no_poison()
    """,
}


@pytest.fixture
async def database(database_url: str | None, tmp_path: Path) -> AsyncIterator[Database]:
    """A new one: these tests change its schema."""
    opened = await open_database(tmp_path, database_url)
    yield opened
    await opened.close()


@pytest.fixture
async def postgres_database(postgres_url: str, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path, postgres_url)
    yield opened
    await opened.close()


async def refuse_poison(database: Database, code: str) -> None:
    """From now on the database itself takes nothing from the sender `poison`."""
    if isinstance(database, SqliteDatabase):
        connection = apsw.Connection(str(database.path))
        connection.execute(REFUSES_POISON["sqlite"])
        connection.close()
        return
    assert isinstance(database, PostgresDatabase)
    postgres = await asyncpg.connect(database._url)
    await postgres.execute(REFUSES_POISON["postgres"].format(code=code))
    await postgres.close()


class Watched:
    """A real database that notes how heavy each batch was that went into it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.batches: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def run(self, transaction: Transaction[Any]) -> Any:
        answer = await self._database.run(transaction)
        if transaction.name == "accept_many":
            self.batches.append(len(answer))
        return answer


@pytest.mark.parametrize("code", ["22021", "22001", "54000"])
async def test_what_the_database_refuses_is_refused_alone(database: Database, clock: ManualClock, code: str) -> None:
    """22 and 54 are the classes in which PostgreSQL says that a value, or a row of them, does not fit."""
    intake = Intake(database, None, clock)
    await refuse_poison(database, code)
    items = [envelope(number, sender={"identity": "poison" if number == 2 else "ci"}) for number in range(5)]
    results = await intake.ingest_batch(items)
    assert [type(each) for each in results] == [Accepted, Accepted, BadInput, Accepted, Accepted]
    assert "cannot store" in str(results[2])
    with pytest.raises(BadInput, match="cannot store"):
        await intake.ingest(items[2])
    assert await database.run(count_states("gateway")) == {("P2", "waiting"): 4}


async def test_a_crowd_of_large_envelopes_and_a_few_small_ones_are_all_accepted(
    postgres_database: Database, clock: ManualClock
) -> None:
    """In one batch they would be more than the server takes in one value; by weight, several go together."""
    watched: Any = Watched(postgres_database)
    intake = Intake(watched, None, clock)
    noise = Random(1).randbytes(2**20).hex()
    large = [envelope(f"large-{number}", payload={"normalized_text": f"{number} {noise}"}) for number in range(12)]
    small = [envelope(f"small-{number}") for number in range(5)]
    accepted = await asyncio.gather(*(intake.ingest(each) for each in [*large[:6], *small, *large[6:]]))
    assert not any(each.duplicate for each in accepted)
    assert await postgres_database.run(count_states("gateway")) == {("P2", "waiting"): 17}
    assert sum(watched.batches) == 17
    assert max(watched.batches) <= HEAVIEST // (2 * 2**20) + len(small)
    assert len(watched.batches) <= 5, "several go together"

"""Searches of agents: few at a time, none for long, and other reads stay unaffected."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from mcp.client import Client

from postroom.core.errors import BadInput
from postroom.core.mail.search import read_query
from postroom.core.roles import Principal, Role
from postroom.interfaces.http.mcp.mcp_server import build_server
from postroom.operations.mail.searches import SearchLimiter
from postroom.store.engine.database import Database, Dialect, Script, Subscription, Text, Transaction, transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail.search import FoundPage, search_mail
from support.clocks import ManualClock
from support.mail import keep_mail
from support.sqlite import new_sqlite
from support.switchboard import services_on

T = TypeVar("T")


class Hurried:
    """A database in which what has a time limit has no time at all."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    async def run(self, transaction: Transaction[T]) -> T:
        return await self._database.run(transaction._replace(limit_s=None if transaction.limit_s is None else 0.0))

    def subscribe(self, channel: str, callback: Callable[[str], None]) -> Subscription:
        return self._database.subscribe(channel, callback)

    async def close(self) -> None:
        await self._database.close()


class Held(Hurried):
    """A database whose reads are at it until the test lets them go."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.go_on = asyncio.Event()

    async def run(self, transaction: Transaction[T]) -> T:
        self.begun.put_nowait(transaction.name)
        await self.go_on.wait()
        return await self._database.run(transaction)


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    await keep_mail(opened, clock)
    yield opened
    await opened.close()


def search(query: str = "words") -> Transaction[FoundPage]:
    return search_mail(read_query(query), "sqlite", 10)


async def rounds() -> None:
    """All that can go on without the database has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_two_searches_run_at_once_and_others_wait_even_if_who_asked_went_away(database: Database):
    held, searches = Held(database), SearchLimiter(most_waiting=2)
    first = [asyncio.create_task(searches.run(held, search())) for _ in range(2)]
    await rounds()
    later = [asyncio.create_task(searches.run(held, search())) for _ in range(2)]
    await rounds()
    assert held.begun.qsize() == 2
    with pytest.raises(BadInput, match="try again in a few seconds"):
        await searches.run(held, search())
    for each in first:
        each.cancel()
    await asyncio.gather(*first, return_exceptions=True)
    later[0].cancel()
    await asyncio.gather(later[0], return_exceptions=True)
    await rounds()
    assert held.begun.qsize() == 2
    held.go_on.set()
    assert len((await later[1]).found) == 1
    assert held.begun.qsize() == 3
    assert len((await searches.run(held, search())).found) == 1


@transaction
def _much_mail() -> Script[None]:
    """As the part of the index that filters look at has it."""
    yield Text(
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 2000) "
        "INSERT INTO message_documents (message_id, account_id, sent_at, has_attachment) "
        "SELECT 'more-' || x, (SELECT id FROM accounts), '2026-11-15T08:00:00.000000Z', 0 FROM n"
    )


async def test_a_search_that_takes_too_long_is_answered_with_what_to_do(database: Database, clock: ManualClock):
    await database.run(_much_mail())
    services = services_on(Hurried(database), clock)
    async with Client(build_server(services, Principal(Role.AGENT, token_id=new_id()))) as agent:
        for _ in range(5):
            refused = await agent.call_tool("mail.search", {"query": "label:none"})
            assert refused.is_error
            assert (refused.structured_content["code"], refused.structured_content["field"]) == ("bad_input", "query")
            assert "narrow the search" in refused.structured_content["remedy"]
    assert len((await database.run(search())).found) == 1

"""The submission server while the database is away: clients are told so, with the right code, and can go on after it.

The database itself would wait for an hour here. So whatever is answered at all, is answered in time.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from postroom.core.errors import DatabaseUnavailable
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.engine.postgres import PostgresDatabase
from postroom.store.outbound import outbound
from support.faults import Cut, Wire
from support.patience import PATIENCE_S
from support.submission import ADA, RawClient, added_sender, connected, submission_server

HOUR_S = 3600.0
SHORT_S = 0.3


@pytest.fixture
async def wire(emptied_postgres_url: str, tmp_path: Path) -> AsyncIterator[Wire]:
    await (await open_database(tmp_path, emptied_postgres_url)).close()
    async with Wire(emptied_postgres_url) as wire:
        yield wire


@pytest.fixture
async def wired(wire: Wire) -> AsyncIterator[Database]:
    database = PostgresDatabase(wire.url, patience_s=HOUR_S)
    yield database
    await database.close()


async def logged_in(client: RawClient) -> None:
    """However busy the machine is: a login may be told to come back."""
    while not (answer := await client.log_in()).startswith("235"):
        assert answer.startswith("454 4.7.0"), answer


@pytest.mark.parametrize("goes", [Wire.go_away, Wire.go_silent], ids=["away", "silent"])
async def test_a_login_is_answered_with_try_again_later(
    wire: Wire, wired: Database, goes: Callable[[Wire], None]
) -> None:
    await added_sender(wired)
    async with submission_server(wired, patience_s=SHORT_S) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        goes(wire)
        assert await client.log_in() == "454 4.7.0 Logins cannot be checked now; try again later"
        wire.come_back()
        await logged_in(client)


async def test_a_mail_is_answered_with_try_again_later_and_not_taken(wire: Wire, wired: Database) -> None:
    await added_sender(wired)
    async with submission_server(wired, store_patience_s=SHORT_S) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        await logged_in(client)
        await client.envelope()
        wire.go_away()
        assert await client.deliver() == "451 4.3.0 The mail could not be stored; try again later"
        wire.come_back()
        assert await wired.run(outbound.list_mail(9)) == []


async def test_local_programs_are_answered_too(wire: Wire, wired: Database) -> None:
    await added_sender(wired)
    async with submission_server(wired, patience_s=SHORT_S, local=ADA) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        wire.go_away()
        assert (await client.ask(f"MAIL FROM:<{ADA}>")).startswith("451 4.3.0")


@pytest.mark.parametrize("where", list(Cut), ids=lambda where: where.name.lower())
async def test_while_it_is_in_doubt_whether_a_mail_was_taken_the_client_waits(
    wire: Wire, wired: Database, where: Cut
) -> None:
    """Whoever is told too early to try again sends a mail twice."""
    await added_sender(wired)
    async with submission_server(wired, store_patience_s=0.0) as server, connected(server.port) as client:
        await client.ask("EHLO client.example")
        await logged_in(client)
        await client.envelope()
        wire.cut("COMMIT", where, stay_away=True)
        delivering = asyncio.create_task(client.deliver())
        await asyncio.wait_for(wire.turned_away.wait(), PATIENCE_S)
        wire.come_back()
        answer = await delivering
        assert len(await wired.run(outbound.list_mail(9))) == answer.startswith("250")
        assert answer.startswith("250") or where is Cut.BEFORE


async def test_a_transaction_waits_no_longer_than_it_says(wire: Wire, wired: Database) -> None:
    wire.go_away()
    with pytest.raises(DatabaseUnavailable):
        await wired.run(outbound.list_mail(9)._replace(patience_s=SHORT_S))

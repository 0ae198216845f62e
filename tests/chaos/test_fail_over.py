"""A standby takes the place of the PostgreSQL server while the product works: nothing is lost, nothing is sent twice,
and nobody is asked about mail that was not on its way. A standby for which no commit waited may lack something.
"""

import asyncio
import json
from pathlib import Path
from random import Random

import pytest

from postroom.store.engine.database import Notify, Script, transaction
from postroom.store.engine.opening import connect_database
from postroom.store.installation.timeline import CHANNEL
from support.crash.evidence import Place
from support.crash.forwarding_setup import PATIENCE_S, ForwardingSetup, forwarding_setup
from support.processes import ProcessGroup
from support.replication import ReplicatedPostgres, replicated_postgres
from support.scale import scale

PER_ROUND = 12
HISTORY = "SELECT place FROM timeline"


@transaction
def look() -> Script[None]:
    """Have every process look at once whether the database is still the one that it was."""
    yield Notify(CHANNEL, "look")


async def until_observed(setup: ForwardingSetup, before: str) -> None:
    """Until a process has recorded the server that answers now, and that commits wait for its standby."""
    file = setup.place.folder / "timeline.json"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            database = connect_database(setup.place.folder, setup.place.url)
            await database.run(look())
            await database.close()
            ((place,),) = await setup.place.rows(HISTORY)
            if place != before and json.loads(file.read_bytes())["is_replicated"]:
                return
            await asyncio.sleep(0.1)


async def fail_over(setup: ForwardingSetup, servers: ReplicatedPostgres) -> None:
    ((before,),) = await setup.place.rows(HISTORY)
    await asyncio.to_thread(servers.fail_over)
    await asyncio.to_thread(servers.replicate)
    await until_observed(setup, before)


@pytest.mark.timeout(scale(600, 3600))
async def test_a_promoted_standby_goes_on_where_the_server_died(
    tmp_path: Path, children: ProcessGroup, rng: Random
) -> None:
    rounds = scale(1, 10)
    with replicated_postgres("mail") as servers:
        place = Place(tmp_path, servers.primary, servers.url("mail"))
        async with forwarding_setup(place, children, rng) as setup:
            process = await setup.start()
            for _ in range(rounds):
                setup.receive(PER_ROUND)
                await setup.until_left(setup.come - rng.randrange(PER_ROUND))
                await fail_over(setup, servers)
            setup.receive(PER_ROUND)
            await setup.settle()
            audited = await setup.place.rows(
                "SELECT action, count(*) FROM audit WHERE action LIKE 'database.%' GROUP BY 1"
            )
            await process.kill()
    twice = {number: count for number, count in setup.ledger.left.items() if count > 1}
    print(f"{rounds} fail-overs, {setup.come} mails, {len(setup.asked)} asked, {twice=}, {audited=}")
    assert not twice
    assert len(setup.ledger.left) == setup.come
    assert not setup.asked, "the mailbox tells of everything that was on its way"
    assert dict(audited) == {"database.promoted": rounds}


@pytest.mark.timeout(600)
async def test_a_standby_that_nobody_waited_for_is_taken_for_a_restore(
    tmp_path: Path, children: ProcessGroup, rng: Random
) -> None:
    with replicated_postgres("mail", synchronous=False) as servers:
        place = Place(tmp_path, servers.primary, servers.url("mail"))
        async with forwarding_setup(place, children, rng) as setup:
            process = await setup.start()
            setup.receive(1)
            await setup.until_left(1)
            await asyncio.to_thread(servers.fail_over)
            async with asyncio.timeout(PATIENCE_S):
                while not await setup.place.rows("SELECT 1 FROM audit WHERE action = 'database.restored'"):
                    database = connect_database(setup.place.folder, setup.place.url)
                    await database.run(look())
                    await database.close()
                    await asyncio.sleep(0.1)
            await process.kill()

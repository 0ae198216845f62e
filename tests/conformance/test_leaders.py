"""Leaders: exactly one, replaced only if its lease has expired or it resigned."""

import asyncio
from datetime import timedelta

from postroom.store.engine.database import Database
from postroom.store.jobs import leaders
from support.store.dump import dump
from support.store.job_setup import JobSetup

TERM = timedelta(seconds=15)


async def _lead(setup: JobSetup, holder: str, name: str = "jobs") -> bool:
    return await setup.database.run(leaders.lead(name, holder, setup.clock(), setup.clock() + TERM))


async def test_the_first_who_asks_leads_and_stays_the_leader(setup: JobSetup) -> None:
    assert await setup.database.run(leaders.leader("jobs")) is None
    assert await _lead(setup, "a")
    setup.clock.forward(14)
    assert await _lead(setup, "a")
    assert await setup.database.run(leaders.leader("jobs")) == ("a", setup.clock() + TERM, 1)


async def test_nobody_else_leads_while_the_lease_holds(setup: JobSetup) -> None:
    await _lead(setup, "a")
    before = await dump(setup.database)
    setup.clock.forward(TERM.total_seconds())
    assert not await _lead(setup, "b")
    assert await dump(setup.database) == before


async def test_another_takes_over_once_the_lease_has_run_out(setup: JobSetup) -> None:
    await _lead(setup, "a")
    setup.clock.forward(TERM.total_seconds() + 0.000001)
    assert await _lead(setup, "b")
    assert not await _lead(setup, "a")
    assert await setup.database.run(leaders.leader("jobs")) == ("b", setup.clock() + TERM, 2)


async def test_a_leader_that_was_late_and_not_replaced_goes_on(setup: JobSetup) -> None:
    await _lead(setup, "a")
    setup.clock.forward(100)
    assert await _lead(setup, "a")


async def test_when_a_leader_resigns_another_leads_at_once(setup: JobSetup) -> None:
    await _lead(setup, "a")
    await setup.database.run(leaders.resign("jobs", "a"))
    assert await setup.database.run(leaders.leader("jobs")) is None
    assert await _lead(setup, "b")


async def test_only_the_leader_can_resign(setup: JobSetup) -> None:
    await _lead(setup, "a")
    await setup.database.run(leaders.resign("jobs", "b"))
    assert not await _lead(setup, "b")


async def test_different_names_have_different_leaders(setup: JobSetup) -> None:
    assert await _lead(setup, "a", "jobs")
    assert await _lead(setup, "b", "outbound")


async def test_of_many_who_ask_at_once_exactly_one_leads(setup: JobSetup, second_database: Database) -> None:
    for turn in range(5):
        now = setup.clock.forward(TERM.total_seconds() + 1)
        answers = await asyncio.gather(
            *(
                side.run(leaders.lead("jobs", f"{turn}:{n}", now, now + TERM))
                for n, side in enumerate([setup.database, second_database] * 4)
            )
        )
        assert sum(answers) == 1
        leader = await setup.database.run(leaders.leader("jobs"))
        assert leader is not None
        assert leader[0] == f"{turn}:{answers.index(True)}"


async def test_work_that_a_leader_would_have_seen_to_is_neglected_after_two_minutes(setup: JobSetup) -> None:
    await setup.retry_later(await setup.claimed(), seconds=60)
    setup.clock.forward(60 + 119)
    assert await setup.database.run(leaders.overdue_work(setup.clock())) == leaders.OverdueWork(0, 0)
    setup.clock.forward(1)
    assert await setup.database.run(leaders.overdue_work(setup.clock())) == leaders.OverdueWork(1, 1)

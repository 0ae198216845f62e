"""Leaders: exactly one, replaced only when its lease has run out or it resigned."""

import asyncio
from datetime import timedelta

from conformance.desk import Desk
from conformance.dump import dump
from postroom.store import leaders
from postroom.store.engine.database import Database

TERM = timedelta(seconds=15)


async def _lead(desk: Desk, holder: str, name: str = "jobs") -> bool:
    return await desk.database.run(leaders.lead(name, holder, desk.clock(), desk.clock() + TERM))


async def test_the_first_who_asks_leads_and_stays_the_leader(desk: Desk) -> None:
    assert await desk.database.run(leaders.leader("jobs")) is None
    assert await _lead(desk, "a")
    desk.clock.forward(14)
    assert await _lead(desk, "a")
    assert await desk.database.run(leaders.leader("jobs")) == ("a", desk.clock() + TERM, 1)


async def test_nobody_else_leads_while_the_lease_holds(desk: Desk) -> None:
    await _lead(desk, "a")
    before = await dump(desk.database)
    desk.clock.forward(TERM.total_seconds())
    assert not await _lead(desk, "b")
    assert await dump(desk.database) == before


async def test_another_takes_over_once_the_lease_has_run_out(desk: Desk) -> None:
    await _lead(desk, "a")
    desk.clock.forward(TERM.total_seconds() + 0.000001)
    assert await _lead(desk, "b")
    assert not await _lead(desk, "a")
    assert await desk.database.run(leaders.leader("jobs")) == ("b", desk.clock() + TERM, 2)


async def test_a_leader_that_was_late_and_not_replaced_goes_on(desk: Desk) -> None:
    await _lead(desk, "a")
    desk.clock.forward(100)
    assert await _lead(desk, "a")


async def test_when_a_leader_resigns_another_leads_at_once(desk: Desk) -> None:
    await _lead(desk, "a")
    await desk.database.run(leaders.resign("jobs", "a"))
    assert await desk.database.run(leaders.leader("jobs")) is None
    assert await _lead(desk, "b")


async def test_only_the_leader_can_resign(desk: Desk) -> None:
    await _lead(desk, "a")
    await desk.database.run(leaders.resign("jobs", "b"))
    assert not await _lead(desk, "b")


async def test_different_names_have_different_leaders(desk: Desk) -> None:
    assert await _lead(desk, "a", "jobs")
    assert await _lead(desk, "b", "outbound")


async def test_of_many_who_ask_at_once_exactly_one_leads(desk: Desk, second_database: Database) -> None:
    for turn in range(5):
        now = desk.clock.forward(TERM.total_seconds() + 1)
        answers = await asyncio.gather(
            *(
                side.run(leaders.lead("jobs", f"{turn}:{n}", now, now + TERM))
                for n, side in enumerate([desk.database, second_database] * 4)
            )
        )
        assert sum(answers) == 1
        leader = await desk.database.run(leaders.leader("jobs"))
        assert leader is not None
        assert leader[0] == f"{turn}:{answers.index(True)}"


async def test_work_that_a_leader_would_have_seen_to_is_neglected_after_two_minutes(desk: Desk) -> None:
    await desk.retry_later(await desk.claimed(), seconds=60)
    desk.clock.forward(60 + 119)
    assert await desk.database.run(leaders.neglected(desk.clock())) == leaders.OverdueWork(0, 0)
    desk.clock.forward(1)
    assert await desk.database.run(leaders.neglected(desk.clock())) == leaders.OverdueWork(1, 1)

"""Whose turn it is: what nobody got uses up no turn, and what is old buries nothing new."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from conformance.inbox_desk import InboxDesk, event, kind, mail, refs, select
from conftest import ManualClock, scale
from postroom.core.queue.queues import EMAIL, GATEWAY
from postroom.store.engine.database import Database
from postroom.store.history import streaks
from postroom.store.inbox import give_back
from postroom.switchboard.buffer import Buffer

TIERS = ("high_priority", "interactive", "default")


@pytest.fixture
async def desk(database: Database, clock: ManualClock) -> AsyncIterator[InboxDesk]:
    desk = InboxDesk(database, clock)
    await desk.open_account()
    yield desk
    await desk.close()


def urgent(number: int) -> dict[str, Any]:
    return event(f"new-{number}", event={"external_event_id": f"new-{number}", **kind("deploy.failed")})


async def counted(desk: InboxDesk, queue: str = "email") -> dict[str, int]:
    found = (await desk.database.run(streaks())).get(queue, {})
    return {name: count for name, count in found.items() if count}


async def hung_up(desk: InboxDesk, most: int = 1, queue: str = "email") -> None:
    """Someone asks and is gone before the answer."""
    left = asyncio.Event()
    left.set()
    assert await desk.buffer.next(queue, most, left=left) == []


async def test_what_was_given_back_leaves_the_streaks_as_they_were(desk: InboxDesk) -> None:
    await desk.ingest(*(mail(number, TIERS[number % 3]) for number in range(60)))
    for most in (1, 7, 10, 3):
        before = await counted(desk)
        await hung_up(desk, most)
        assert await counted(desk) == before
        await desk.ack(await desk.next(most, "email"))
    assert await counted(desk) != {}


async def test_hanging_up_does_not_keep_the_lower_tiers_from_their_turn(desk: InboxDesk) -> None:
    await desk.ingest(mail("low"), *(mail(number, "high_priority") for number in range(30)))
    await desk.ack(await desk.next(10, "email"))
    for _ in range(5):
        await hung_up(desk)
    (delivery,) = await desk.next(1, "email")
    assert delivery.tier == "default"


async def test_what_was_held_until_its_lease_ran_out_leaves_the_streaks_as_they_were(desk: InboxDesk) -> None:
    await desk.ingest(mail("low"), *(mail(number, "high_priority") for number in range(30)))
    await desk.ack(await desk.next(10, "email"))
    before = await counted(desk)
    assert [each.tier for each in await desk.next(1, "email")] == ["default"]
    desk.clock.forward(EMAIL.lease.total_seconds() + 1)
    await desk.buffer.sweep()
    assert await counted(desk) == before
    assert [each.tier for each in await desk.next(1, "email")] == ["default"]


async def test_what_somebody_had_in_hand_and_returned_was_a_turn(desk: InboxDesk) -> None:
    await desk.ingest(event(1))
    await desk.nack(await desk.next())
    assert await counted(desk, "gateway") == {"P2": 1}


async def test_what_others_take_between_a_lease_and_its_return_stays_counted(desk: InboxDesk) -> None:
    await desk.ingest(mail("low"), *(mail(number, "high_priority") for number in range(30)))
    await desk.ack(await desk.next(10, "email"))
    low = await desk.next(1, "email")
    await desk.ack(await desk.next(4, "email"))
    await desk.database.run(give_back(refs(low), desk.clock()))
    assert await counted(desk) == {"high_priority": 14}


async def test_with_many_consumers_only_what_was_not_given_back_is_counted(
    desk: InboxDesk, second_database: Database
) -> None:
    """Two processes lease, give back and end, all at the same time; the log of the picks then gives the streaks."""
    seed = 17
    print(f"seed {seed}")
    count = scale(120, 1_000)
    await desk.ingest(*(mail(number, TIERS[number % 3]) for number in range(count)))
    buffers = [desk.buffer, Buffer(second_database, desk.queues, desk.clock)]
    kept: list[dict[str, Any]] = []

    async def consume(buffer: Buffer, rng: Random) -> None:
        for _ in range(scale(12, 100)):
            deliveries = await buffer.next("email", rng.randint(1, 6))
            if not deliveries:
                return
            back = [each for each in deliveries if rng.random() < 0.5]
            held = await select(desk.database, "SELECT id, turn_json FROM inbox_queue WHERE state = 'leased'")
            turns = {str(id): turn for id, turn in held}
            for each in deliveries:
                if each not in back:
                    kept.append({"tier": each.tier, "turn": turns[str(each.message_id)]})
            if back:
                await buffer._database.run(give_back(refs(back), desk.clock()))
            if len(back) < len(deliveries):
                await buffer.ack(refs(each for each in deliveries if each not in back))

    await asyncio.gather(*(consume(buffers[n % 2], Random(seed + n)) for n in range(4)))
    expected = dict.fromkeys(EMAIL.tiers, 0)
    for each in sorted(kept, key=lambda each: _number(each["turn"])):
        expected[each["tier"]] += 1
        expected |= dict.fromkeys(EMAIL.tiers[: EMAIL.tiers.index(each["tier"])], 0)
    assert await counted(desk) == {tier: count for tier, count in expected.items() if count}


def _number(turn: str) -> int:
    return int(turn.split('"number":')[1].split(",")[0])


async def test_sixty_aged_messages_do_not_bury_a_new_one(desk: InboxDesk) -> None:
    await desk.ingest(*(event(number) for number in range(60)))
    desk.clock.forward(GATEWAY.age_after["P2"].total_seconds() + 1)
    await desk.ingest(
        *(event(100 + n, event={"external_event_id": f"new-{n}", **kind("deploy.failed")}) for n in range(5))
    )
    taken = await desk.next(12)
    assert [each.promoted_from for each in taken] == [None] * 3 + ["P2"] + [None] * 2 + ["P2"] * 6
    assert {each.tier for each in taken} == {"P1"}


async def test_the_turns_of_aged_messages_survive_a_restart(desk: InboxDesk) -> None:
    await desk.ingest(*(event(number) for number in range(3)))
    desk.clock.forward((GATEWAY.age_after["P2"] + timedelta(seconds=1)).total_seconds())
    await desk.ingest(
        *(event(100 + n, event={"external_event_id": f"new-{n}", **kind("deploy.failed")}) for n in range(5))
    )
    await desk.ack(await desk.next(2))
    await desk.restart()
    assert [each.promoted_from for each in await desk.next(3)] == [None, "P2", None]

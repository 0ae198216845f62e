"""Turns: a message that no consumer got uses up no turn, and old messages do not bury new ones."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from postroom.core.queue.queues import EMAIL, GATEWAY
from postroom.intake.buffer import Buffer
from postroom.store.engine.database import Database
from postroom.store.intake.history import streaks
from postroom.store.intake.inbox import give_back
from support.clocks import ManualClock
from support.scale import scale
from support.store.inbox_setup import InboxSetup, event, kind, mail, refs, select

TIERS = ("high_priority", "interactive", "default")


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


def urgent(number: int) -> dict[str, Any]:
    return event(f"new-{number}", event={"external_event_id": f"new-{number}", **kind("deploy.failed")})


async def counted(setup: InboxSetup, queue: str = "email") -> dict[str, int]:
    found = (await setup.database.run(streaks())).get(queue, {})
    return {name: count for name, count in found.items() if count}


async def hung_up(setup: InboxSetup, most: int = 1, queue: str = "email") -> None:
    """Someone asks and is gone before the answer."""
    left = asyncio.Event()
    left.set()
    assert await setup.buffer.next(queue, most, left=left) == []


async def test_what_was_given_back_leaves_the_streaks_as_they_were(setup: InboxSetup) -> None:
    await setup.ingest(*(mail(number, TIERS[number % 3]) for number in range(60)))
    for most in (1, 7, 10, 3):
        before = await counted(setup)
        await hung_up(setup, most)
        assert await counted(setup) == before
        await setup.ack(await setup.next(most, "email"))
    assert await counted(setup) != {}


async def test_hanging_up_does_not_keep_the_lower_tiers_from_their_turn(setup: InboxSetup) -> None:
    await setup.ingest(mail("low"), *(mail(number, "high_priority") for number in range(30)))
    await setup.ack(await setup.next(10, "email"))
    for _ in range(5):
        await hung_up(setup)
    (delivery,) = await setup.next(1, "email")
    assert delivery.tier == "default"


async def test_what_was_held_until_its_lease_ran_out_leaves_the_streaks_as_they_were(setup: InboxSetup) -> None:
    await setup.ingest(mail("low"), *(mail(number, "high_priority") for number in range(30)))
    await setup.ack(await setup.next(10, "email"))
    before = await counted(setup)
    assert [each.tier for each in await setup.next(1, "email")] == ["default"]
    setup.clock.forward(EMAIL.lease.total_seconds() + 1)
    await setup.buffer.sweep()
    assert await counted(setup) == before
    assert [each.tier for each in await setup.next(1, "email")] == ["default"]


async def test_what_somebody_had_in_hand_and_returned_was_a_turn(setup: InboxSetup) -> None:
    await setup.ingest(event(1))
    await setup.nack(await setup.next())
    assert await counted(setup, "gateway") == {"P2": 1}


async def test_what_others_take_between_a_lease_and_its_return_stays_counted(setup: InboxSetup) -> None:
    await setup.ingest(mail("low"), *(mail(number, "high_priority") for number in range(30)))
    await setup.ack(await setup.next(10, "email"))
    low = await setup.next(1, "email")
    await setup.ack(await setup.next(4, "email"))
    await setup.database.run(give_back(refs(low), setup.clock()))
    assert await counted(setup) == {"high_priority": 14}


async def test_with_many_consumers_only_what_was_not_given_back_is_counted(
    setup: InboxSetup, second_database: Database
) -> None:
    """Two processes lease, give back and end, all at the same time; the log of the picks then gives the streaks."""
    seed = 17
    print(f"seed {seed}")
    count = scale(120, 1_000)
    await setup.ingest(*(mail(number, TIERS[number % 3]) for number in range(count)))
    buffers = [setup.buffer, Buffer(second_database, setup.queues, setup.clock)]
    kept: list[dict[str, Any]] = []

    async def consume(buffer: Buffer, rng: Random) -> None:
        for _ in range(scale(12, 100)):
            deliveries = await buffer.next("email", rng.randint(1, 6))
            if not deliveries:
                return
            back = [each for each in deliveries if rng.random() < 0.5]
            held = await select(setup.database, "SELECT id, turn_json FROM inbox_queue WHERE state = 'leased'")
            turns = {str(id): turn for id, turn in held}
            for each in deliveries:
                if each not in back:
                    kept.append({"tier": each.tier, "turn": turns[str(each.message_id)]})
            if back:
                await buffer._database.run(give_back(refs(back), setup.clock()))
            if len(back) < len(deliveries):
                await buffer.ack(refs(each for each in deliveries if each not in back))

    await asyncio.gather(*(consume(buffers[n % 2], Random(seed + n)) for n in range(4)))
    expected = dict.fromkeys(EMAIL.tiers, 0)
    for each in sorted(kept, key=lambda each: _number(each["turn"])):
        expected[each["tier"]] += 1
        expected |= dict.fromkeys(EMAIL.tiers[: EMAIL.tiers.index(each["tier"])], 0)
    assert await counted(setup) == {tier: count for tier, count in expected.items() if count}


def _number(turn: str) -> int:
    return int(turn.split('"number":')[1].split(",")[0])


async def test_sixty_aged_messages_do_not_bury_a_new_one(setup: InboxSetup) -> None:
    await setup.ingest(*(event(number) for number in range(60)))
    setup.clock.forward(GATEWAY.age_after["P2"].total_seconds() + 1)
    await setup.ingest(
        *(event(100 + n, event={"external_event_id": f"new-{n}", **kind("deploy.failed")}) for n in range(5))
    )
    taken = await setup.next(12)
    assert [each.promoted_from for each in taken] == [None] * 3 + ["P2"] + [None] * 2 + ["P2"] * 6
    assert {each.tier for each in taken} == {"P1"}


async def test_the_turns_of_aged_messages_survive_a_restart(setup: InboxSetup) -> None:
    await setup.ingest(*(event(number) for number in range(3)))
    setup.clock.forward((GATEWAY.age_after["P2"] + timedelta(seconds=1)).total_seconds())
    await setup.ingest(
        *(event(100 + n, event={"external_event_id": f"new-{n}", **kind("deploy.failed")}) for n in range(5))
    )
    await setup.ack(await setup.next(2))
    await setup.restart()
    assert [each.promoted_from for each in await setup.next(3)] == [None, "P2", None]

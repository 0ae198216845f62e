"""Leases of the inbox: in tier order, held and ended by one consumer, otherwise returned to the head."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from postroom.core.errors import BadInput, LeaseLost
from postroom.core.queue.queues import EMAIL, GATEWAY, QueuePolicy, Queues
from postroom.intake.buffer import MOST_AT_ONCE, Buffer
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.history import streaks
from postroom.store.intake.inbox import LeaseRef, adopt_strays, give_up, lease
from support.clocks import ManualClock
from support.patience import PATIENCE_S
from support.store.dump import dump
from support.store.inbox_setup import InboxSetup, event, kind, mail, refs

LEASE_S = GATEWAY.lease.total_seconds()


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


async def accepted(setup: InboxSetup, count: int, first: int = 0, name: str = "deploy.done") -> list[UUID]:
    answers = await setup.ingest(*(event(first + n, event=kind_of(first + n, name)) for n in range(count)))
    return [each.request_id for each in answers]


def kind_of(number: int, name: str) -> dict[str, str]:
    return {"external_event_id": f"event-{number}", **kind(name)}


def lost(outcomes: list[LeaseLost | None]) -> list[bool]:
    return [isinstance(each, LeaseLost) for each in outcomes]


# Order.


async def test_a_tier_is_handed_out_in_accepted_order(setup: InboxSetup) -> None:
    ids = await accepted(setup, 7)
    found = [await setup.next_ids(most) for most in (1, 2, 3, 10, 1)]
    assert found == [ids[:1], ids[1:3], ids[3:6], ids[6:], []]


async def test_higher_tiers_come_first_and_say_what_they_are(setup: InboxSetup) -> None:
    await setup.batch(
        event(1), event(2, event=kind_of(2, "deploy.failed")), event(3, event=kind_of(3, "callback_query"))
    )
    found = await setup.next(10)
    assert [(each.tier, each.promoted_from) for each in found] == [("P0", None), ("P1", None), ("P2", None)]
    assert [each.envelope["event"]["external_event_id"] for each in found] == ["event-3", "event-2", "event-1"]


async def test_a_delivery_says_all_that_a_consumer_needs(setup: InboxSetup) -> None:
    (id,) = await accepted(setup, 1)
    accepted_at = setup.clock()
    setup.clock.forward(5)
    (found,) = await setup.next()
    assert (found.message_id, found.queue, found.attempts, found.members, found.member_count) == (
        id,
        "gateway",
        1,
        (),
        0,
    )
    assert (found.accepted_at, found.lease_until) == (accepted_at, setup.clock() + GATEWAY.lease)


async def test_the_guard_holds_across_leases_and_restarts(setup: InboxSetup) -> None:
    await setup.batch(*(mail(f"h{n}", "high_priority") for n in range(25)), *(mail(f"d{n}") for n in range(3)))
    tiers: list[str] = []
    for most in (4, 5, 1, 1, 6, 11):
        tiers += [each.tier for each in await setup.next(most, "email")]
        await setup.restart()
    assert tiers == [
        *["high_priority"] * 10,
        "default",
        *["high_priority"] * 10,
        "default",
        *["high_priority"] * 5,
        "default",
    ]
    assert (await setup.database.run(streaks()))["email"] == {
        "high_priority": 0, "interactive": 0, "default": 3, "history": 0,
    }  # fmt: skip


async def test_queues_do_not_see_each_other(setup: InboxSetup) -> None:
    await setup.batch(mail(1), event(1))
    assert [each.queue for each in await setup.next(10)] == ["gateway"]
    assert [each.queue for each in await setup.next(10, "email")] == ["email"]


async def test_what_is_leased_is_nobody_elses(setup: InboxSetup) -> None:
    ids = await accepted(setup, 30)
    other = Buffer(setup.database, setup.queues, setup.clock)
    found = await asyncio.gather(*(buffer.next("gateway", 4) for buffer in (setup.buffer, other) * 5))
    assert sorted(each.message_id for batch in found for each in batch) == sorted(ids)


async def test_an_empty_queue_yields_nothing_and_keeps_its_streaks(setup: InboxSetup) -> None:
    await accepted(setup, 2)
    await setup.next(2)
    before = await setup.database.run(streaks())
    assert await setup.next(10) == []
    assert await setup.database.run(streaks()) == before


# Ends.


async def test_what_is_acknowledged_is_done(setup: InboxSetup) -> None:
    await accepted(setup, 3)
    found = await setup.next(3)
    assert await setup.ack(found[:2]) == [None, None]
    assert await setup.states() == ["done", "done", "leased"]
    setup.clock.forward(LEASE_S + 1)
    assert await setup.next_ids() == [found[2].message_id]


async def test_an_end_is_made_once(setup: InboxSetup) -> None:
    await accepted(setup, 1)
    found = await setup.next()
    await setup.ack(found)
    before = await dump(setup.database)
    assert lost(await setup.ack(found) + await setup.nack(found)) == [True, True]
    assert await dump(setup.database) == before


async def test_a_foreign_lease_ends_and_returns_nothing(setup: InboxSetup) -> None:
    await accepted(setup, 2)
    first, second = [(await setup.next())[0] for _ in range(2)]
    wrong = [LeaseRef(first.message_id, second.lease_token), LeaseRef(second.message_id, new_id())]
    before = await dump(setup.database)
    outcomes = await setup.buffer.ack(wrong) + await setup.buffer.nack(wrong, "mine")
    assert lost(outcomes) == [True] * 4
    assert "queue.next" in str(outcomes[0])
    assert await dump(setup.database) == before


async def test_each_of_a_list_has_its_own_outcome(setup: InboxSetup) -> None:
    await accepted(setup, 3)
    one, two, three = await setup.next(3)
    await setup.ack([two])
    unknown = LeaseRef(new_id(), one.lease_token)
    assert lost(await setup.buffer.ack([*refs([one, two]), unknown, *refs([three])])) == [False, True, True, False]
    assert await setup.states() == ["done"] * 3


async def test_a_message_named_under_its_own_and_a_foreign_lease_is_ended_by_its_own_alone(setup: InboxSetup) -> None:
    await accepted(setup, 2)
    (mine, other) = await setup.next(2)
    (own,) = refs([mine])
    foreign = LeaseRef(mine.message_id, new_id())
    assert lost(await setup.buffer.ack([foreign, own])) == [True, False]
    (own,) = refs([other])
    assert lost(await setup.buffer.nack([own, LeaseRef(other.message_id, new_id())], "no")) == [False, True]


async def test_a_lease_can_be_used_up_to_its_last_moment(setup: InboxSetup) -> None:
    await accepted(setup, 2)
    one, two = await setup.next(2)
    setup.clock.forward(LEASE_S)
    await setup.buffer.sweep()
    assert lost(await setup.ack([one])) == [False]
    setup.clock.forward(0.001)
    assert lost(await setup.ack([two]) + await setup.nack([two])) == [True, True]
    assert await setup.states() == ["done", "leased"]


async def test_of_an_ack_and_an_expiry_at_the_same_time_one_wins(setup: InboxSetup) -> None:
    await accepted(setup, 20)
    found = await setup.next(20)
    setup.clock.forward(LEASE_S)
    late = ManualClock()
    late.now = setup.clock() + timedelta(seconds=1)
    sweeper = Buffer(setup.database, setup.queues, late)
    acks = [asyncio.create_task(setup.ack([each])) for each in found[:10]]
    sweeping = asyncio.create_task(sweeper.sweep())
    acks += [asyncio.create_task(setup.ack([each])) for each in found[10:]]
    await sweeping
    done = [(await each) == [None] for each in acks]
    assert await setup.states() == ["done" if each else "waiting" for each in done]


# Back to the head.


async def test_what_is_returned_is_the_head_of_its_tier_again(setup: InboxSetup) -> None:
    ids = await accepted(setup, 5)
    found = await setup.next(3)
    await setup.ack(found[:1])
    assert await setup.nack(found[1:], "  the model\nis down ") == [None, None]
    rows = await setup.look()
    assert [(row.state, row.reason) for row in rows[1:3]] == [("waiting", "the model is down")] * 2
    again = await setup.next(10)
    assert [each.message_id for each in again] == ids[1:]
    assert [each.attempts for each in again] == [2, 2, 1, 1]


async def test_what_was_held_too_long_is_the_head_of_its_tier_again(setup: InboxSetup) -> None:
    ids = await accepted(setup, 5)
    held = await setup.next(2)
    setup.clock.forward(LEASE_S + 1)
    await setup.restart()
    again = await setup.next(10)
    assert [each.message_id for each in again] == ids
    assert lost(await setup.ack(held)) == [True, True]
    assert lost(await setup.ack(again)) == [False] * 5


async def test_a_waiting_consumer_gets_what_another_returns(setup: InboxSetup) -> None:
    await accepted(setup, 1)
    held = await setup.next()
    waiting = asyncio.create_task(Buffer(setup.database, clock=setup.clock).next("gateway", 1, timedelta(seconds=30)))
    await setup.nack(held)
    async with asyncio.timeout(PATIENCE_S):
        assert [each.message_id for each in await waiting] == [held[0].message_id]


async def test_what_is_returned_keeps_its_streak_and_its_guard(setup: InboxSetup) -> None:
    """A consumer that fails again and again must not keep the lower tiers from their turn."""
    await setup.batch(event(0, event=kind_of(0, "callback_query")), event(1))
    tiers: list[str] = []
    for _ in range(4):
        found = await setup.next()
        tiers.append(found[0].tier)
        await setup.nack(found)
    assert tiers == ["P0", "P0", "P0", "P2"]


@pytest.mark.parametrize("way", ["nack", "expiry"])
async def test_what_was_handed_out_too_often_fails_with_the_reason(setup: InboxSetup, way: str) -> None:
    ids = await accepted(setup, 2)
    for attempt in range(1, GATEWAY.most_deliveries + 1):
        (found,) = await setup.next()
        assert (found.message_id, found.attempts) == (ids[0], attempt)
        if way == "nack":
            await setup.nack([found], "no luck")
        else:
            setup.clock.forward(LEASE_S + 1)
            await setup.buffer.sweep()
    row = (await setup.look())[0]
    assert (row.state, row.attempts) == ("failed", GATEWAY.most_deliveries)
    assert row.reason is not None
    assert ("no luck" if way == "nack" else "lease ran out") in row.reason
    assert await setup.next_ids() == ids[1:]


async def test_a_message_is_given_up_by_whoever_holds_it_alone(setup: InboxSetup) -> None:
    await accepted(setup, 1)
    ((held,), _) = await setup.database.run(lease(GATEWAY, 1, new_id(), setup.clock(), new_id()))
    setup.clock.forward(LEASE_S + 1)
    with pytest.raises(LeaseLost):
        await setup.database.run(give_up(held, "unreadable", setup.clock()))
    setup.clock.forward(-1)
    await setup.database.run(give_up(held, "unreadable", setup.clock()))
    (row,) = await setup.look()
    assert (row.state, row.reason) == ("failed", "unreadable")


# Settings that change.


async def test_what_waits_in_a_tier_that_is_no_more_goes_where_anything_unknown_goes(setup: InboxSetup) -> None:
    ids = await accepted(setup, 2)
    await accepted(setup, 2, first=2, name="deploy.failed")
    changed = QueuePolicy("gateway", {"P1": 10, "last": 10}, otherwise="last")
    assert await setup.database.run(adopt_strays(changed, 100)) == 2
    assert await setup.database.run(adopt_strays(changed, 100)) == 0
    await setup.restart(Queues([EMAIL, changed]))
    found = await setup.next(10)
    assert [each.tier for each in found] == ["P1", "P1", "last", "last"]
    assert [each.message_id for each in found[2:]] == ids


async def test_what_was_leased_in_a_tier_that_is_no_more_is_handed_out_again_when_it_comes_back(
    setup: InboxSetup,
) -> None:
    ids = await accepted(setup, 1)
    await setup.next()
    changed = QueuePolicy("gateway", {"only": 10}, otherwise="only")
    await setup.database.run(adopt_strays(changed, 100))
    await setup.restart(Queues([EMAIL, changed]))
    setup.clock.forward(LEASE_S + 1)
    assert await setup.next_ids() == ids


# Waiting and bad input.


async def test_whoever_waits_in_vain_gets_nothing(setup: InboxSetup) -> None:
    assert (
        await Buffer(setup.database, clock=setup.clock, poll_s=0.01).next("gateway", 1, timedelta(seconds=0.05)) == []
    )


@pytest.mark.parametrize(
    ("queue", "most", "wait_s", "field"),
    [
        ("gatway", 1, 0, "queue"),
        ("gateway", 0, 0, "max"),
        ("gateway", MOST_AT_ONCE + 1, 0, "max"),
        ("gateway", 1, -1, "wait_s"),
        ("gateway", 1, 60.1, "wait_s"),
    ],
)
async def test_what_cannot_be_asked_for_is_named(
    setup: InboxSetup, queue: str, most: int, wait_s: float, field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        await setup.buffer.next(queue, most, timedelta(seconds=wait_s))
    assert refused.value.field == field


@pytest.mark.parametrize("count", [0, MOST_AT_ONCE + 1])
async def test_a_list_to_end_holds_one_to_a_hundred(setup: InboxSetup, count: int) -> None:
    asked = [LeaseRef(new_id(), new_id()) for _ in range(count)]
    for ending in (setup.buffer.ack(asked), setup.buffer.nack(asked, "no")):
        with pytest.raises(BadInput, match="1 to 100"):
            await ending


@pytest.mark.parametrize("reason", ["", " \n"])
async def test_a_return_without_a_reason_is_refused(setup: InboxSetup, reason: str) -> None:
    await accepted(setup, 1)
    with pytest.raises(BadInput, match="reason"):
        await setup.nack(await setup.next(), reason)
    assert await setup.states() == ["leased"]


@pytest.mark.parametrize("reason", ["\x00", "a\x00b", "\ud800", "x" * 10_000], ids=["nul", "nuls", "half", "long"])
async def test_a_reason_may_be_anything_a_model_writes(setup: InboxSetup, reason: str) -> None:
    await accepted(setup, 1)
    assert await setup.nack(await setup.next(), reason) == [None]
    (row,) = await setup.look()
    assert (row.state, len(row.reason or "") <= 500) == ("waiting", True)

"""Leases of the inbox: in tier order, held by one consumer, ended by it alone, and back at the head otherwise."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from conformance.dump import dump
from conformance.inbox_desk import InboxDesk, event, kind, mail, refs
from conftest import ManualClock
from postroom.core.errors import BadInput, LeaseLost
from postroom.core.queue.queues import EMAIL, GATEWAY, Policy, Queues
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.history import streaks
from postroom.store.inbox import LeaseRef, adopt_strays, give_up, lease
from postroom.switchboard.buffer import MOST_AT_ONCE, Buffer
from support.patience import PATIENCE_S

LEASE_S = GATEWAY.lease.total_seconds()


@pytest.fixture
async def desk(database: Database, clock: ManualClock) -> AsyncIterator[InboxDesk]:
    desk = InboxDesk(database, clock)
    await desk.open_account()
    yield desk
    await desk.close()


async def accepted(desk: InboxDesk, count: int, first: int = 0, name: str = "deploy.done") -> list[UUID]:
    answers = await desk.ingest(*(event(first + n, event=kind_of(first + n, name)) for n in range(count)))
    return [each.request_id for each in answers]


def kind_of(number: int, name: str) -> dict[str, str]:
    return {"external_event_id": f"event-{number}", **kind(name)}


def lost(outcomes: list[LeaseLost | None]) -> list[bool]:
    return [isinstance(each, LeaseLost) for each in outcomes]


# Order.


async def test_a_tier_is_handed_out_in_accepted_order(desk: InboxDesk) -> None:
    ids = await accepted(desk, 7)
    found = [await desk.next_ids(most) for most in (1, 2, 3, 10, 1)]
    assert found == [ids[:1], ids[1:3], ids[3:6], ids[6:], []]


async def test_higher_tiers_come_first_and_say_what_they_are(desk: InboxDesk) -> None:
    await desk.batch(
        event(1), event(2, event=kind_of(2, "deploy.failed")), event(3, event=kind_of(3, "callback_query"))
    )
    found = await desk.next(10)
    assert [(each.tier, each.promoted_from) for each in found] == [("P0", None), ("P1", None), ("P2", None)]
    assert [each.envelope["event"]["external_event_id"] for each in found] == ["event-3", "event-2", "event-1"]


async def test_a_delivery_says_all_that_a_consumer_needs(desk: InboxDesk) -> None:
    (id,) = await accepted(desk, 1)
    accepted_at = desk.clock()
    desk.clock.forward(5)
    (found,) = await desk.next()
    assert (found.message_id, found.queue, found.attempts, found.members, found.member_count) == (
        id,
        "gateway",
        1,
        (),
        0,
    )
    assert (found.accepted_at, found.lease_until) == (accepted_at, desk.clock() + GATEWAY.lease)


async def test_the_guard_holds_across_leases_and_restarts(desk: InboxDesk) -> None:
    await desk.batch(*(mail(f"h{n}", "high_priority") for n in range(25)), *(mail(f"d{n}") for n in range(3)))
    tiers: list[str] = []
    for most in (4, 5, 1, 1, 6, 11):
        tiers += [each.tier for each in await desk.next(most, "email")]
        await desk.restart()
    assert tiers == [
        *["high_priority"] * 10,
        "default",
        *["high_priority"] * 10,
        "default",
        *["high_priority"] * 5,
        "default",
    ]
    assert (await desk.database.run(streaks()))["email"] == {
        "high_priority": 0, "interactive": 0, "default": 3, "history": 0,
    }  # fmt: skip


async def test_queues_do_not_see_each_other(desk: InboxDesk) -> None:
    await desk.batch(mail(1), event(1))
    assert [each.queue for each in await desk.next(10)] == ["gateway"]
    assert [each.queue for each in await desk.next(10, "email")] == ["email"]


async def test_what_is_leased_is_nobody_elses(desk: InboxDesk) -> None:
    ids = await accepted(desk, 30)
    other = Buffer(desk.database, desk.queues, desk.clock)
    found = await asyncio.gather(*(buffer.next("gateway", 4) for buffer in (desk.buffer, other) * 5))
    assert sorted(each.message_id for batch in found for each in batch) == sorted(ids)


async def test_an_empty_queue_yields_nothing_and_keeps_its_streaks(desk: InboxDesk) -> None:
    await accepted(desk, 2)
    await desk.next(2)
    before = await desk.database.run(streaks())
    assert await desk.next(10) == []
    assert await desk.database.run(streaks()) == before


# Ends.


async def test_what_is_acknowledged_is_done(desk: InboxDesk) -> None:
    await accepted(desk, 3)
    found = await desk.next(3)
    assert await desk.ack(found[:2]) == [None, None]
    assert await desk.states() == ["done", "done", "leased"]
    desk.clock.forward(LEASE_S + 1)
    assert await desk.next_ids() == [found[2].message_id]


async def test_an_end_is_made_once(desk: InboxDesk) -> None:
    await accepted(desk, 1)
    found = await desk.next()
    await desk.ack(found)
    before = await dump(desk.database)
    assert lost(await desk.ack(found) + await desk.nack(found)) == [True, True]
    assert await dump(desk.database) == before


async def test_a_foreign_lease_ends_and_returns_nothing(desk: InboxDesk) -> None:
    await accepted(desk, 2)
    first, second = [(await desk.next())[0] for _ in range(2)]
    wrong = [LeaseRef(first.message_id, second.lease_token), LeaseRef(second.message_id, new_id())]
    before = await dump(desk.database)
    outcomes = await desk.buffer.ack(wrong) + await desk.buffer.nack(wrong, "mine")
    assert lost(outcomes) == [True] * 4
    assert "queue.next" in str(outcomes[0])
    assert await dump(desk.database) == before


async def test_each_of_a_list_has_its_own_outcome(desk: InboxDesk) -> None:
    await accepted(desk, 3)
    one, two, three = await desk.next(3)
    await desk.ack([two])
    unknown = LeaseRef(new_id(), one.lease_token)
    assert lost(await desk.buffer.ack([*refs([one, two]), unknown, *refs([three])])) == [False, True, True, False]
    assert await desk.states() == ["done"] * 3


async def test_a_message_named_under_its_own_and_a_foreign_lease_is_ended_by_its_own_alone(desk: InboxDesk) -> None:
    await accepted(desk, 2)
    (mine, other) = await desk.next(2)
    (own,) = refs([mine])
    foreign = LeaseRef(mine.message_id, new_id())
    assert lost(await desk.buffer.ack([foreign, own])) == [True, False]
    (own,) = refs([other])
    assert lost(await desk.buffer.nack([own, LeaseRef(other.message_id, new_id())], "no")) == [False, True]


async def test_a_lease_can_be_used_up_to_its_last_moment(desk: InboxDesk) -> None:
    await accepted(desk, 2)
    one, two = await desk.next(2)
    desk.clock.forward(LEASE_S)
    await desk.buffer.sweep()
    assert lost(await desk.ack([one])) == [False]
    desk.clock.forward(0.001)
    assert lost(await desk.ack([two]) + await desk.nack([two])) == [True, True]
    assert await desk.states() == ["done", "leased"]


async def test_of_an_ack_and_an_expiry_at_the_same_time_one_wins(desk: InboxDesk) -> None:
    await accepted(desk, 20)
    found = await desk.next(20)
    desk.clock.forward(LEASE_S)
    late = ManualClock()
    late.now = desk.clock() + timedelta(seconds=1)
    sweeper = Buffer(desk.database, desk.queues, late)
    acks = [asyncio.create_task(desk.ack([each])) for each in found[:10]]
    sweeping = asyncio.create_task(sweeper.sweep())
    acks += [asyncio.create_task(desk.ack([each])) for each in found[10:]]
    await sweeping
    done = [(await each) == [None] for each in acks]
    assert await desk.states() == ["done" if each else "waiting" for each in done]


# Back to the head.


async def test_what_is_returned_is_the_head_of_its_tier_again(desk: InboxDesk) -> None:
    ids = await accepted(desk, 5)
    found = await desk.next(3)
    await desk.ack(found[:1])
    assert await desk.nack(found[1:], "  the model\nis down ") == [None, None]
    rows = await desk.look()
    assert [(row.state, row.reason) for row in rows[1:3]] == [("waiting", "the model is down")] * 2
    again = await desk.next(10)
    assert [each.message_id for each in again] == ids[1:]
    assert [each.attempts for each in again] == [2, 2, 1, 1]


async def test_what_was_held_too_long_is_the_head_of_its_tier_again(desk: InboxDesk) -> None:
    ids = await accepted(desk, 5)
    held = await desk.next(2)
    desk.clock.forward(LEASE_S + 1)
    await desk.restart()
    again = await desk.next(10)
    assert [each.message_id for each in again] == ids
    assert lost(await desk.ack(held)) == [True, True]
    assert lost(await desk.ack(again)) == [False] * 5


async def test_a_waiting_consumer_gets_what_another_returns(desk: InboxDesk) -> None:
    await accepted(desk, 1)
    held = await desk.next()
    waiting = asyncio.create_task(Buffer(desk.database, clock=desk.clock).next("gateway", 1, timedelta(seconds=30)))
    await desk.nack(held)
    async with asyncio.timeout(PATIENCE_S):
        assert [each.message_id for each in await waiting] == [held[0].message_id]


async def test_what_is_returned_keeps_its_streak_and_its_guard(desk: InboxDesk) -> None:
    """A consumer that fails again and again must not keep the lower tiers from their turn."""
    await desk.batch(event(0, event=kind_of(0, "callback_query")), event(1))
    tiers: list[str] = []
    for _ in range(4):
        found = await desk.next()
        tiers.append(found[0].tier)
        await desk.nack(found)
    assert tiers == ["P0", "P0", "P0", "P2"]


@pytest.mark.parametrize("way", ["nack", "expiry"])
async def test_what_was_handed_out_too_often_fails_with_the_reason(desk: InboxDesk, way: str) -> None:
    ids = await accepted(desk, 2)
    for attempt in range(1, GATEWAY.most_deliveries + 1):
        (found,) = await desk.next()
        assert (found.message_id, found.attempts) == (ids[0], attempt)
        if way == "nack":
            await desk.nack([found], "no luck")
        else:
            desk.clock.forward(LEASE_S + 1)
            await desk.buffer.sweep()
    row = (await desk.look())[0]
    assert (row.state, row.attempts) == ("failed", GATEWAY.most_deliveries)
    assert row.reason is not None
    assert ("no luck" if way == "nack" else "lease ran out") in row.reason
    assert await desk.next_ids() == ids[1:]


async def test_a_message_is_given_up_by_whoever_holds_it_alone(desk: InboxDesk) -> None:
    await accepted(desk, 1)
    ((held,), _) = await desk.database.run(lease(GATEWAY, 1, new_id(), desk.clock(), new_id()))
    desk.clock.forward(LEASE_S + 1)
    with pytest.raises(LeaseLost):
        await desk.database.run(give_up(held, "unreadable", desk.clock()))
    desk.clock.forward(-1)
    await desk.database.run(give_up(held, "unreadable", desk.clock()))
    (row,) = await desk.look()
    assert (row.state, row.reason) == ("failed", "unreadable")


# Settings that change.


async def test_what_waits_in_a_tier_that_is_no_more_goes_where_anything_unknown_goes(desk: InboxDesk) -> None:
    ids = await accepted(desk, 2)
    await accepted(desk, 2, first=2, name="deploy.failed")
    changed = Policy("gateway", {"P1": 10, "last": 10}, otherwise="last")
    assert await desk.database.run(adopt_strays(changed, 100)) == 2
    assert await desk.database.run(adopt_strays(changed, 100)) == 0
    await desk.restart(Queues([EMAIL, changed]))
    found = await desk.next(10)
    assert [each.tier for each in found] == ["P1", "P1", "last", "last"]
    assert [each.message_id for each in found[2:]] == ids


async def test_what_was_leased_in_a_tier_that_is_no_more_is_handed_out_again_when_it_comes_back(
    desk: InboxDesk,
) -> None:
    ids = await accepted(desk, 1)
    await desk.next()
    changed = Policy("gateway", {"only": 10}, otherwise="only")
    await desk.database.run(adopt_strays(changed, 100))
    await desk.restart(Queues([EMAIL, changed]))
    desk.clock.forward(LEASE_S + 1)
    assert await desk.next_ids() == ids


# Waiting and bad input.


async def test_whoever_waits_in_vain_gets_nothing(desk: InboxDesk) -> None:
    assert await Buffer(desk.database, clock=desk.clock, poll_s=0.01).next("gateway", 1, timedelta(seconds=0.05)) == []


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
    desk: InboxDesk, queue: str, most: int, wait_s: float, field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        await desk.buffer.next(queue, most, timedelta(seconds=wait_s))
    assert refused.value.field == field


@pytest.mark.parametrize("count", [0, MOST_AT_ONCE + 1])
async def test_a_list_to_end_holds_one_to_a_hundred(desk: InboxDesk, count: int) -> None:
    asked = [LeaseRef(new_id(), new_id()) for _ in range(count)]
    for ending in (desk.buffer.ack(asked), desk.buffer.nack(asked, "no")):
        with pytest.raises(BadInput, match="1 to 100"):
            await ending


@pytest.mark.parametrize("reason", ["", " \n"])
async def test_a_return_without_a_reason_is_refused(desk: InboxDesk, reason: str) -> None:
    await accepted(desk, 1)
    with pytest.raises(BadInput, match="reason"):
        await desk.nack(await desk.next(), reason)
    assert await desk.states() == ["leased"]


@pytest.mark.parametrize("reason", ["\x00", "a\x00b", "\ud800", "x" * 10_000], ids=["nul", "nuls", "half", "long"])
async def test_a_reason_may_be_anything_a_model_writes(desk: InboxDesk, reason: str) -> None:
    await accepted(desk, 1)
    assert await desk.nack(await desk.next(), reason) == [None]
    (row,) = await desk.look()
    assert (row.state, len(row.reason or "") <= 500) == ("waiting", True)

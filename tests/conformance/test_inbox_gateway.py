"""Waiting events in the gateway: they age, become summaries, or end unprocessed; nothing is lost."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import pytest

from postroom.core.queue.queues import EMAIL, GATEWAY, QueuePolicy, Queues
from postroom.intake.buffer import Buffer, Delivery
from postroom.store.engine.database import Database
from postroom.store.intake import inbox
from postroom.store.intake.history import streaks
from support.clocks import ManualClock
from support.store.inbox_setup import InboxSetup, check_books, event

PATIENT = replace(GATEWAY, auto_ack_after={}, coalesce_within={})
KEEPING = replace(GATEWAY, auto_ack_after={})
KINDS = {"P0": "callback_query", "P1": "deploy.failed", "P2": "deploy.done", "P3": "test.passed"}


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


def with_gateway(setup: InboxSetup, policy: QueuePolicy) -> InboxSetup:
    return InboxSetup(setup.database, setup.clock, Queues([EMAIL, policy]))


class Arrivals:
    """Hands in events of given tiers, each with a number of its own."""

    def __init__(self, setup: InboxSetup) -> None:
        self._desk = setup
        self._count = 0

    async def __call__(self, *tiers: str) -> list[UUID]:
        ids: list[UUID] = []
        for tier in tiers:
            self._count += 1
            name = {"external_event_id": f"event-{self._count}", "kind": KINDS.get(tier)}
            (answer,) = await self._desk.ingest(event(self._count, event=name))
            ids.append(answer.request_id)
        return ids


@pytest.fixture
def arrive(setup: InboxSetup) -> Arrivals:
    return Arrivals(setup)


def shown(deliveries: list[Delivery]) -> list[tuple[UUID, str, str | None]]:
    return [(each.message_id, each.tier, each.promoted_from) for each in deliveries]


# Aging.


async def test_what_waited_longer_than_five_minutes_counts_one_tier_higher(setup: InboxSetup, arrive: Arrivals) -> None:
    (old,) = await arrive("P2")
    setup.clock.forward(301)
    urgent, young, other = await arrive("P0", "P1", "P2")
    assert shown(await setup.next(10)) == [
        (urgent, "P0", None),
        (young, "P1", None),
        (old, "P1", "P2"),
        (other, "P2", None),
    ]


async def test_nothing_ages_before_its_time(setup: InboxSetup, arrive: Arrivals) -> None:
    (old,) = await arrive("P2")
    setup.clock.forward(300)
    (young,) = await arrive("P1")
    assert shown(await setup.next(10)) == [(young, "P1", None), (old, "P2", None)]


async def test_an_aged_message_goes_after_the_own_ones_of_the_tier_it_counts_for(
    setup: InboxSetup, arrive: Arrivals
) -> None:
    p2, p1 = await arrive("P2", "P1")
    setup.clock.forward(301)
    assert shown(await setup.next(10)) == [(p1, "P1", None), (p2, "P1", "P2")]


async def test_p3_ages_into_p2_where_nothing_ends_unprocessed(setup: InboxSetup, arrive: Arrivals) -> None:
    (p3,) = await arrive("P3")
    setup.clock.forward(301)
    (p2,) = await arrive("P2")
    assert shown(await with_gateway(setup, PATIENT).next(10)) == [(p2, "P2", None), (p3, "P2", "P3")]


async def test_the_streak_of_an_aged_message_is_kept_for_the_tier_it_counted_for(
    setup: InboxSetup, arrive: Arrivals
) -> None:
    await arrive("P2")
    setup.clock.forward(301)
    await setup.next()
    assert (await setup.database.run(streaks()))["gateway"] == {"P0": 0, "P1": 1, "P2": 0, "P3": 0}


async def test_an_aged_message_is_kept_where_it_was_accepted(setup: InboxSetup, arrive: Arrivals) -> None:
    """Nothing is rewritten: what comes back waits in its own tier."""
    await arrive("P2")
    setup.clock.forward(301)
    await setup.nack(await setup.next())
    (row,) = await setup.look()
    assert (row.tier, row.state) == ("P2", "waiting")


# Coalescing.


async def test_all_waiting_p3_become_one_summary_to_which_they_are_linked(setup: InboxSetup, arrive: Arrivals) -> None:
    members = await arrive("P3", "P3", "P3")
    setup.clock.forward(60)
    members += await arrive("P3")
    (summary,) = await setup.next(10)
    assert summary.message_id not in members
    assert (summary.member_count, list(summary.members)) == (4, members)
    assert (summary.tier, summary.envelope["event"]["kind"]) == ("P3", "summary")
    assert "4 events: 4 × test.passed" in summary.envelope["payload"]["normalized_text"]
    assert "- event 4" in summary.envelope["payload"]["normalized_text"]
    rows = await setup.look()
    assert [row.state for row in rows] == ["coalesced"] * 4 + ["leased"]
    assert {row.linked_to for row in rows[:4]} == {summary.message_id}
    assert all(row.reason for row in rows[:4])
    check_books(rows, accepted=4)


async def test_a_summary_is_the_last_of_a_batch_and_what_comes_later_is_not_in_it(
    setup: InboxSetup, arrive: Arrivals
) -> None:
    (p2,) = await arrive("P2")
    members = await arrive("P3", "P3")
    first, summary = await setup.next(10)
    assert (first.message_id, list(summary.members)) == (p2, members)
    (late,) = await arrive("P3")
    assert [each.message_id for each in await setup.next(10)] == [late]


async def test_a_p3_alone_is_handed_out_as_it_is(setup: InboxSetup, arrive: Arrivals) -> None:
    (only,) = await arrive("P3")
    (found,) = await setup.next(10)
    assert (found.message_id, found.member_count, found.members) == (only, 0, ())


async def test_only_the_young_are_gathered(setup: InboxSetup, arrive: Arrivals) -> None:
    keeping = with_gateway(setup, KEEPING)
    (old,) = await arrive("P3")
    setup.clock.forward(60.001)
    young = await arrive("P3", "P3")
    first, summary = await keeping.next(10)
    assert first.message_id == old
    assert list(summary.members) == young


async def test_what_came_back_is_not_gathered_but_handed_out_again(setup: InboxSetup, arrive: Arrivals) -> None:
    (first,) = await arrive("P3")
    await setup.nack(await setup.next())
    members = await arrive("P3", "P3")
    again, summary = await setup.next(10)
    assert (again.message_id, again.attempts) == (first, 2)
    assert list(summary.members) == members


async def test_a_summary_that_comes_back_is_handed_out_again_with_its_members(
    setup: InboxSetup, arrive: Arrivals
) -> None:
    members = await arrive("P3", "P3")
    (summary,) = await setup.next(10)
    await setup.nack([summary])
    await setup.restart()
    later = await arrive("P3", "P3")
    again, other = await setup.next(10)
    assert (again.message_id, list(again.members), again.attempts) == (summary.message_id, members, 2)
    assert (list(other.members), other.attempts) == (later, 1)
    assert again.envelope == summary.envelope
    await setup.ack([again, other])
    check_books(await setup.look(), accepted=4)
    assert (await setup.states()).count("done") == 2


async def test_a_summary_whose_consumer_died_is_handed_out_again(setup: InboxSetup, arrive: Arrivals) -> None:
    keeping = with_gateway(setup, KEEPING)
    members = await arrive("P3", "P3")
    (summary,) = await keeping.next(10)
    setup.clock.forward(GATEWAY.lease.total_seconds() + 1)
    (again,) = await keeping.next(10)
    assert (again.message_id, list(again.members)) == (summary.message_id, members)


async def test_a_summary_that_is_returned_too_often_fails_and_keeps_its_members(
    setup: InboxSetup, arrive: Arrivals
) -> None:
    await arrive("P3", "P3")
    for _ in range(GATEWAY.most_deliveries):
        await setup.nack(await setup.next(10), "cannot read it")
    rows = await setup.look()
    assert [row.state for row in rows] == ["coalesced", "coalesced", "failed"]
    check_books(rows, accepted=2)


async def test_a_guard_that_is_due_can_make_a_summary(setup: InboxSetup, arrive: Arrivals) -> None:
    await arrive(*["P0"] * 4, "P3", "P3")
    found = await setup.next(10)
    assert [each.tier for each in found] == ["P0", "P0", "P0", "P3"]
    assert found[-1].member_count == 2
    assert [each.tier for each in await setup.next(10)] == ["P0"]


async def test_of_very_many_members_the_first_are_named_and_all_are_counted(
    setup: InboxSetup, arrive: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "MOST_MEMBERS_NAMED", 3)
    monkeypatch.setattr(inbox, "LARGEST_SUMMARY", 5)
    members = await arrive(*["P3"] * 7)
    (summary,) = await setup.next(10)
    assert (list(summary.members), summary.member_count) == (members[:3], 5)
    await setup.nack([summary])
    (rest,), (again,) = await setup.next(10), await setup.next(10)
    assert list(rest.members) == members[5:]
    assert (list(again.members), again.member_count) == (members[:3], 5)
    check_books(await setup.look(), accepted=7)


async def test_of_several_consumers_one_gets_the_summary(setup: InboxSetup, arrive: Arrivals) -> None:
    await arrive(*["P3"] * 20)
    buffers = [Buffer(setup.database, setup.queues, setup.clock) for _ in range(4)]
    found = await asyncio.gather(*(each.next("gateway", 10) for each in buffers))
    assert [each.member_count for batch in found for each in batch] == [20]


# What nobody needs any more.


@pytest.mark.parametrize("way", ["sweep", "lease"])
async def test_a_p3_older_than_a_minute_ends_as_auto_acked_with_its_reason(
    setup: InboxSetup, arrive: Arrivals, way: str
) -> None:
    await arrive("P3", "P3", "P2")
    setup.clock.forward(60.001)
    if way == "sweep":
        await setup.buffer.sweep()
    else:
        assert [each.tier for each in await setup.buffer.next("gateway", 10)] == ["P2"]
    rows = await setup.look()
    assert [row.state for row in rows[:2]] == ["auto_acked"] * 2
    assert all(row.reason and "60 s" in row.reason and "P3" in row.reason for row in rows[:2])
    check_books(rows, accepted=3)


async def test_a_p3_of_a_minute_is_still_worth_someones_time(setup: InboxSetup, arrive: Arrivals) -> None:
    (id,) = await arrive("P3")
    setup.clock.forward(60)
    await setup.buffer.sweep()
    assert await setup.next_ids() == [id]


async def test_however_many_are_stale_all_of_them_end(
    setup: InboxSetup, arrive: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "STALE_AT_ONCE", 3)
    await arrive(*["P3"] * 9)
    setup.clock.forward(30)
    (young,) = await arrive("P3")
    setup.clock.forward(31)
    await setup.buffer.sweep()
    assert await setup.states() == ["auto_acked"] * 9 + ["waiting"]
    assert await setup.next_ids() == [young]


async def test_what_is_in_a_consumers_hands_does_not_end_behind_its_back(setup: InboxSetup, arrive: Arrivals) -> None:
    await arrive("P3")
    held = await setup.next()
    setup.clock.forward(120)
    await setup.buffer.sweep()
    assert await setup.ack(held) == [None]


async def test_other_queues_and_tiers_never_end_by_themselves(setup: InboxSetup, arrive: Arrivals) -> None:
    await arrive("P0", "P1", "P2")
    setup.clock.forward(10**6)
    await setup.buffer.sweep()
    assert await setup.states() == ["waiting"] * 3

"""Messages that ended unread, summaries with their members, dismissals, and how deep queues were."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from postroom.core.queue.queues import GATEWAY
from postroom.operations.people.audit import signature
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.installation.rollups import hourly
from postroom.store.intake.queue_depths import (
    DepthSample,
    depths_between,
    keep_depths,
    prune_depths,
    sampled_spans,
    tier_depths,
    tiers_in,
)
from postroom.store.intake.unread import (
    DISMISSED,
    dismiss_waiting,
    list_summaries,
    list_unread,
    load_summary,
    members_of,
)
from postroom.store.people.audit import list_audit
from support.clocks import ManualClock
from support.store.inbox_setup import InboxSetup, event, kind, mail


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


async def test_a_summary_is_listed_with_its_members(setup: InboxSetup) -> None:
    made = await setup.ingest(*(event(number, event=kind("test.run")) for number in range(4)))
    (delivery,) = await setup.next(1)
    (summary,) = await setup.database.run(list_summaries("gateway", None, 10))
    assert (summary.message_id, summary.members, summary.state) == (delivery.message_id, 4, "leased")
    assert await setup.database.run(load_summary(summary.message_id)) == summary
    assert await setup.database.run(load_summary(made[0].request_id)) is None
    members = await setup.database.run(members_of(summary.message_id, -1, 3))
    members += await setup.database.run(members_of(summary.message_id, members[-1].seq, 3))
    assert [each.message_id for each in members] == [each.request_id for each in made]
    assert {each.state for each in members} == {"coalesced"}
    assert await setup.database.run(list_summaries("gateway", summary.seq, 10)) == []
    assert await setup.database.run(list_summaries("email", None, 10)) == []


async def test_what_waited_too_long_is_listed_with_the_reason_in_pages(setup: InboxSetup) -> None:
    made = await setup.ingest(*(event(number, event=kind("test.run")) for number in range(3)))
    setup.clock.forward(61)
    await setup.next(1)
    first = await setup.database.run(list_unread("gateway", "auto_acked", None, 2))
    rest = await setup.database.run(list_unread("gateway", "auto_acked", first[-1].seq, 2))
    assert [each.message_id for each in [*first, *rest]] == [each.request_id for each in reversed(made)]
    assert first[0].reason is not None
    assert "waited longer" in first[0].reason
    assert await setup.database.run(list_unread("email", "auto_acked", None, 2)) == []
    assert await setup.database.run(list_unread("gateway", "failed", None, 2)) == []


async def test_a_dismissed_message_ends_unread_and_can_be_replayed(setup: InboxSetup) -> None:
    one, two = await setup.ingest(event(1), event(2))
    signed = signature("person:mara", "operator")
    assert await setup.database.run(dismiss_waiting("gateway", [one.request_id, new_id()], signed, setup.clock())) == 1
    assert await setup.states() == ["auto_acked", "waiting"]
    (ended,) = await setup.database.run(list_unread("gateway", "auto_acked", None, 10))
    assert (ended.message_id, ended.reason) == (one.request_id, DISMISSED)
    (entry,) = await setup.database.run(list_audit(10))
    assert (entry.action, entry.object_id, entry.actor) == ("queue.dismiss", "gateway", "person:mara")
    (copy,) = await setup.replay(
        "gateway",
        since=setup.clock() - timedelta(days=1),
        until=setup.clock() + timedelta(days=1),
        ids=[one.request_id],
    )
    assert await setup.next_ids() == [two.request_id, copy]


async def test_only_what_waits_in_the_queue_is_dismissed(setup: InboxSetup) -> None:
    (one,) = await setup.ingest(event(1))
    signed = signature("person:mara", "operator")
    assert await setup.database.run(dismiss_waiting("email", [one.request_id], signed, setup.clock())) == 0
    await setup.next(1)
    assert await setup.database.run(dismiss_waiting("gateway", [one.request_id], signed, setup.clock())) == 0
    assert await setup.states() == ["leased"]
    assert await setup.database.run(list_audit(10)) == []


async def test_an_override_of_the_guard_is_counted_by_hour(setup: InboxSetup) -> None:
    await setup.ingest(*(mail(number, "high_priority") for number in range(12)), mail("low"))
    await setup.next(13, "email")
    now = setup.clock()
    counts = await setup.database.run(hourly("override", now - timedelta(hours=1), now + timedelta(hours=1)))
    assert [(each.queue, each.name, each.count) for each in counts] == [("email", "default", 1)]


async def test_the_depth_of_a_tier_is_counted_up_to_a_limit(setup: InboxSetup) -> None:
    await setup.ingest(*(event(number) for number in range(4)))
    began = setup.clock()
    setup.clock.forward(5)
    await setup.ingest(event("last"))
    await setup.next(1)
    found = {each.tier: each for each in await setup.database.run(tier_depths("gateway", GATEWAY.tiers, 3))}
    assert (found["P2"].waiting, found["P2"].leased, found["P2"].oldest) == (3, 1, began)
    assert (found["P0"].waiting, found["P0"].leased, found["P0"].oldest) == (0, 0, None)
    assert await setup.database.run(tiers_in("gateway")) == ["P2"]


async def test_samples_become_the_deepest_of_each_span(database: Database, clock: ManualClock) -> None:
    since = clock()
    for minutes, waiting in ((0, 3), (5, 9), (10, 4), (65, 1)):
        at = since + timedelta(minutes=minutes)
        await database.run(keep_depths([DepthSample("email", "default", waiting)], at))
    await database.run(keep_depths([DepthSample("email", "default", 77)], since))
    until = since + timedelta(hours=2)
    found = await database.run(depths_between("email", since, until, 3600))
    assert found == [(0, "default", 9), (1, "default", 1)]
    assert await database.run(depths_between("gateway", since, until, 3600)) == []
    assert await database.run(sampled_spans(since, until, 1800)) == [0, 2]
    assert await database.run(sampled_spans(since + timedelta(minutes=15), since + timedelta(minutes=65), 3600)) == []
    assert await database.run(prune_depths(since + timedelta(hours=1))) == 3

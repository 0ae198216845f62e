"""Peeking at queues, replaying past messages, and pruning old ones."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from postroom.core.errors import BadInput
from postroom.core.queue.queues import EMAIL, Queues
from postroom.core.tally import Gauges
from postroom.operations.backfill.keeper import Keeper
from postroom.operations.jobs.queues import peek, queue_stats
from postroom.store.engine.database import Database
from postroom.store.intake import history, inbox
from postroom.store.people.audit import list_audit
from support.clocks import ManualClock
from support.store.dump import dump
from support.store.inbox_setup import InboxSetup, check_books, event, kind, mail, metadata

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def setup(database: Database, clock: ManualClock) -> AsyncIterator[InboxSetup]:
    setup = InboxSetup(database, clock)
    await setup.open_account()
    yield setup
    await setup.close()


def of_kind(number: int, name: str) -> dict[str, object]:
    return event(number, event={"external_event_id": f"event-{number}", **kind(name)})


async def accepted(setup: InboxSetup, count: int, first: int = 0) -> list[UUID]:
    return [each.request_id for each in await setup.ingest(*(event(first + n) for n in range(count)))]


async def replayed(
    setup: InboxSetup, queue: str = "gateway", since: datetime = LONG_AGO, **asked: object
) -> list[UUID]:
    setup.clock.forward(1)
    return await setup.replay(queue, since=since, **asked)


# Looking.


async def test_a_peek_shows_the_first_that_wait_and_takes_nothing(setup: InboxSetup) -> None:
    ids = await accepted(setup, 3)
    (urgent,) = await setup.ingest(of_kind(9, "deploy.failed"))
    await setup.next()
    before = await dump(setup.database)
    found = await peek(setup.database, setup.queues, "gateway", 2)
    assert [each.message_id for each in found] == ids[:2]
    assert (found[0].tier, found[0].state, found[0].attempts, found[0].channel) == ("P2", "waiting", 0, "webhook")
    assert (found[0].accepted_at, found[0].envelope["sender"]) == (setup.clock(), {"identity": "builder"})
    assert await dump(setup.database) == before
    assert urgent.request_id not in [
        each.message_id for each in await peek(setup.database, setup.queues, "gateway", 10)
    ]


async def test_a_peek_shows_no_more_than_it_was_asked_for_whatever_the_tiers(setup: InboxSetup) -> None:
    ids = await accepted(setup, 4)
    urgent = [each.request_id for each in await setup.ingest(of_kind(8, "deploy.failed"), of_kind(9, "deploy.failed"))]
    assert [each.message_id for each in await peek(setup.database, setup.queues, "gateway", 3)] == [*urgent, ids[0]]


async def test_a_peek_shows_higher_tiers_first_and_each_in_accepted_order(setup: InboxSetup) -> None:
    await setup.batch(event(1), of_kind(2, "test.x"), event(3), of_kind(4, "deploy.failed"))
    found = await peek(setup.database, setup.queues, "gateway", 3)
    assert [each.envelope["event"]["external_event_id"] for each in found] == ["event-4", "event-1", "event-3"]


@pytest.mark.parametrize(
    ("queue", "most", "field"), [("gatway", 1, "queue"), ("gateway", 0, "max"), ("gateway", 101, "max")]
)
async def test_a_peek_at_nothing_sensible_is_refused(setup: InboxSetup, queue: str, most: int, field: str) -> None:
    with pytest.raises(BadInput) as refused:
        await peek(setup.database, setup.queues, queue, most)
    assert refused.value.field == field


async def test_depths_and_stats_say_how_much_waits_since_when(setup: InboxSetup) -> None:
    start = setup.clock()
    await accepted(setup, 3)
    setup.clock.forward(10)
    await setup.ingest(mail(1), mail(2, "high_priority"))
    await setup.next()
    depths = {(each.queue, each.tier, each.state): each for each in await setup.database.run(history.depths())}
    assert {place: each.count for place, each in depths.items()} == {
        ("gateway", "P2", "waiting"): 2,
        ("gateway", "P2", "leased"): 1,
        ("email", "default", "waiting"): 1,
        ("email", "high_priority", "waiting"): 1,
    }
    assert depths["gateway", "P2", "waiting"].oldest == start
    email, gateway = (await queue_stats(setup.database, setup.queues)).queues
    assert [each.tier for each in email.tiers] == ["high_priority", "interactive", "default", "history"]
    assert [(each.waiting, each.leased, each.streak, each.guard) for each in gateway.tiers] == [
        (0, 0, 0, 3),
        (0, 0, 0, 10),
        (2, 1, 1, 10),
        (0, 0, 0, 10),
    ]
    assert [each.oldest_waiting_at for each in gateway.tiers] == [None, None, start, None]


async def test_a_queue_that_the_settings_no_longer_name_is_still_seen(setup: InboxSetup) -> None:
    await accepted(setup, 2)
    await setup.next()
    await setup.restart(Queues([EMAIL]))
    email, gone = (await queue_stats(setup.database, setup.queues)).queues
    assert (email.queue, gone.queue) == ("email", "gateway")
    assert [(each.tier, each.waiting, each.leased) for each in gone.tiers] == [("P2", 1, 1)]


async def test_states_are_counted_by_tier(setup: InboxSetup) -> None:
    await accepted(setup, 3)
    await setup.ack(await setup.next(2))
    assert await setup.database.run(history.count_states("gateway")) == {("P2", "done"): 2, ("P2", "waiting"): 1}
    assert await setup.database.run(history.count_states("email")) == {}


# Replaying.


async def test_past_messages_are_queued_again_in_their_order_and_name_their_originals(setup: InboxSetup) -> None:
    ids = await accepted(setup, 3)
    await setup.ack(await setup.next(3))
    copies = await replayed(setup)
    rows = await setup.look()
    assert [(row.id, row.copy_of, row.state, row.tier) for row in rows[3:]] == [
        (copy, original, "waiting", "P2") for copy, original in zip(copies, ids, strict=True)
    ]
    found = await setup.next(10)
    assert [each.message_id for each in found] == copies
    assert [each.envelope["event"]["external_event_id"] for each in found] == [f"event-{n}" for n in range(3)]
    assert [each.accepted_at for each in found] == [setup.clock()] * 3
    check_books(rows, accepted=6)


async def test_a_replay_is_chosen_by_time_kind_and_id(setup: InboxSetup) -> None:
    start = setup.clock()
    for number in range(4):
        await setup.ingest(of_kind(number, ("deploy.failed", "deploy.done")[number % 2]))
        setup.clock.forward(10)
    ids = [row.id for row in await setup.look()]
    await setup.ack(await setup.next(10))

    async def originals(**asked: object) -> list[UUID | None]:
        copies = await replayed(setup, **asked)  # type: ignore[arg-type]
        return [row.copy_of for row in await setup.look() if row.id in copies]

    end = start + timedelta(seconds=40)
    assert await originals(since=start + timedelta(seconds=10), until=start + timedelta(seconds=30)) == ids[1:3]
    assert await originals(since=start, until=end, kinds=["deploy.failed"]) == ids[::2]
    assert await originals(since=start, until=end, ids=[ids[3], ids[1]]) == [ids[1], ids[3]]
    assert await originals(since=start, until=end, most=2) == ids[:2]
    assert await originals(since=start, until=end, kinds=["other"]) == []
    assert await replayed(setup, "email") == []
    zone = timezone(timedelta(hours=5))
    assert await originals(since=start.astimezone(zone), until=end.astimezone(zone), most=1) == ids[:1]


async def test_what_waits_or_is_held_is_not_past_and_a_duplicate_is_not_replayed(setup: InboxSetup) -> None:
    same = {"normalized_text": "yes"}
    ids = await accepted(setup, 3)
    first, _ = await setup.ingest(event(8, payload=same), event(9, payload=same))
    found = await setup.next(4)
    await setup.ack([found[0], found[3]])
    copies = await replayed(setup)
    rows = {row.id: row for row in await setup.look()}
    assert [rows[copy].copy_of for copy in copies] == [ids[0], first.request_id]


async def test_a_replay_again_brings_the_same_and_not_the_copies_too(setup: InboxSetup) -> None:
    await accepted(setup, 3)
    for _ in range(3):
        await setup.ack(await setup.next(10))
        assert len(await replayed(setup)) == 3
    assert len(await setup.look()) == 12


async def test_a_replay_of_what_was_upgraded_brings_the_full_copy(setup: InboxSetup) -> None:
    await setup.ingest(metadata(event(1)), event(1))
    await setup.ack(await setup.next(10))
    await replayed(setup)
    assert {"number": "1"} in [each.envelope["payload"]["raw"] for each in await setup.next(10)]


async def test_a_replay_of_summarised_events_brings_the_events_and_not_the_summary(setup: InboxSetup) -> None:
    await setup.ingest(*(of_kind(n, "test.x") for n in range(3)))
    await setup.ack(await setup.next(10))
    copies = await replayed(setup)
    assert len(copies) == 3
    (again,) = await setup.next(10)
    assert list(again.members) == copies
    check_books(await setup.look(), accepted=6)


async def test_a_replay_says_who_asked_for_it_and_one_of_nothing_says_nothing(setup: InboxSetup) -> None:
    await accepted(setup, 2)
    await setup.ack(await setup.next(2))
    await replayed(setup, kinds=["none.such"])
    assert await setup.database.run(list_audit(10)) == []
    await replayed(setup)
    (entry,) = await setup.database.run(list_audit(10))
    assert (entry.actor, entry.role, entry.action, entry.object_id) == ("cli", "admin", "queue.replay", "gateway")
    assert entry.after is not None
    assert entry.after["count"] == 2


async def test_a_replayed_message_is_no_duplicate_and_its_event_stays_known_by_the_first_id(setup: InboxSetup) -> None:
    (first,) = await accepted(setup, 1)
    await setup.ack(await setup.next())
    await replayed(setup)
    (again,) = await setup.ingest(event(0))
    assert (again.request_id, again.duplicate) == (first, True)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"queue": "gatway"}, "queue"),
        ({"most": 0}, "max"),
        ({"most": 10_001}, "max"),
        ({"since": datetime(2020, 1, 1)}, "since"),  # noqa: DTZ001
        ({"until": datetime(2026, 12, 1)}, "until"),  # noqa: DTZ001
        ({"since": datetime(2030, 1, 1, tzinfo=UTC)}, "since"),
        ({"until": LONG_AGO}, "since"),
    ],
    ids=str,
)
async def test_a_replay_that_is_invalid_is_refused_by_name(
    setup: InboxSetup, asked: dict[str, object], field: str
) -> None:
    await accepted(setup, 1)
    with pytest.raises(BadInput) as refused:
        await replayed(setup, **asked)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert len(await setup.look()) == 1


# Forgetting.


async def test_only_what_ended_long_ago_is_deleted(setup: InboxSetup) -> None:
    ids = await accepted(setup, 4)
    done, _, _ = await setup.next(3)
    await setup.ack([done])
    setup.clock.forward(100)
    (late,) = await accepted(setup, 1, first=4)
    await setup.ack([each for each in await setup.next(10) if each.message_id == late])
    before = setup.clock()
    setup.clock.forward(100)
    assert await setup.database.run(inbox.prune_inbox("gateway", before, 10)) == 1
    assert await setup.database.run(inbox.prune_inbox("email", setup.clock(), 10)) == 0
    assert {row.id for row in await setup.look()} == {*ids[1:], late}
    assert await setup.database.run(inbox.prune_inbox("gateway", setup.clock(), 10)) == 1
    assert {row.id for row in await setup.look()} == set(ids[1:])


async def test_no_more_are_deleted_at_a_time_than_asked_and_the_oldest_first(setup: InboxSetup) -> None:
    ids = await accepted(setup, 5)
    await setup.ack(await setup.next(5))
    setup.clock.forward(1)
    assert await setup.database.run(inbox.prune_inbox("gateway", setup.clock(), 2)) == 2
    assert {row.id for row in await setup.look()} == set(ids[2:])


async def test_known_events_keys_and_texts_outlive_the_inbox(setup: InboxSetup) -> None:
    await setup.ingest(event(1, control={"idempotency_key": "k"}), mail(1))
    await setup.ack(await setup.next())
    await setup.ack(await setup.next(1, "email"))
    setup.clock.forward(7 * 86_400)
    keeper = Keeper(
        setup.database,
        setup.queues,
        setup.buffer,
        Gauges(),
        keep=timedelta(days=1),
        keep_rollups=timedelta(days=1),
        clock=setup.clock,
    )
    await keeper.prune()
    await keeper.forget_texts()
    assert await setup.look() == []
    tables = {name.removeprefix("postroom."): rows for name, rows in (await dump(setup.database)).items()}
    assert (len(tables["inbox_events"]), len(tables["inbox_keys"])) == (2, 1)
    assert tables["rollups"] == tables["inbox_texts"] == []
    again = await setup.ingest(event(1, control={"idempotency_key": "k"}), mail(1))
    assert [(each.duplicate, each.known_by) for each in again] == [(True, "key"), (True, "event")]
    assert await setup.look() == []


async def test_the_keeper_prunes_all_that_is_due_however_much_it_is(
    setup: InboxSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.operations.backfill.keeper.PRUNED_AT_ONCE", 2)
    await accepted(setup, 7)
    await setup.ack(await setup.next(6))
    setup.clock.forward(86_400 + 1)
    keep = timedelta(days=1)
    keeper = Keeper(
        setup.database, setup.queues, setup.buffer, Gauges(), keep=keep, keep_rollups=keep, clock=setup.clock
    )  # fmt: skip
    await keeper.prune()
    assert await setup.states() == ["waiting"]

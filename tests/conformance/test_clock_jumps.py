"""A clock that was an hour ahead delays nothing by more than one lease, and loses nothing."""

from datetime import timedelta

import pytest

from conformance.desk import LEASE, Desk
from conformance.fault_cases_clock import HOUR, leased_message
from conformance.fault_cases_contacts import ENDPOINT, asked
from conformance.fault_cases_outbound import leased_delivery
from conformance.inbox_desk import event
from conformance.test_outbound_delivery import shown, started
from postroom.core.queue.queues import EMAIL, GATEWAY, Queues
from postroom.jobs.rescue import Rescuer
from postroom.outbound.pace import Pace
from postroom.store import outbound
from postroom.store.connector_requests import ask_connector, lease_requests
from postroom.store.engine import clock_jumps
from postroom.store.engine.clock import ServerClock, clock_of, wall_clock
from postroom.store.engine.clock_jumps import Longest
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.switchboard.intake import Intake

AN_HOUR_S = HOUR.total_seconds()


async def undo_the_future(desk: Desk) -> None:
    await desk.database.run(clock_jumps.shorten_other_leases(Longest(), desk.clock()))
    await desk.database.run(clock_jumps.end_waits_ahead(desk.clock()))


async def test_what_a_dead_worker_held_is_rescued_one_lease_after_the_clock_was_put_right(desk: Desk) -> None:
    desk.clock.forward(AN_HOUR_S)
    job = await desk.claimed()
    desk.clock.forward(-AN_HOUR_S)
    rescuer = Rescuer(desk.database, desk.clock)
    assert (await rescuer.tick()).workers == 0, "its owner may live, and has one lease to show it"
    desk.clock.forward(LEASE.total_seconds() + 1)
    assert (await rescuer.tick()).requeued == 1
    assert await desk.state(job.id) == "queued"


async def test_a_worker_that_lives_keeps_its_work_when_the_clock_is_put_right(desk: Desk) -> None:
    desk.clock.forward(AN_HOUR_S)
    job = await desk.claimed()
    desk.clock.forward(-AN_HOUR_S)
    await Rescuer(desk.database, desk.clock).tick()
    assert await desk.finish(job) == {job.seq}


async def test_an_honest_lease_is_left_alone(desk: Desk) -> None:
    await desk.claimed()
    assert await desk.database.run(clock_jumps.shorten_worker_leases(desk.clock())) == 0
    desk.clock.forward(-1)
    assert await desk.database.run(clock_jumps.shorten_worker_leases(desk.clock())) == 0, "clocks differ a little"


async def test_a_message_held_by_a_dead_consumer_is_back_after_one_lease(desk: Desk) -> None:
    desk.clock.forward(AN_HOUR_S)
    buffer = await leased_message(desk)
    desk.clock.forward(-AN_HOUR_S)
    await undo_the_future(desk)
    desk.clock.forward(Longest().message_lease.total_seconds() + 1)
    await buffer.sweep()
    assert len(await buffer.next("gateway", 1)) == 1
    await buffer.close()


async def test_words_said_in_the_future_are_no_repetition_once_the_clock_is_right(desk: Desk) -> None:
    intake = Intake(desk.database, None, desk.clock, queues=Queues())
    desk.clock.forward(AN_HOUR_S)
    await intake.ingest(event(1))
    desk.clock.forward(-AN_HOUR_S)
    await undo_the_future(desk)
    again = await intake.ingest({**event(1), "event": {**event(1)["event"], "external_event_id": "another"}})
    assert not again.duplicate


async def test_a_request_in_the_hands_of_a_dead_connector_is_handed_out_again_after_one_lease(desk: Desk) -> None:
    length = Longest().request_lease
    desk.clock.forward(AN_HOUR_S)
    await desk.database.run(ask_connector(asked(desk), desk.clock()))
    assert await desk.database.run(lease_requests(ENDPOINT, 1, new_id(), length, desk.clock()))
    desk.clock.forward(-AN_HOUR_S)
    await undo_the_future(desk)
    desk.clock.forward(length.total_seconds() + 1)
    assert await desk.database.run(lease_requests(ENDPOINT, 1, new_id(), length, desk.clock()))


async def test_a_retry_counted_from_a_time_to_come_is_due_at_once(desk: Desk) -> None:
    desk.clock.forward(AN_HOUR_S)
    job = await desk.claimed()
    await desk.retry_later(job, seconds=10)
    desk.clock.forward(-AN_HOUR_S)
    await undo_the_future(desk)
    assert await desk.wake_due() == 1


async def test_a_deferred_delivery_counted_from_a_time_to_come_is_due_at_once(desk: Desk) -> None:
    desk.clock.forward(AN_HOUR_S)
    run = await started(desk, is_open=False)
    desk.clock.forward(-AN_HOUR_S)
    await undo_the_future(desk)
    delivery, _ = await shown(desk)
    assert (delivery.state, delivery.not_before) == ("deferred", desk.clock())
    assert run


async def test_what_somebody_chose_the_time_of_keeps_its_time(desk: Desk) -> None:
    desk.clock.forward(AN_HOUR_S)
    wanted = desk.clock() + timedelta(days=2)
    sleeper = await desk.enqueue(not_before=wanted)
    desk.clock.forward(-AN_HOUR_S)
    await undo_the_future(desk)
    assert (await desk.show(sleeper.id)).not_before == wanted


async def test_machines_with_wrong_clocks_agree_by_the_servers(database: Database, monkeypatch: pytest.MonkeyPatch):
    """On SQLite the machine's own clock is everybody's."""
    clock = clock_of(database)
    if database.dialect == "sqlite":
        assert clock is wall_clock
        return
    assert isinstance(clock, ServerClock)
    await database.run(clock_jumps.shorten_worker_leases(clock()))  # any transaction learns the time
    right = wall_clock()
    monkeypatch.setattr("postroom.store.engine.clock.wall_clock", lambda: right + HOUR)
    assert abs(clock() - right) < timedelta(minutes=10)


def test_the_servers_clock_is_carried_on_by_one_that_never_jumps():
    boot = [100.0]
    clock = ServerClock(lambda: boot[0])
    asked_at = clock.asking()
    boot[0] = 100.2
    server_time = wall_clock() - timedelta(days=300)
    clock.learn(server_time, asked_at)
    assert not clock.is_due
    boot[0] = 160.1
    assert abs(clock() - (server_time + timedelta(seconds=60))) < timedelta(milliseconds=1)
    assert clock.is_due


@pytest.mark.parametrize(("ahead_s", "ended"), [(0, 0), (5, 0), (6, 1)])
async def test_a_wait_that_was_counted_by_a_clock_a_little_ahead_goes_on(desk: Desk, ahead_s: int, ended: int) -> None:
    desk.clock.forward(ahead_s)
    await desk.retry_later(await desk.claimed(), seconds=60)
    desk.clock.forward(-ahead_s)
    assert await desk.database.run(clock_jumps.end_waits_ahead(desk.clock())) == ended


@pytest.mark.parametrize(("ahead_s", "ended"), [(0, 0), (5, 0), (6, 1)])
async def test_a_deferral_by_a_clock_a_little_ahead_goes_on(desk: Desk, ahead_s: int, ended: int) -> None:
    leased = await leased_delivery(desk)
    written = desk.clock() + timedelta(seconds=ahead_s)
    await desk.database.run(outbound.defer(leased.hold, None, written + HOUR, "503", written))
    assert await desk.database.run(clock_jumps.end_waits_ahead(desk.clock())) == ended


@pytest.mark.parametrize(("ahead_s", "ended"), [(0, 0), (5, 0), (6, 1)])
async def test_words_and_leases_of_a_clock_a_little_ahead_count_on(desk: Desk, ahead_s: int, ended: int) -> None:
    intake = Intake(desk.database, None, desk.clock, queues=Queues())
    desk.clock.forward(ahead_s)
    await intake.ingest(event(1))
    desk.clock.forward(-ahead_s)
    assert await desk.database.run(clock_jumps.shorten_other_leases(Longest(), desk.clock())) == ended


def test_the_server_is_asked_for_its_time_every_ten_seconds() -> None:
    boot = [100.0]
    clock = ServerClock(lambda: boot[0])
    assert clock.is_due, "nobody has asked yet"
    clock.learn(wall_clock(), clock.asking())
    boot[0] = 109.9
    assert not clock.is_due
    boot[0] = 110.0
    assert clock.is_due


def test_leases_are_as_long_as_the_queues_and_senders_that_come_with_postroom_have_them() -> None:
    assert Longest().message_lease == max(policy.lease for policy in (EMAIL, GATEWAY))
    assert Longest().delivery_lease == Pace().lease
    assert Longest().same_text == GATEWAY.same_text_within

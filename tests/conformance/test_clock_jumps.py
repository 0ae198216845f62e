"""A clock that was an hour ahead delays nothing by more than one lease, and loses nothing."""

from datetime import timedelta

import pytest

from postroom.core.jobs.types import CATALOGUE
from postroom.core.queue.queues import EMAIL, GATEWAY, Queues
from postroom.intake.intake import Intake
from postroom.jobs.rescue import Rescuer
from postroom.jobs.schedule import Recurring, Scheduler
from postroom.operations.people.people import hashed
from postroom.outbound.queue.pace import Pace
from postroom.store.actions import actions, approvals
from postroom.store.engine import clock_jumps
from postroom.store.engine.clock import ServerClock, clock_of
from postroom.store.engine.clock_jumps import Longest
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.connector_requests import ask_connector, lease_requests
from postroom.store.jobs.job_builders import unsnooze_job
from postroom.store.outbound import outbound, senders
from postroom.store.people import sessions
from postroom.system.wall_clock import wall_clock
from support.store.action_setup import ActionSetup
from support.store.fault_cases_approvals import LIFE, pending
from support.store.fault_cases_clock import HOUR, leased_message
from support.store.fault_cases_contacts import ENDPOINT, asked
from support.store.fault_cases_outbound import leased_outbound
from support.store.fault_cases_people import opened
from support.store.fault_cases_senders import added, throttle_for_score
from support.store.fault_cases_submissions import submission, submitted
from support.store.inbox_setup import event
from support.store.job_setup import LEASE, TYPES, JobSetup
from support.store.sending import shown, started

AN_HOUR_S = HOUR.total_seconds()


async def undo_the_future(setup: JobSetup, back_by: timedelta | None = None) -> None:
    now = setup.clock()
    await setup.database.run(clock_jumps.shorten_other_leases(Longest(), now))
    await setup.database.run(clock_jumps.end_waits_ahead(now, back_by))
    await setup.database.run(clock_jumps.release_mail_ahead(now, back_by))
    await setup.database.run(clock_jumps.move_deadlines_ahead(now, back_by))


async def test_what_a_dead_worker_held_is_rescued_one_lease_after_the_clock_was_put_right(setup: JobSetup) -> None:
    setup.clock.forward(AN_HOUR_S)
    job = await setup.claimed()
    setup.clock.forward(-AN_HOUR_S)
    rescuer = Rescuer(setup.database, setup.clock)
    assert (await rescuer.tick()).workers == 0, "its owner may live, and has one lease to show it"
    setup.clock.forward(LEASE.total_seconds() + 1)
    assert (await rescuer.tick()).requeued == 1
    assert await setup.state(job.id) == "queued"


async def test_a_worker_that_lives_keeps_its_work_when_the_clock_is_put_right(setup: JobSetup) -> None:
    setup.clock.forward(AN_HOUR_S)
    job = await setup.claimed()
    setup.clock.forward(-AN_HOUR_S)
    await Rescuer(setup.database, setup.clock).tick()
    assert await setup.finish(job) == {job.seq}


async def test_an_honest_lease_is_left_alone(setup: JobSetup) -> None:
    await setup.claimed()
    assert await setup.database.run(clock_jumps.shorten_worker_leases(setup.clock())) == 0
    setup.clock.forward(-1)
    assert await setup.database.run(clock_jumps.shorten_worker_leases(setup.clock())) == 0, "clocks differ a little"


async def test_a_message_held_by_a_dead_consumer_is_back_after_one_lease(setup: JobSetup) -> None:
    setup.clock.forward(AN_HOUR_S)
    buffer = await leased_message(setup)
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    setup.clock.forward(Longest().message_lease.total_seconds() + 1)
    await buffer.sweep()
    assert len(await buffer.next("gateway", 1)) == 1
    await buffer.close()


async def test_words_said_in_the_future_are_no_repetition_once_the_clock_is_right(setup: JobSetup) -> None:
    intake = Intake(setup.database, None, setup.clock, queues=Queues())
    setup.clock.forward(AN_HOUR_S)
    await intake.ingest(event(1))
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    again = await intake.ingest({**event(1), "event": {**event(1)["event"], "external_event_id": "another"}})
    assert not again.duplicate


async def test_a_request_in_the_hands_of_a_dead_connector_is_handed_out_again_after_one_lease(setup: JobSetup) -> None:
    length = Longest().request_lease
    setup.clock.forward(AN_HOUR_S)
    await setup.database.run(ask_connector(asked(setup), setup.clock()))
    assert await setup.database.run(lease_requests(ENDPOINT, 1, new_id(), length, setup.clock()))
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    setup.clock.forward(length.total_seconds() + 1)
    assert await setup.database.run(lease_requests(ENDPOINT, 1, new_id(), length, setup.clock()))


async def test_a_retry_counted_from_a_time_to_come_is_due_at_once(setup: JobSetup) -> None:
    setup.clock.forward(AN_HOUR_S)
    job = await setup.claimed()
    await setup.retry_later(job, seconds=10)
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    assert await setup.wake_due() == 1


async def test_a_deferred_delivery_counted_from_a_time_to_come_is_due_at_once(setup: JobSetup) -> None:
    setup.clock.forward(AN_HOUR_S)
    run = await started(setup, is_open=False)
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    delivery, _ = await shown(setup)
    assert (delivery.state, delivery.not_before) == ("deferred", setup.clock())
    assert run


async def test_mail_accepted_while_the_clock_was_ahead_leaves_as_soon_as_it_is_right(setup: JobSetup) -> None:
    ada = await added(setup)
    setup.clock.forward(AN_HOUR_S)
    await submitted(setup, submission(ada.id), submission(ada.id))
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    leased = await leased_now(setup)
    assert len(leased) == 2
    assert all(each.attempts == 1 and each.admitted_at <= setup.clock() for each in leased)
    assert all(each.asked_at <= setup.clock() - timedelta(days=1) for each in leased), "looked for among earlier mail"


async def test_mail_that_was_leased_for_nobody_before_the_correction_leaves_all_the_same(setup: JobSetup) -> None:
    """The sender was faster than the leader: the mail had its turn, and its recipients were not due."""
    ada = await added(setup)
    setup.clock.forward(AN_HOUR_S)
    await submitted(setup, submission(ada.id))
    setup.clock.forward(-AN_HOUR_S)
    for early in await leased_now(setup):
        await setup.database.run(outbound.give_back_mail(early.hold, None, setup.clock()))
    await undo_the_future(setup)
    (leased,) = await leased_now(setup)
    assert leased.attempts == 1


async def test_what_a_clock_ahead_has_stored_is_counted_until_it_is_corrected(setup: JobSetup) -> None:
    ada = await added(setup)
    setup.clock.forward(AN_HOUR_S)
    later = setup.clock() + timedelta(days=1)
    await submitted(setup, submission(ada.id), submission(ada.id, not_before=later))
    assert await setup.database.run(clock_jumps.count_written_ahead(setup.clock())) == 0
    setup.clock.forward(-AN_HOUR_S)
    assert await setup.database.run(clock_jumps.count_written_ahead(setup.clock())) == 1, "one has a chosen time"
    await undo_the_future(setup)
    assert await setup.database.run(clock_jumps.count_written_ahead(setup.clock())) == 0


async def test_mail_whose_sender_chose_the_time_keeps_it(setup: JobSetup) -> None:
    ada = await added(setup)
    setup.clock.forward(AN_HOUR_S)
    await submitted(setup, submission(ada.id, not_before=setup.clock() + timedelta(days=2)))
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    assert await leased_now(setup) == []
    setup.clock.forward(timedelta(days=2, hours=1).total_seconds())
    assert len(await leased_now(setup)) == 1


async def test_a_sender_knows_when_the_next_mail_is_due_and_need_not_look_before(setup: JobSetup) -> None:
    ada, now = await added(setup), setup.clock()
    assert await setup.database.run(outbound.next_mail_due()) is None
    await submitted(setup, submission(ada.id, not_before=now + HOUR))
    assert await setup.database.run(outbound.next_mail_due()) == now + HOUR
    await submitted(setup, submission(ada.id))
    due = await setup.database.run(outbound.next_mail_due())
    assert due is not None
    assert due < now, "one waits for its turn"
    assert len(await leased_now(setup)) == 1
    assert await setup.database.run(outbound.next_mail_due()) == now + timedelta(minutes=1), "its holder may die"


async def leased_now(setup: JobSetup) -> list[outbound.LeasedMail]:
    now = setup.clock()
    return await setup.database.run(outbound.lease_mail(new_id(), 10, now, now + timedelta(minutes=1)))


@pytest.mark.parametrize(("back_by", "minutes"), [(None, 30), (HOUR, 10)])
async def test_a_snooze_by_amount_made_while_the_clock_was_ahead_ends_when_its_amount_is_over(
    setup: JobSetup, back_by: timedelta | None, minutes: int
) -> None:
    """It knows how much of it is over if the clock was seen to be set back; otherwise it begins now."""
    setup.clock.forward(AN_HOUR_S)
    begun = await ActionSetup(setup).begun("snooze")
    until = setup.clock() + timedelta(minutes=30)
    waking = unsnooze_job(CATALOGUE, begun.account_id, begun.message_id, begun.id, "Label_1", until, 0, by_amount=True)
    image = {"labels": ["INBOX"], "snooze_until": until.isoformat(), "unsnooze_job_id": str(waking.id)}
    await setup.database.run(actions.keep_pre_image(begun.job, begun.id, image, setup.clock(), [waking], None))
    setup.clock.forward(20 * 60 - AN_HOUR_S)
    await undo_the_future(setup, back_by)
    wanted = setup.clock() + timedelta(minutes=minutes)
    assert (await setup.show(waking.id)).not_before == wanted
    kept = (await setup.database.run(actions.load_action(begun.id))).pre_image
    assert kept is not None
    assert kept["snooze_until"] == wanted.isoformat()
    await undo_the_future(setup, back_by)
    assert (await setup.show(waking.id)).not_before == wanted, "what was corrected is not corrected again"


async def test_a_job_parked_for_a_while_by_a_clock_ahead_looks_again_at_once(setup: JobSetup) -> None:
    setup.clock.forward(AN_HOUR_S)
    await setup.park(await setup.claimed(), seconds=60)
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    assert await setup.wake_due() == 1


async def test_an_approval_asked_for_by_a_clock_ahead_expires_when_its_time_is_over(setup: JobSetup) -> None:
    setup.clock.forward(24 * AN_HOUR_S)
    id = await pending(setup)
    setup.clock.forward(-24 * AN_HOUR_S)
    await undo_the_future(setup)
    shown = await setup.database.run(approvals.show_approval(id))
    assert shown.expires_at == setup.clock() + LIFE


async def test_a_recurring_job_fires_when_the_clock_is_right_again(setup: JobSetup) -> None:
    scheduler = Scheduler(setup.database, TYPES, [Recurring("hourly", "0 * * * *", "plain")], setup.clock)
    setup.clock.forward(24 * AN_HOUR_S)
    await scheduler.begin()
    setup.clock.forward(-24 * AN_HOUR_S)
    await scheduler.begin()
    setup.clock.forward(AN_HOUR_S)
    await scheduler.tick()
    assert len(await setup.claim()) == 1


async def test_a_session_used_by_a_clock_ahead_ends_as_soon_as_any_other(setup: JobSetup) -> None:
    setup.clock.forward(24 * AN_HOUR_S)
    session = await opened(setup.database, setup.clock)
    setup.clock.forward(-24 * AN_HOUR_S)
    await undo_the_future(setup)
    assert await setup.database.run(sessions.find_session(hashed(session.key), setup.clock())) is not None
    setup.clock.forward(30 * 60)
    assert await setup.database.run(sessions.find_session(hashed(session.key), setup.clock())) is None


async def test_a_throttle_for_a_score_begun_by_a_clock_ahead_lasts_as_long_as_it_says(setup: JobSetup) -> None:
    setup.clock.forward(24 * AN_HOUR_S)
    await setup.database.run(await throttle_for_score(setup))
    (before,) = await setup.database.run(senders.list_senders(setup.clock()))
    assert before.throttled_until is not None
    length = before.throttled_until - setup.clock()
    setup.clock.forward(-24 * AN_HOUR_S)
    await undo_the_future(setup)
    (after,) = await setup.database.run(senders.list_senders(setup.clock()))
    assert after.throttled_until == setup.clock() + length


async def test_a_daily_limit_is_not_used_up_by_mail_of_a_day_that_has_not_begun(setup: JobSetup) -> None:
    ada = await added(setup, daily_limit=1)
    setup.clock.forward(24 * AN_HOUR_S)
    await submitted(setup, submission(ada.id))
    setup.clock.forward(-24 * AN_HOUR_S)
    await undo_the_future(setup)
    setup.clock.forward(24 * AN_HOUR_S)
    (answer,) = await submitted(setup, submission(ada.id))
    assert not isinstance(answer, Exception)


async def test_what_somebody_chose_the_time_of_keeps_its_time(setup: JobSetup) -> None:
    setup.clock.forward(AN_HOUR_S)
    wanted = setup.clock() + timedelta(days=2)
    sleeper = await setup.enqueue(not_before=wanted)
    setup.clock.forward(-AN_HOUR_S)
    await undo_the_future(setup)
    assert (await setup.show(sleeper.id)).not_before == wanted


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
async def test_a_wait_that_was_counted_by_a_clock_a_little_ahead_goes_on(
    setup: JobSetup, ahead_s: int, ended: int
) -> None:
    setup.clock.forward(ahead_s)
    await setup.retry_later(await setup.claimed(), seconds=60)
    setup.clock.forward(-ahead_s)
    assert await setup.database.run(clock_jumps.end_waits_ahead(setup.clock())) == ended


@pytest.mark.parametrize(("ahead_s", "ended"), [(0, 0), (5, 0), (6, 1)])
async def test_a_deferral_by_a_clock_a_little_ahead_goes_on(setup: JobSetup, ahead_s: int, ended: int) -> None:
    leased = await leased_outbound(setup)
    written = setup.clock() + timedelta(seconds=ahead_s)
    await setup.database.run(outbound.defer(leased.hold, None, written + HOUR, "503", written))
    assert await setup.database.run(clock_jumps.release_mail_ahead(setup.clock())) == ended


@pytest.mark.parametrize(("ahead_s", "ended"), [(0, 0), (5, 0), (6, 1)])
async def test_words_and_leases_of_a_clock_a_little_ahead_count_on(setup: JobSetup, ahead_s: int, ended: int) -> None:
    intake = Intake(setup.database, None, setup.clock, queues=Queues())
    setup.clock.forward(ahead_s)
    await intake.ingest(event(1))
    setup.clock.forward(-ahead_s)
    assert await setup.database.run(clock_jumps.shorten_other_leases(Longest(), setup.clock())) == ended


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
    assert Longest().queue_leases == {EMAIL.queue: EMAIL.lease}
    assert Longest().mail_lease == Pace().lease
    assert Longest().same_text == GATEWAY.same_text_within

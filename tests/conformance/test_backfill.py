"""Backfill jobs: their moves, their leases, and reports that are lost, repeated, late, or lies."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import product
from random import Random
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.job import MOST_OPEN, BackfillJob, FailedMessage, Progress
from postroom.core.days import DAY, day_in, start_of
from postroom.core.errors import BadInput, Conflict, IllegalMove, LeaseLost, NotFound, Refused, TooManyRequests
from postroom.core.jobs.types import CATALOGUE
from postroom.core.lifecycle import BACKFILL
from postroom.core.queue.queues import EMAIL
from postroom.core.roles import Principal, Role
from postroom.intake.dispatcher import Dispatcher
from postroom.intake.intake import Intake
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.backfill.backfill_work import BackfillWork
from postroom.operations.people.audit import next_entry, signature
from postroom.settings.mailboxes import BackfillSettings
from postroom.settings.sections import ModelSettings
from postroom.store.backfill import backfill, backfill_spend, backfill_work
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Script, transaction
from postroom.store.engine.ids import new_id
from postroom.store.intake.acceptance import Accepted
from postroom.store.people.audit import list_audit
from support.scale import scale
from support.store.fault_cases_backfill import (
    COST,
    ENDPOINT,
    FINANCE,
    WINDOW,
    active,
    capped,
    created,
    day,
    handing_out,
    load,
    reporting,
)
from support.store.fault_cases_registry import signed
from support.store.inbox_setup import mail, metadata
from support.store.job_setup import JobSetup

END = BackfillCursor(WINDOW.date_from - timedelta(days=1), WINDOW.date_from - timedelta(days=1))
START = BackfillCursor.first(WINDOW)


async def ingest(setup: JobSetup, job: BackfillJob, *numbers: int, full: bool = True) -> list[Accepted]:
    intake = Intake(setup.database, None, setup.clock)
    envelopes = [mail(number, control={"backfill_job_id": str(job.id)}) for number in numbers]
    return [await intake.ingest(each if full else metadata(each)) for each in envelopes]


async def report(setup: JobSetup, job: BackfillJob, **given: Any) -> BackfillJob:
    return (await setup.database.run(reporting(setup, job, **given))).job


async def audited(setup: JobSetup) -> list[str]:
    return [each.action for each in reversed(await setup.database.run(list_audit(100))) if "backfill" in each.action]


async def in_status(setup: JobSetup, status: str) -> BackfillJob:
    """A job that came to this status by legal moves."""
    if status == "pending":
        return await load(setup, await created(setup))
    if status == "cost_capped":
        return await capped(setup)
    job = await active(setup)
    match status:
        case "paused":
            await setup.database.run(backfill.pause_backfill(job.id, setup.clock(), signed()))
        case "cancelled":
            await setup.database.run(backfill.cancel_backfill(job.id, setup.clock(), signed()))
        case "completed":
            await report(setup, job, cursor=END, status="completed")
        case "error":
            await report(setup, job, status="error", error="the mailbox burns")
        case _:
            pass
    return await load(setup, job.id)


ASKED = {
    "paused": backfill.pause_backfill,
    "cancelled": backfill.cancel_backfill,
    "pending": backfill.resume_backfill,
}


@pytest.mark.parametrize(("before", "after"), list(product(sorted(BACKFILL.states), sorted(ASKED))))
async def test_people_make_exactly_the_legal_moves(setup: JobSetup, before: str, after: str) -> None:
    job = await in_status(setup, before)
    assert job.status == before
    if BACKFILL.may(before, after):
        await setup.database.run(ASKED[after](job.id, setup.clock(), signed()))
        assert (await load(setup, job.id)).status == after
    elif before == after or (before, after) == ("active", "pending"):
        entries = await setup.database.run(list_audit(100))
        assert await setup.database.run(ASKED[after](job.id, setup.clock(), signed())) == before
        assert (await load(setup, job.id)) == job, "it is so already, and nothing changes"
        assert await setup.database.run(list_audit(100)) == entries
    else:
        with pytest.raises(IllegalMove):
            await setup.database.run(ASKED[after](job.id, setup.clock(), signed()))
        assert (await load(setup, job.id)).status == before


@pytest.mark.parametrize(
    ("before", "reported"), list(product(sorted(BACKFILL.states), ("active", "completed", "error")))
)
async def test_a_connector_ends_an_active_job_that_it_holds_and_no_other(
    setup: JobSetup, before: str, reported: Any
) -> None:
    job = await in_status(setup, before)
    given = replace(job, lease_token=job.lease_token or new_id())
    try:
        await report(setup, given, status=reported, cursor=END if reported == "completed" else None)
    except LeaseLost:
        assert job.lease_token is None
    assert (await load(setup, job.id)).status == (reported if before == "active" else before)


@pytest.mark.parametrize("before", sorted(BACKFILL.states))
async def test_only_a_pending_job_is_started_and_only_a_capped_one_continued(setup: JobSetup, before: str) -> None:
    job = await in_status(setup, before)
    assigned = await setup.database.run(handing_out(setup))
    assert (assigned is not None) is (before == "pending")
    setup.clock.forward(86_400)
    moved = await setup.database.run(backfill_spend.continue_capped(job.id, day(setup), setup.clock(), signed()))
    assert moved is (before == "cost_capped")


async def test_every_step_is_in_the_audit_log(setup: JobSetup) -> None:
    job = await active(setup)
    await setup.database.run(backfill.pause_backfill(job.id, setup.clock(), signed()))
    await setup.database.run(backfill.resume_backfill(job.id, setup.clock(), signed()))
    again = await setup.database.run(handing_out(setup))
    assert again is not None
    await report(setup, again.job, cursor=END, status="completed")
    steps = ["create", "start", "pause", "resume", "start", "complete"]
    assert await audited(setup) == [f"backfill.{step}" for step in steps]


async def test_the_oldest_job_is_handed_out_to_one_connector_only(setup: JobSetup) -> None:
    first = await created(setup)
    setup.clock.forward(1)
    second = await created(setup, replace(FINANCE, target_categories=("travel",)))
    assigned = await setup.database.run(handing_out(setup))
    assert assigned is not None
    assert (assigned.job.id, assigned.job.status, assigned.job.started_at) == (first, "active", setup.clock())
    assert await setup.database.run(handing_out(setup)) is None  # the mailbox is being worked on
    await report(setup, assigned.job, cursor=END, status="completed")
    following = await setup.database.run(handing_out(setup))
    assert following is not None
    assert following.job.id == second


async def test_of_many_connectors_that_poll_at_once_one_gets_the_job(setup: JobSetup) -> None:
    for _ in range(3):
        await created(setup)
    polls = await asyncio.gather(*(setup.database.run(handing_out(setup)) for _ in range(20)))
    assert sum(each is not None for each in polls) == 1
    listed = await setup.database.run(backfill.list_backfills(10, day(setup), setup.clock(), status="active"))
    assert len(listed) == 1


async def test_a_job_whose_connector_died_is_handed_out_again_with_its_cursor(setup: JobSetup) -> None:
    job = await active(setup)
    await report(setup, job, rows_skipped=3, cursor=START.done("18f"))
    setup.clock.forward(backfill_work.LEASE.total_seconds() - 1)
    assert await setup.database.run(handing_out(setup)) is None
    setup.clock.forward(1)
    again = await setup.database.run(handing_out(setup))
    assert again is not None
    assert (again.job.id, again.job.status, again.job.batch_seq) == (job.id, "active", 1)
    assert BackfillCursor.stored(again.job.cursor) == START.done("18f")
    with pytest.raises(LeaseLost):
        await report(setup, replace(job, batch_seq=1), rows_skipped=1)
    assert (await load(setup, job.id)).rows_skipped == 3


async def test_a_lease_that_a_wrong_clock_wrote_is_no_lease(setup: JobSetup) -> None:
    setup.clock.forward(86_400)
    job = await active(setup)
    setup.clock.forward(-86_400)
    again = await setup.database.run(handing_out(setup))
    assert again is not None
    assert again.job.id == job.id


async def test_a_report_that_is_sent_twice_counts_once(setup: JobSetup) -> None:
    job = await active(setup)
    await ingest(setup, job, 1, 2)
    for _ in range(3):
        shown = await report(setup, job, rows_processed=2, rows_skipped=5, cursor=START.done("18f"), cost_micros=7)
        assert (shown.rows_processed, shown.rows_skipped, shown.status) == (2, 5, "active")


async def test_a_report_out_of_order_is_refused(setup: JobSetup) -> None:
    job = await active(setup)
    with pytest.raises(Conflict):
        await report(setup, job, rows_skipped=1, batch_seq=2)
    assert (await load(setup, job.id)).rows_skipped == 0


@pytest.mark.parametrize("stop", [backfill.pause_backfill, backfill.cancel_backfill])
async def test_work_done_before_a_stop_still_counts_and_then_the_lease_ends(setup: JobSetup, stop: Any) -> None:
    job = await active(setup)
    await ingest(setup, job, 1)
    await setup.database.run(stop(job.id, setup.clock(), signed()))
    shown = await report(setup, job, rows_processed=1, cursor=START.done("18f"))
    assert (shown.rows_processed, shown.lease_token) == (1, None)
    assert shown.status in ("paused", "cancelled")
    with pytest.raises(LeaseLost):
        await report(setup, replace(job, batch_seq=1), rows_skipped=1)
    with pytest.raises(Refused):
        await ingest(setup, job, 2)


async def test_whatever_becomes_of_reports_the_counters_equal_the_truth(setup: JobSetup) -> None:
    """Reports are lost, repeated, out of order, late after a pause, or under a lease that has ended."""
    rng, truth, stale = Random(seed := 1211), 0, list[tuple[BackfillJob, dict[str, Any]]]()
    print(f"seed {seed}")
    job = await active(setup, replace(FINANCE, rate_limit_per_hour=1_000_000))
    for _ in range(scale(60, 1_000)):
        given = {"rows_skipped": rng.randint(0, 9), "batch_seq": job.batch_seq + 1}
        match rng.choice(["sent", "sent", "repeated", "lost", "ahead", "stale", "paused", "died"]):
            case "sent" | "repeated" as way:
                for _ in range(1 if way == "sent" else 3):
                    await report(setup, job, **given)
                truth += given["rows_skipped"]
            case "ahead":
                with pytest.raises(Conflict):
                    await report(setup, job, **{**given, "batch_seq": job.batch_seq + rng.randint(2, 9)})
            case "stale" if stale:
                with pytest.raises((LeaseLost, Conflict)):
                    await report(setup, stale[-1][0], **stale[-1][1])
            case "paused":
                await setup.database.run(backfill.pause_backfill(job.id, setup.clock(), signed()))
                for _ in range(rng.randint(1, 2)):
                    await report(setup, job, **given)
                truth += given["rows_skipped"]
                stale.append((job, given))
                await setup.database.run(backfill.resume_backfill(job.id, setup.clock(), signed()))
            case "died":
                stale.append((job, given))
                setup.clock.forward(301)
            case _:
                pass
        job = await load(setup, job.id)
        if (assigned := await setup.database.run(handing_out(setup))) is not None:
            job = assigned.job
        assert job.rows_skipped == truth
    await setup.database.run(backfill.cancel_backfill(job.id, setup.clock(), signed()))
    await report(setup, job, rows_skipped=5)
    with pytest.raises(LeaseLost):
        await report(setup, replace(job, batch_seq=job.batch_seq + 1), rows_skipped=5)
    assert (await load(setup, job.id)).rows_skipped == truth + 5


async def test_a_resumed_job_does_not_listen_to_its_former_holder(setup: JobSetup) -> None:
    job = await active(setup)
    await setup.database.run(backfill.pause_backfill(job.id, setup.clock(), signed()))
    await setup.database.run(backfill.resume_backfill(job.id, setup.clock(), signed()))
    with pytest.raises(LeaseLost):
        await report(setup, job, rows_skipped=1)
    again = await setup.database.run(handing_out(setup))
    assert again is not None
    with pytest.raises(LeaseLost):
        await report(setup, job, rows_skipped=1)
    assert (await report(setup, again.job, rows_skipped=1)).rows_skipped == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"rows_processed": 1}, "rows_processed"),  # nothing arrived
        ({"rows_skipped": -1}, "rows_skipped"),
        ({"cost_micros": -5}, "cost_micros"),
        ({"failed": (FailedMessage("m", "why"),)}, "failed"),
        ({"status": "completed"}, "status"),
        ({"status": "completed", "cursor": START}, "status"),
    ],
)
async def test_a_report_that_cannot_be_true_is_refused(setup: JobSetup, given: dict[str, Any], field: str) -> None:
    job = await active(setup)
    with pytest.raises(BadInput) as refused:
        await report(setup, job, **given)
    assert refused.value.field == field
    assert (await load(setup, job.id)).batch_seq == 0


async def test_a_cursor_never_goes_back(setup: JobSetup) -> None:
    job = await active(setup)
    await report(setup, job, cursor=START.done("18f"))
    with pytest.raises(BadInput):
        await report(setup, replace(job, batch_seq=1), cursor=START.done("190"))


async def test_mail_for_a_job_that_is_not_the_endpoints_or_not_active_is_refused(setup: JobSetup) -> None:
    other = await active(setup, replace(FINANCE, endpoint_identity="gmail:user:ben@example.com"))
    job = await load(setup, await created(setup))
    with pytest.raises(BadInput):
        await ingest(setup, other, 1)
    with pytest.raises(BadInput):
        await ingest(setup, replace(job, id=new_id()), 1)
    with pytest.raises(Refused):
        await ingest(setup, job, 1)  # nobody works on it yet
    intake = Intake(setup.database, None, setup.clock)
    with pytest.raises(BadInput):
        await intake.ingest(mail(1, control={"backfill_job_id": "'; drop table"}))
    assert not (await intake.ingest(mail(1))).duplicate  # nothing of it was remembered


async def test_arrivals_are_counted_and_those_a_model_may_read_are_expected_to_cost(setup: JobSetup) -> None:
    job = await active(setup)
    await Intake(setup.database, None, setup.clock).ingest(mail(1))
    results = await ingest(setup, job, 1, 2, 3)
    assert [each.duplicate for each in results] == [True, False, False]
    await ingest(setup, job, 4, full=False)
    shown = await load(setup, job.id)
    assert (shown.accepted, shown.accepted_new, shown.messages_waiting) == (4, 2, 2)
    assert shown.left_today_micros == 5_000_000 - 2 * COST
    shown = await report(setup, job, rows_processed=4, cost_micros=2 * COST)
    assert (shown.cost_spent_cents, shown.spent_micros) == (6, 0)  # expected, not spent yet


@pytest.mark.parametrize("end", ["failed", "canceled"])
async def test_mail_whose_decision_failed_is_no_longer_expected_to_cost(setup: JobSetup, end: str) -> None:
    job = await active(setup)
    await ingest(setup, job, 1, 2)
    await Dispatcher(setup.database, CATALOGUE, clock=setup.clock).tick()
    deciding = await setup.claim_one()
    assert (await load(setup, job.id)).messages_waiting == 2
    assert await setup.database.run(backfill_spend.release_undecided(setup.clock())) == 0
    await (setup.fail(deciding) if end == "failed" else setup.cancel_claimed(deciding))
    assert [await setup.database.run(backfill_spend.release_undecided(setup.clock())) for _ in "ab"] == [1, 0]
    shown = await load(setup, job.id)
    assert (shown.messages_waiting, shown.left_today_micros) == (1, 5_000_000 - COST)


async def test_cost_beyond_what_arrived_counts_and_caps(setup: JobSetup) -> None:
    job = await active(setup)
    shown = await report(setup, job, cost_micros=4_999_999)
    assert (shown.status, shown.spent_micros, shown.spent_today_micros) == ("active", 4_999_999, 4_999_999)
    shown = await report(setup, replace(job, batch_seq=1), cost_micros=1)
    assert (shown.status, shown.cost_spent_cents, shown.capped_on) == ("cost_capped", 500, day(setup))


@pytest.mark.parametrize("resume_daily", [True, False])
async def test_a_capped_job_continues_on_the_next_day_only_if_asked_to(setup: JobSetup, resume_daily: bool) -> None:
    job = await capped(setup, resume_daily=resume_daily)
    assert await setup.database.run(backfill_spend.capped_backfills(day(setup))) == []
    setup.clock.forward(86_400)
    expected = [job.id] if resume_daily else []
    assert await setup.database.run(backfill_spend.capped_backfills(day(setup))) == expected
    moved = await setup.database.run(backfill_spend.continue_capped(job.id, day(setup), setup.clock(), signed()))
    assert moved is resume_daily
    shown = await load(setup, job.id)
    assert shown.status == ("pending" if resume_daily else "cost_capped")
    assert (shown.spent_today_micros, shown.spent_micros) == (0, 100_000)


@pytest.mark.parametrize("zone", [ZoneInfo("Pacific/Auckland"), ZoneInfo("America/Los_Angeles")], ids=str)
async def test_the_cap_begins_anew_at_midnight_in_the_zone_of_the_settings(setup: JobSetup, zone: ZoneInfo) -> None:
    settings = BackfillSettings.model_validate({"time_zone": zone.key})
    connector = signature(Principal(Role.CONNECTOR, ENDPOINT).actor, Role.CONNECTOR)
    backfills = Backfills(setup.database, settings, ModelSettings.model_validate({}), setup.clock)
    work = BackfillWork(setup.database, backfills, EMAIL, setup.clock)
    id = await created(setup, replace(FINANCE, resume_daily=True, daily_cost_cap_cents=10))
    assert await work.poll("gmail", ENDPOINT, connector) is not None
    state = await work.progress(id, Progress(cost_micros=100_000), next_entry(connector))
    assert state.job.status == "cost_capped"
    midnight = start_of(day_in(setup.clock(), zone) + DAY, zone)
    for moment, status in ((midnight - timedelta(seconds=1), "cost_capped"), (midnight, "pending")):
        setup.clock.now = moment
        await work.begin_day()
        assert (await backfills.load(id)).status == status


async def test_a_background_job_waits_while_live_mail_waits(setup: JobSetup) -> None:
    await created(setup, replace(FINANCE, mode="background"))
    await Intake(setup.database, None, setup.clock).ingest(mail(1))
    assert await setup.database.run(handing_out(setup)) is None
    batch = await created(setup)
    assigned = await setup.database.run(handing_out(setup))
    assert assigned is not None
    assert (assigned.job.id, assigned.live_backlog) == (batch, True)


async def test_the_pace_is_kept_for_whoever_continues(setup: JobSetup) -> None:
    job = await active(setup)
    shown = await report(setup, job, rows_skipped=1)
    assert shown.paced_until == setup.clock() + timedelta(seconds=36)


async def test_a_mailbox_has_a_limit_of_open_jobs_and_overlaps_are_told(setup: JobSetup) -> None:
    first, now = await created(setup), setup.clock()

    async def overlaps(**changes: Any) -> list[UUID]:
        return await setup.database.run(
            backfill.create_backfill(new_id(), replace(FINANCE, **changes), 0, now, signed())
        )

    last, later = WINDOW.date_to, WINDOW.date_to + timedelta(days=1)
    assert await overlaps(date_from=last, date_to=later) == [first]  # both days are inside
    assert await overlaps(target_categories=("travel",)) == []
    assert await overlaps(date_from=later + timedelta(days=1), date_to=later + timedelta(days=2)) == []
    for _ in range(MOST_OPEN - 4):
        await created(setup)
    with pytest.raises(TooManyRequests):
        await created(setup)


async def test_an_unknown_job_or_mailbox_is_named(setup: JobSetup) -> None:
    with pytest.raises(NotFound):
        await load(setup, new_id())
    with pytest.raises(NotFound):
        await setup.database.run(backfill.create_backfill(new_id(), FINANCE, 0, setup.clock(), signed()))


async def test_jobs_are_listed_newest_first_by_pages_and_filters(setup: JobSetup) -> None:
    ids: list[UUID] = []
    for _ in range(5):
        ids.append(await created(setup))
        setup.clock.forward(1)
    await setup.database.run(backfill.cancel_backfill(ids[2], setup.clock(), signed()))

    async def listed(most: int = 10, **filters: Any) -> list[BackfillJob]:
        return await setup.database.run(backfill.list_backfills(most, day(setup), setup.clock(), **filters))

    assert [each.id for each in await listed()] == ids[::-1]
    page = await listed(2)
    rest = await listed(before=Cursor(page[-1].created_at, page[-1].id))
    assert [each.id for each in [*page, *rest]] == ids[::-1]
    assert [each.id for each in await listed(status="cancelled")] == [ids[2]]
    assert await listed(endpoint_identity="gmail:user:ben@example.com") == []
    assert len(await listed(connector_type="gmail", endpoint_identity=ENDPOINT, status="pending")) == 4


async def test_failed_messages_are_kept_with_their_reasons(setup: JobSetup) -> None:
    job = await active(setup)
    failed = (FailedMessage("m1", "too large"), FailedMessage("m2", "not\0 readable"))
    shown = await report(setup, job, rows_skipped=2, failed=failed)
    assert shown.rows_failed == 2
    kept = await setup.database.run(backfill.backfill_failures(job.id, 10))
    assert {each.message_id for each in kept} == {"m1", "m2"}


async def test_calls_are_reserved_under_the_cap_of_the_day_and_held_beyond_it(setup: JobSetup) -> None:
    job = await active(setup, replace(FINANCE, daily_cost_cap_cents=10))  # 100,000 micros

    @transaction
    def reserve(micros: int) -> Script[backfill_spend.Held | None]:
        charge = backfill_spend.BackfillCharge(job.id, day(setup), signed())
        return (yield from backfill_spend.reserving(charge, micros, setup.clock()))

    assert await setup.database.run(reserve(60_000)) is None
    held = await setup.database.run(reserve(60_000))
    assert held is not None
    assert (held.why, held.key) == ("capped", backfill.parking_key(job.id))
    shown = await load(setup, job.id)
    assert (shown.status, shown.spent_today_micros, shown.spent_micros) == ("cost_capped", 60_000, 60_000)
    setup.clock.forward(86_400)
    assert await setup.database.run(reserve(500_000)) is None  # the first message of a day, whatever it costs
    assert (await setup.database.run(reserve(1))) is not None

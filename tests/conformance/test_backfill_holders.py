"""Who works on a backfill, and how fast: one connector at a time, which alone reports, at the rate of the job."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.job import BackfillJob, Progress
from postroom.core.errors import LeaseLost, TooFast
from postroom.core.jobs.types import CATALOGUE
from postroom.core.queue.queues import EMAIL
from postroom.intake.dispatcher import Dispatcher
from postroom.intake.intake import Intake
from postroom.operations.people.audit import signature
from postroom.store.accounts import accounts
from postroom.store.backfill import backfill, backfill_work
from postroom.store.backfill.backfill_spend import held_backfills
from postroom.store.engine.ids import new_id
from postroom.store.intake.acceptance import Accepted
from postroom.store.mail import mail
from postroom.store.people.audit import Signature
from support.store import inbox_setup
from support.store.fault_cases_backfill import (
    ENDPOINT,
    FINANCE,
    WINDOW,
    ZONE,
    active,
    created,
    day,
    handing_out,
    load,
    reporting,
)
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

END = BackfillCursor.end(WINDOW)
MINE, OTHERS = signature("token:mine", "connector"), signature("token:others", "connector")
WAY_BACK = 9 * 24 * 3600.0


def _signed(by: Signature) -> Signature:
    return by._replace(entry_id=new_id())


async def poll(setup: JobSetup, by: Signature = MINE, held: UUID | None = None) -> BackfillJob | None:
    found = await setup.database.run(
        backfill_work.hand_out("gmail", ENDPOINT, new_id(), EMAIL, day(setup), setup.clock(), _signed(by), held)
    )
    return None if found is None else found.job


async def report(setup: JobSetup, job: BackfillJob, by: Signature = MINE, **given: Any) -> BackfillJob:
    reported = backfill_work.record_progress(
        job.id, Progress(**given), EMAIL, ZONE, day(setup), setup.clock(), _signed(by)
    )
    return (await setup.database.run(reported)).job


async def ingest(setup: JobSetup, job: BackfillJob, *numbers: int) -> list[Any]:
    envelopes = [inbox_setup.mail(number, control={"backfill_job_id": str(job.id)}) for number in numbers]
    return await Intake(setup.database, None, setup.clock).ingest_batch(envelopes)


async def accepted(setup: JobSetup, job: BackfillJob, numbers: range) -> int:
    """How many of these are accepted."""
    try:
        return sum(isinstance(each, Accepted) for each in await ingest(setup, job, *numbers))
    except TooFast:
        return 0


async def dispatch(setup: JobSetup) -> None:
    """Store what came in, and enqueue its decisions."""
    await Dispatcher(setup.database, CATALOGUE, clock=setup.clock).tick()


async def test_without_its_token_only_the_connector_that_was_given_the_job_reports(setup: JobSetup) -> None:
    await created(setup)
    job = await poll(setup)
    assert job is not None
    with pytest.raises(LeaseLost):
        await report(setup, job, OTHERS, cursor=END, status="completed")
    with pytest.raises(LeaseLost):
        await report(setup, job, OTHERS, rows_skipped=1)
    assert (await load(setup, job.id)).rows_skipped == 0
    assert (await report(setup, job, rows_skipped=1)).rows_skipped == 1
    assert (await report(setup, job, cursor=END, status="completed")).status == "completed"


async def test_a_connector_that_started_again_takes_its_own_lease_back_and_is_fenced(setup: JobSetup) -> None:
    await created(setup)
    job = await poll(setup)
    assert job is not None
    assert await poll(setup) is None
    assert await poll(setup, held=new_id()) is None
    again = await poll(setup, held=job.lease_token)
    assert again is not None
    assert (again.id, again.status) == (job.id, "active")
    assert again.lease_token != job.lease_token
    with pytest.raises(LeaseLost):
        await report(setup, job, lease_token=job.lease_token, batch_seq=1, rows_skipped=1)
    assert await poll(setup, held=job.lease_token) is None  # it was that of the process before
    assert (await report(setup, job, lease_token=again.lease_token, batch_seq=1, rows_skipped=1)).rows_skipped == 1


async def test_the_lease_of_a_job_that_a_person_paused_is_not_taken_back(setup: JobSetup) -> None:
    job = await active(setup)
    await setup.database.run(backfill.pause_backfill(job.id, setup.clock(), signed()))
    assert await poll(setup, held=job.lease_token) is None


async def test_while_one_job_of_a_mailbox_is_worked_on_none_is_handed_out_that_was_left_before(setup: JobSetup) -> None:
    """A background job was left while live mail waits, a second job is worked on, and then no mail waits any more."""
    left = await created(setup, replace(FINANCE, mode="background"))
    assert await poll(setup) is not None
    setup.clock.forward(backfill_work.LEASE.total_seconds())
    await Intake(setup.database, None, setup.clock).ingest(inbox_setup.mail(1))
    await created(setup)
    second = await poll(setup)
    assert second is not None
    assert second.id != left
    await dispatch(setup)
    assert await poll(setup, OTHERS) is None


async def test_reports_faster_than_the_rate_are_held_and_counted_later(setup: JobSetup) -> None:
    job = await active(setup)  # 100 an hour
    job = (await setup.database.run(reporting(setup, job, rows_skipped=100))).job
    with pytest.raises(TooFast) as held:
        await setup.database.run(reporting(setup, job, rows_skipped=10))
    assert held.value.retry_after == timedelta(seconds=360)
    assert (await load(setup, job.id)).rows_skipped == 100
    setup.clock.forward(360)
    job = (await setup.database.run(reporting(setup, job, rows_skipped=10))).job
    assert job.rows_skipped == 110
    with pytest.raises(TooFast):
        await setup.database.run(reporting(setup, job, rows_skipped=1_000_000))


async def test_a_pause_earns_no_burst_and_a_clock_that_was_wrong_holds_nothing_up(setup: JobSetup) -> None:
    job = await active(setup)
    setup.clock.forward(4 * 60)
    job = (await setup.database.run(reporting(setup, job, rows_skipped=100))).job
    setup.clock.forward(-86_400)
    job = (await setup.database.run(reporting(setup, job, rows_skipped=100))).job
    with pytest.raises(TooFast):
        await setup.database.run(reporting(setup, job, rows_skipped=2))


async def test_new_mail_of_a_backfill_beyond_its_rate_is_refused_for_now(setup: JobSetup) -> None:
    job = await active(setup)
    assert await accepted(setup, job, range(70)) == 70
    assert await accepted(setup, job, range(50, 70)) == 20  # known ones do not count
    assert await accepted(setup, job, range(70, 110)) == 30
    assert await accepted(setup, job, range(200, 220)) == 0
    with pytest.raises(TooFast) as held:
        await ingest(setup, job, 300)
    assert held.value.retry_after == timedelta(seconds=36)
    setup.clock.forward(360)
    assert await accepted(setup, job, range(200, 220)) == 10
    setup.clock.forward(-86_400)  # a clock that was wrong holds nothing up
    assert await accepted(setup, job, range(400, 420)) == 20


async def test_mail_that_is_not_of_a_backfill_knows_no_rate(setup: JobSetup) -> None:
    job = await active(setup, replace(FINANCE, rate_limit_per_hour=1))
    assert await accepted(setup, job, range(100)) == 100
    live = [inbox_setup.mail(number) for number in range(500, 600)]
    results = await Intake(setup.database, None, setup.clock).ingest_batch(live)
    assert all(isinstance(each, Accepted) for each in results)


async def test_parked_decisions_are_released_on_a_new_day_however_long_they_have_waited(setup: JobSetup) -> None:
    """Mail came in and its backfill was paused for more than a week; then the cap holds it back again."""
    job = await active(setup)
    await ingest(setup, job, 1)
    await dispatch(setup)
    setup.clock.forward(WAY_BACK)
    assert await setup.park(await setup.claim_one(), backfill.parking_key(job.id))
    assert await setup.database.run(held_backfills(day(setup))) == [job.id]


async def test_when_an_account_is_removed_its_backfills_are_canceled(setup: JobSetup) -> None:
    """Otherwise they would go on, without anybody's consent, when it is connected again."""
    waiting, job = await created(setup), await active(setup)
    [account] = await setup.database.run(accounts.list_accounts())
    await setup.database.run(accounts.remove_account(account.id, signed(), setup.clock()))
    assert [(await load(setup, id)).status for id in (waiting, job.id)] == ["cancelled", "cancelled"]
    await setup.database.run(mail.keep_account(account.id, "gmail", ENDPOINT, account.email, setup.clock()))
    assert await setup.database.run(handing_out(setup)) is None


async def test_a_new_job_calls_the_connector_at_once_and_a_resumed_one_wakes_a_sleeping_call(
    setup: JobSetup,
) -> None:
    job = await active(setup)
    call = await setup.claim_one()
    assert call.type == "backfill.gmail"
    await setup.retry_later(call, 600)
    assert await setup.claim() == []
    await setup.database.run(backfill.pause_backfill(job.id, setup.clock(), signed()))
    await setup.database.run(backfill.resume_backfill(job.id, setup.clock(), signed()))
    assert [each.id for each in await setup.claim()] == [call.id]

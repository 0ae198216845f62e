"""For each writing verb of backfills: a database in which it has something to do. Also: backfills for other tests."""

from dataclasses import replace
from datetime import date
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from postroom.core.backfill.cursor import BackfillCursor
from postroom.core.backfill.job import BackfillJob, FailedMessage, NewBackfill, Progress
from postroom.core.backfill.window import Window
from postroom.core.days import day_in
from postroom.core.jobs.types import CATALOGUE
from postroom.core.queue.queues import EMAIL
from postroom.intake.dispatcher import Dispatcher
from postroom.intake.intake import Intake
from postroom.store.backfill import backfill, backfill_spend, backfill_work
from postroom.store.engine.database import Script, Transaction, transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail import mail
from support.store import inbox_setup
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

OWNER = "mara@lindqvist.example"
ENDPOINT = f"gmail:user:{OWNER}"
ZONE = ZoneInfo("UTC")
WINDOW = Window(date(2024, 1, 1), date(2024, 1, 31), ZONE)
COST = 30_000
FINANCE = NewBackfill("gmail", ENDPOINT, ("finance",), WINDOW.date_from, WINDOW.date_to, consent=True)


def day(setup: JobSetup) -> str:
    return day_in(setup.clock(), ZONE).isoformat()


async def created(setup: JobSetup, new: NewBackfill = FINANCE, cost: int = COST) -> UUID:
    now, id = setup.clock(), new_id()
    email = new.endpoint_identity.rpartition(":")[2]
    await setup.database.run(mail.keep_account(new_id(), "gmail", new.endpoint_identity, email, now))
    await setup.database.run(backfill.create_backfill(id, new, cost, now, signed()))
    return id


def handing_out(setup: JobSetup, endpoint: str = ENDPOINT) -> Transaction[backfill_work.HeldJob | None]:
    return backfill_work.hand_out("gmail", endpoint, new_id(), EMAIL, day(setup), setup.clock(), signed())


async def active(setup: JobSetup, new: NewBackfill = FINANCE, cost: int = COST) -> BackfillJob:
    await created(setup, new, cost)
    assigned = await setup.database.run(handing_out(setup, new.endpoint_identity))
    assert assigned is not None
    return assigned.job


def reporting(setup: JobSetup, job: BackfillJob, **report: Any) -> Transaction[backfill_work.HeldJob]:
    """A report of the job's holder; with a number, unless another is given."""
    given: dict[str, Any] = {"batch_seq": job.batch_seq + 1, "lease_token": job.lease_token, **report}
    return backfill_work.record_progress(
        job.id, Progress(**given), EMAIL, job.window(ZONE).zone, day(setup), setup.clock(), signed()
    )


async def load(setup: JobSetup, id: UUID) -> BackfillJob:
    return await setup.database.run(backfill.load_backfill(id, day(setup), setup.clock()))


async def capped(setup: JobSetup, *, resume_daily: bool = True) -> BackfillJob:
    job = await active(setup, replace(FINANCE, resume_daily=resume_daily, daily_cost_cap_cents=10))
    await setup.database.run(reporting(setup, job, cost_micros=100_000))
    return await load(setup, job.id)


async def create_backfill(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, setup.clock()))
    return backfill.create_backfill(new_id(), FINANCE, COST, setup.clock(), signed())


async def pause_backfill(setup: JobSetup) -> Transaction[Any]:
    return backfill.pause_backfill((await active(setup)).id, setup.clock(), signed())


async def cancel_backfill(setup: JobSetup) -> Transaction[Any]:
    return backfill.cancel_backfill((await active(setup)).id, setup.clock(), signed())


async def resume_backfill(setup: JobSetup) -> Transaction[Any]:
    return backfill.resume_backfill((await capped(setup)).id, setup.clock(), signed())


async def hand_out(setup: JobSetup) -> Transaction[Any]:
    await created(setup)
    return handing_out(setup)


async def record_progress(setup: JobSetup) -> Transaction[Any]:
    """One that counts, names a failure, costs something and reaches the cap."""
    job = await active(setup)
    failed = (FailedMessage("m1", "too large"),)
    return reporting(
        setup,
        job,
        rows_skipped=2,
        failed=failed,
        cost_micros=5_000_000,
        cursor=BackfillCursor.first(WINDOW).done("18c0"),
    )


async def continue_capped(setup: JobSetup) -> Transaction[Any]:
    job = await capped(setup)
    setup.clock.forward(86_400)
    return backfill_spend.continue_capped(job.id, day(setup), setup.clock(), signed())


async def release_held(setup: JobSetup) -> Transaction[Any]:
    job = await active(setup)
    charge = backfill_spend.BackfillCharge(job.id, day(setup), signed())
    await setup.database.run(_reserve_too_much(charge, setup))
    return backfill_spend.release_held(job.id, setup.clock())


async def release_undecided(setup: JobSetup) -> Transaction[Any]:
    job = await active(setup)
    old = inbox_setup.mail(1, control={"backfill_job_id": str(job.id)})
    await Intake(setup.database, None, setup.clock).ingest(old)
    await Dispatcher(setup.database, CATALOGUE, clock=setup.clock).tick()
    await setup.fail(await setup.claim_one())
    return backfill_spend.release_undecided(setup.clock())


def _reserve_too_much(charge: backfill_spend.BackfillCharge, setup: JobSetup) -> Transaction[Any]:
    @transaction
    def reserve() -> Script[None]:
        for _ in range(2):
            yield from backfill_spend.reserving(charge, 5_000_000, setup.clock())

    return reserve()


async def call_connectors(setup: JobSetup) -> Transaction[Any]:
    await created(setup)
    await setup.finish(await setup.claim_one())
    return backfill_work.call_connectors(new_id(), setup.clock())


CASES: list[Case] = [
    create_backfill,
    pause_backfill,
    cancel_backfill,
    resume_backfill,
    hand_out,
    record_progress,
    continue_capped,
    release_held,
    release_undecided,
    call_connectors,
]

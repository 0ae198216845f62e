"""The `backfill.gmail` job: slice after slice, each enqueued with the end of the one before."""

import asyncio
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.permits import HeldLease
from postroom.core.backfill.job import NewBackfill
from postroom.core.errors import LeaseLost, Parked
from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.jobs.run import JobRun
from postroom.store.accounts import accounts
from postroom.store.backfill import backfill, backfill_slices
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake import connector_requests as requests
from postroom.store.intake.connector_requests import Reply
from postroom.store.jobs import jobs
from postroom.store.jobs.job_builders import backfill_job
from postroom.store.mail import mail
from postroom.store.people.audit import Signature
from postroom.triage.handlers.backfill_gmail import BackfillGmail
from support.clocks import ManualClock
from support.store.job_setup import LEASE
from support.switchboard import OWNER

ENDPOINT = f"gmail:user:{OWNER}"


class BackfillJobs:
    """One account, its backfill job, and a connector that answers as it is told."""

    def __init__(self, database: Database, clock: ManualClock, account_id: UUID) -> None:
        self.database = database
        self.clock = clock
        self.account_id = account_id

    async def enqueue(self) -> None:
        await self.database.run(jobs.enqueue_many([backfill_job(CATALOGUE, self.account_id)], self.clock()))

    async def claim(self) -> Job | None:
        token = new_id()
        await self.database.run(jobs.open_lease(token, "worker", self.clock(), self.clock() + LEASE))
        claimed = await self.database.run(jobs.claim(token, 1, self.clock()))
        return claimed[0] if claimed else None

    async def run(self, job: Job, answer: dict[str, Any]) -> JobRun:
        """One attempt, and the connector's answer to it."""
        run = JobRun(job, self.database, self.clock, HeldLease(0.0))
        answering = asyncio.create_task(self._answer(Reply(answer)))
        try:
            await BackfillGmail(self.database, self.clock)(run)
        finally:
            answering.cancel()
            await asyncio.wait({answering})
        return run

    async def _answer(self, reply: Reply) -> None:
        asked, token = asyncio.Event(), new_id()
        subscription = self.database.subscribe(requests.ASKED, lambda _message: asked.set())
        lease = requests.lease_requests(ENDPOINT, 1, token, timedelta(seconds=60), self.clock())
        try:
            while not (found := await self.database.run(lease)):
                await asked.wait()
                asked.clear()
        finally:
            subscription.close()
        assert (found[0].kind, found[0].arguments) == ("backfill", {"seconds": 45})
        await self.database.run(requests.end_request(found[0].id, ENDPOINT, token, reply, self.clock()))

    async def waiting(self) -> list[Any]:
        return await self.database.run(jobs.list_jobs("queued", "backfill.gmail"))


@pytest.fixture
async def backfills(database: Database, clock: ManualClock) -> BackfillJobs:
    account = await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, clock()))
    return BackfillJobs(database, clock, account.id)


async def test_the_next_slice_is_enqueued_with_the_end_of_the_one_before(backfills: BackfillJobs) -> None:
    await backfills.enqueue()
    job = await backfills.claim()
    assert job is not None
    assert (await backfills.run(job, {"status": "active", "again_in_s": 0.0})).ended
    (following,) = await backfills.waiting()
    assert following.id != job.id
    shown = await backfills.database.run(jobs.show_job(job.id))
    assert shown is not None
    assert shown.state == "completed"
    again = await backfills.claim()
    assert again is not None
    assert (again.id, again.attempts) == (following.id, 1)


async def test_the_next_slice_waits_for_as_long_as_the_connector_says(backfills: BackfillJobs) -> None:
    await backfills.enqueue()
    job = await backfills.claim()
    assert job is not None
    await backfills.run(job, {"status": "active", "again_in_s": 30.0})
    (following,) = await backfills.waiting()
    assert following.not_before == backfills.clock() + timedelta(seconds=30)
    assert await backfills.claim() is None


@pytest.mark.parametrize("again", [None, -1.0, "soon", True])
async def test_without_work_there_is_no_next_slice(backfills: BackfillJobs, again: object) -> None:
    await backfills.enqueue()
    job = await backfills.claim()
    assert job is not None
    assert not (await backfills.run(job, {"status": "idle", "again_in_s": again})).ended
    assert await backfills.waiting() == []


async def test_an_account_has_one_backfill_job_at_a_time(backfills: BackfillJobs) -> None:
    await backfills.enqueue()
    await backfills.enqueue()
    job = await backfills.claim()
    assert job is not None
    await backfills.enqueue()
    assert await backfills.waiting() == []
    await backfills.run(job, {"status": "active", "again_in_s": 5})
    await backfills.enqueue()
    assert len(await backfills.waiting()) == 1


async def test_a_worker_that_was_taken_for_dead_enqueues_nothing(backfills: BackfillJobs) -> None:
    await backfills.enqueue()
    job = await backfills.claim()
    assert job is not None
    await backfills.database.run(jobs.close_lease(job.token, backfills.clock()))
    with pytest.raises(LeaseLost):
        await backfills.run(job, {"status": "active", "again_in_s": 0})
    assert [each.id for each in await backfills.waiting()] == [job.id]


async def test_the_job_of_a_paused_account_is_parked(backfills: BackfillJobs) -> None:
    await backfills.enqueue()
    job = await backfills.claim()
    assert job is not None
    signed = Signature(new_id(), "test", "admin")
    await backfills.database.run(accounts.pause_account(backfills.account_id, signed, backfills.clock()))
    with pytest.raises(Parked):
        await backfills.run(job, {"status": "active", "again_in_s": 0})


async def test_each_mailbox_with_a_backfill_to_work_on_has_one_slice(backfills: BackfillJobs) -> None:
    database, clock = backfills.database, backfills.clock

    async def enqueue_slices() -> int:
        return await database.run(backfill_slices.enqueue_slices(CATALOGUE, new_id(), clock()))

    assert await enqueue_slices() == 0
    new = NewBackfill("gmail", ENDPOINT, ("finance",), date(2024, 1, 1), date(2024, 1, 31), consent=True)
    id, other = new_id(), new_id()
    for each in (id, other):
        await database.run(backfill.create_backfill(each, new, 0, clock(), Signature(new_id(), "test", "admin")))
    assert await enqueue_slices() == 0  # there is one since the first was created
    job = await backfills.claim()
    assert job is not None
    assert await enqueue_slices() == 0
    await backfills.run(job, {"status": "idle", "again_in_s": None})
    await database.run(jobs.finish([job.claim], [job.seq], clock()))
    assert await enqueue_slices() == 1
    (waiting,) = await backfills.waiting()
    await database.run(jobs.cancel_job(waiting.id, clock()))
    for each in (id, other):
        await database.run(backfill.pause_backfill(each, clock(), Signature(new_id(), "test", "admin")))
    assert await enqueue_slices() == 0

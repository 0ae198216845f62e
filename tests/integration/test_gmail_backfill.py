"""Backfill between a real emulator and the real switchboard, over MCP, on both databases."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest

from postroom.core.backfill.job import BackfillJob, NewBackfill
from postroom.core.errors import Conflict, LeaseLost, SwitchboardUnavailable
from postroom.mailboxes.backfill.walk import JobStopped, Walk
from postroom.mailboxes.backfill.worker import BackfillWorker
from postroom.operations.people.audit import signature
from postroom.sources.switchboard_client import BackfillProgress
from postroom.store.engine.database import Database
from postroom.store.people.audit import Signature
from support.clocks import ManualClock
from support.gmail_setup import SEED, GmailSetup, gmail_setup
from support.product import ENDPOINT, OWNER
from support.scale import scale

FIRST, LAST = date(2025, 1, 1), date(2025, 3, 31)
FAST = 1_000_000


def signed() -> Signature:
    return signature("test", "admin")


class Backfilling:
    """One job of one mailbox, and connectors that come and go."""

    def __init__(self, setup: GmailSetup, id: UUID) -> None:
        self.setup = setup
        self.id = id
        self.interval = 10

    @property
    def services(self) -> Any:
        return self.setup.services

    async def job(self) -> BackfillJob:
        return await self.services.parts.backfills.load(self.id)

    async def walk(self) -> Walk:
        """A connector that has just started and was given the job."""
        assignment = await self.setup.board.poll_backfill("gmail", ENDPOINT)
        assert assignment is not None, "nobody gave out the job"
        return self.setup.connector().backfill(self.setup.board, self.interval, time.monotonic).begin(assignment)

    async def until_stopped(self) -> str:
        try:
            await (await self.walk()).work()
        except JobStopped as stopped:
            return stopped.status
        raise AssertionError("it works until it is stopped")

    def worker(self) -> BackfillWorker:
        begin = self.setup.connector().backfill(self.setup.board, self.interval, time.monotonic).begin
        return BackfillWorker(self.setup.board, "gmail", ENDPOINT, begin, clock=time.monotonic)

    def deliver(self, count: int, label: str = "INBOX", month: int = 2) -> list[str]:
        first = datetime(2025, month, 3, tzinfo=UTC)
        return [
            self.setup.mailbox.deliver(
                f"From: shop@example.org\r\nTo: {OWNER}\r\nSubject: Your invoice {number}\r\n\r\nHi.\r\n".encode(),
                (label,),
                first + timedelta(minutes=number),
            ).id
            for number in range(count)
        ]

    def at_batch(self, number: int, do: Callable[[], Awaitable[object]]) -> None:
        """Do something just before this batch is ingested."""
        board, batches = self.setup.board, iter(range(1, 1_000))
        real = board.ingest_batch

        async def ingest_batch(envelopes: Sequence[Mapping[str, Any]]) -> Any:
            if next(batches) == number:
                await do()
            return await real(envelopes)

        board.ingest_batch = ingest_batch

    def expire_lease(self) -> None:
        self.setup.clock.forward(301)


@pytest.fixture
async def backfilling(database: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Backfilling]:
    async with gmail_setup(database, clock, tmp_path / "state") as setup:
        new = NewBackfill("gmail", ENDPOINT, ("finance",), FIRST, LAST, rate_limit_per_hour=FAST, consent=True)
        created = await setup.services.parts.backfills.create(new, signed())
        yield Backfilling(setup, created.job.id)


async def test_a_backfill_ingests_its_window_as_history_and_leaves_the_checkpoint_alone(
    backfilling: Backfilling,
) -> None:
    ids = backfilling.deliver(30)
    backfilling.deliver(5, label="SENT", month=3)
    await backfilling.setup.connector().sync()
    checkpoint = (backfilling.setup.folder / "checkpoint.json").read_bytes()
    reads = backfilling.setup.calls["messages.get"]
    known = (backfilling.setup.folder / "handed_in.ids").exists()
    assert await backfilling.until_stopped() == "completed"
    job = await backfilling.job()
    assert (job.status, job.rows_processed, job.rows_skipped, job.rows_failed) == ("completed", 30, 5, 0)
    assert job.categories == {"finance": 30}
    arrived = await backfilling.setup.waiting()
    assert set(arrived) == set(ids)
    assert {each["control"]["backfill_job_id"] for each in arrived.values()} == {str(backfilling.id)}
    assert (backfilling.setup.folder / "checkpoint.json").read_bytes() == checkpoint
    assert (backfilling.setup.folder / "handed_in.ids").exists() == known
    assert backfilling.setup.calls["messages.get"] - reads == 35


async def test_live_mail_that_arrives_meanwhile_is_ingested_as_live_mail(
    database: Database, clock: ManualClock, tmp_path: Path
) -> None:
    async with gmail_setup(database, clock, tmp_path / "state") as setup:
        today = clock().date()
        new = NewBackfill("gmail", ENDPOINT, ("finance",), FIRST, today, rate_limit_per_hour=FAST, consent=True)
        created = await setup.services.parts.backfills.create(new, signed())
        backfilling = Backfilling(setup, created.job.id)
        old = backfilling.deliver(10)
        await setup.connector().sync()
        live = setup.mailbox.deliver(
            f"From: shop@example.org\r\nTo: {OWNER}\r\nSubject: Your invoice\r\n\r\nHi.\r\n".encode()
        ).id
        assert await backfilling.until_stopped() == "completed"
        arrived = await setup.waiting()
        assert set(arrived) == {live, *old}
        assert "backfill_job_id" not in {name for name, value in arrived[live]["control"].items() if value}
        assert (await backfilling.job()).rows_processed == 11


async def test_a_paused_backfill_stops_at_once_and_continues_where_it_was(backfilling: Backfilling) -> None:
    ids = backfilling.deliver(60)
    backfilling.at_batch(3, lambda: backfilling.services.parts.backfills.pause(backfilling.id, signed()))
    assert await backfilling.until_stopped() == "paused"
    before = await backfilling.job()
    assert before.rows_processed == len(await backfilling.setup.waiting()) == 20
    await backfilling.services.parts.backfills.resume(backfilling.id, signed())
    assert await backfilling.until_stopped() == "completed"
    assert (await backfilling.job()).rows_processed == 60
    assert set(await backfilling.setup.waiting()) == set(ids)


async def test_a_canceled_backfill_ingests_nothing_more(backfilling: Backfilling) -> None:
    backfilling.deliver(60)
    backfilling.at_batch(3, lambda: backfilling.services.parts.backfills.cancel(backfilling.id, signed()))
    assert await backfilling.until_stopped() == "cancelled"
    assert await backfilling.setup.board.poll_backfill("gmail", ENDPOINT) is None
    assert (await backfilling.job()).rows_processed == len(await backfilling.setup.waiting()) == 20


async def test_a_connector_killed_again_and_again_counts_exactly(backfilling: Backfilling) -> None:
    """Canceled in the middle of whatever it does; what it knew is lost, and the next one starts from the folder."""
    kills, mails = scale(10, 50), scale(100, 95)
    rng = Random(SEED)
    ids = backfilling.deliver(mails)
    backfilling.deliver(7, label="SENT", month=1)
    for _ in range(kills):
        if (await backfilling.job()).status == "completed":
            break
        working = asyncio.create_task(backfilling.until_stopped())
        for _ in range(rng.randrange(1, 400)):
            await asyncio.sleep(0)
        working.cancel()
        await asyncio.wait({working})
        backfilling.expire_lease()
    if (await backfilling.job()).status != "completed":
        assert await backfilling.until_stopped() == "completed"
    job = await backfilling.job()
    assert (job.rows_processed, job.rows_skipped, job.rows_failed) == (mails, 7, 0)
    assert job.categories == {"finance": mails}
    assert set(await backfilling.setup.waiting()) == set(ids)


async def test_two_connectors_get_one_job_and_a_stale_lease_changes_nothing(backfilling: Backfilling) -> None:
    backfilling.deliver(25)
    first = await backfilling.walk()
    assert await backfilling.setup.board.poll_backfill("gmail", ENDPOINT) is None
    backfilling.expire_lease()
    second = await backfilling.walk()
    with pytest.raises(JobStopped) as lost:
        await first.work()
    assert lost.value.status == "lost"
    assert await backfilling.setup.waiting() == {}
    with pytest.raises(JobStopped) as done:
        await second.work()
    assert done.value.status == "completed"
    assert (await backfilling.job()).rows_processed == 25


async def test_the_progress_tool_refuses_what_is_out_of_order_and_counts_repeats_once(backfilling: Backfilling) -> None:
    board = backfilling.setup.board
    assignment = await board.poll_backfill("gmail", ENDPOINT)
    assert assignment is not None
    report = BackfillProgress(assignment.job_id, assignment.lease_token, 1, assignment.cursor, skipped=3)
    for _ in range(3):
        assert (await board.report_backfill(report)).status == "active"
    assert (await backfilling.job()).rows_skipped == 3
    with pytest.raises(Conflict):
        await board.report_backfill(
            BackfillProgress(assignment.job_id, assignment.lease_token, 5, assignment.cursor, skipped=3)
        )
    stale = BackfillProgress(assignment.job_id, str(UUID(int=7)), 2, assignment.cursor, skipped=3)
    with pytest.raises(LeaseLost):
        await board.report_backfill(stale)
    assert (await backfilling.job()).rows_skipped == 3


async def test_lost_answers_of_the_switchboard_count_nothing_twice(backfilling: Backfilling) -> None:
    ids = backfilling.deliver(40)
    real, calls = backfilling.setup.board.report_backfill, iter(range(1_000))

    async def lossy(progress: BackfillProgress) -> Any:
        answer = await real(progress)
        if next(calls) == 2:
            raise SwitchboardUnavailable("the answer is lost")
        return answer

    backfilling.setup.board.report_backfill = lossy
    assert await backfilling.until_stopped() == "completed"
    assert (await backfilling.job()).rows_processed == 40
    assert set(await backfilling.setup.waiting()) == set(ids)


async def test_the_worker_does_the_whole_job_and_asks_for_no_other_within_a_minute(backfilling: Backfilling) -> None:
    ids = backfilling.deliver(20)
    worker = backfilling.worker()
    assert await worker.work() == "completed"
    assert (await backfilling.job()).rows_processed == 20
    assert set(await backfilling.setup.waiting()) == set(ids)
    again = worker.call()
    assert again.status == "idle"
    assert again.asks_in_s is not None
    assert 0 < again.asks_in_s <= 60

"""A backfill from its creation to its end, with the connector in the switchboard's process: the job calls it, and its
loop does the work.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from postroom.core.backfill.job import BackfillJob, NewBackfill
from postroom.mailboxes.following.request_handlers import RequestHandlers
from postroom.mailboxes.following.running import beside
from postroom.sources.request_server import RequestServer
from postroom.store.backfill import backfill
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.people.audit import Signature
from postroom.system.wall_clock import wall_clock
from support.product import ENDPOINT, OWNER, Product, raw_mail, running_product
from support.until import until

MESSAGES = 30


def signed() -> Signature:
    return Signature(new_id(), OWNER, "operator")


def deliver(product: Product) -> None:
    for number in range(MESSAGES):
        received = wall_clock() - timedelta(days=30, minutes=number)
        product.mailbox.deliver(raw_mail(f"Your invoice {number}"), {"INBOX"}, received_at=received)


async def create(product: Product) -> UUID:
    today = wall_clock().date()
    first, last = today - timedelta(days=60), today - timedelta(days=3)
    new = NewBackfill("gmail", ENDPOINT, ("finance",), first, last, rate_limit_per_hour=1_000_000, consent=True)
    return (await product.services.parts.backfills.create(new, signed())).job.id


@asynccontextmanager
async def connector_running(product: Product) -> AsyncGenerator[None]:
    """The parts of the connector that work on backfills, as `serve` runs them."""
    parts = product.parts
    handlers = RequestHandlers(parts.connector, parts.source, parts.backfills).handlers()
    async with beside([RequestServer(product.switchboard, handlers).run(asyncio.Event()), parts.backfills.run()]):
        yield


async def completed(product: Product, id: UUID) -> BackfillJob:
    return await until(
        product.database,
        lambda: product.services.parts.backfills.load(id),
        lambda job: job.status == "completed",
        (backfill.CHANNEL,),
    )


async def test_a_backfill_that_waits_for_the_connector_begins_when_it_starts(sqlite: Database, tmp_path: Path) -> None:
    async with running_product(sqlite, tmp_path) as product:
        deliver(product)
        id = await create(product)
        async with connector_running(product):
            job = await completed(product, id)
    assert (job.rows_processed, job.rows_skipped) == (MESSAGES, 0)


async def test_a_new_backfill_is_called_for_once_and_needs_no_further_job(sqlite: Database, tmp_path: Path) -> None:
    async with running_product(sqlite, tmp_path) as product:
        deliver(product)
        async with connector_running(product):
            id = await create(product)
            job = await completed(product, id)
            called = await until(
                sqlite, lambda: sqlite.run(jobs.list_jobs("completed", "backfill.gmail")), bool, (jobs.CHANNEL,)
            )
            waiting = await sqlite.run(jobs.list_jobs("queued", "backfill.gmail"))
    assert (job.rows_processed, job.rows_skipped) == (MESSAGES, 0)
    assert (len(called), waiting) == (1, [])

"""Backfills in every state, made by the product's own verbs, and a connector that answers what an estimate asks."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from postroom.core.backfill.job import FailedMessage, NewBackfill
from postroom.mailboxes.accounts.mailbox_requests import ConnectorRequests
from postroom.store.backfill import backfill
from postroom.store.backfill.backfill_estimates import record_estimate
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.intake.connector_requests import Reply
from postroom.store.mail import mail
from support.store.fault_cases_backfill import COST, ENDPOINT, OWNER, handing_out, load, reporting
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

FINANCE = NewBackfill("gmail", ENDPOINT, ("finance",), date(2024, 1, 1), date(2024, 1, 31), consent=True)
SAMPLE: Mapping[str, Any] = {
    "total": {"counted": 5_000, "about": 5_000},
    "candidates": {"counted": 600, "about": 600},
    "queries": 3,
    "sample": {"read": 100, "in_category": 80, "full": 50, "metadata": 20, "skipped": 10},
}


def spread(expected: int) -> dict[str, int]:
    return {"low": expected // 2, "expected": expected, "high": expected * 2}


def estimate_of(to_read: int, cost_micros: int) -> dict[str, Any]:
    """As much of an estimate as the pages of jobs show."""
    return {
        "to_read": spread(to_read),
        "ingested": spread(to_read // 2),
        "classified": spread(to_read // 3),
        "uncorrected": to_read // 3,
        "cost_micros": spread(cost_micros),
    }


async def estimated(setup: JobSetup, new: NewBackfill, to_read: int = 400, cost_micros: int = 12_000_000) -> UUID:
    id, days = new_id(), {"date_from": new.date_from.isoformat(), "date_to": new.date_to.isoformat()}
    limits = {"rate_limit_per_hour": new.rate_limit_per_hour, "daily_cost_cap_cents": new.daily_cost_cap_cents}
    request = {"categories": list(new.target_categories), **days, **limits}
    result = estimate_of(to_read, cost_micros)
    await setup.database.run(record_estimate(id, new.endpoint_identity, request, result, "cli:ada", setup.clock()))
    return id


async def keep_mailbox(setup: JobSetup, endpoint: str = ENDPOINT, email: str = OWNER) -> None:
    await setup.database.run(mail.keep_account(new_id(), "gmail", endpoint, email, setup.clock()))


async def created(setup: JobSetup, **changes: Any) -> UUID:
    """A new job of the mailbox, with its estimate."""
    new = replace(FINANCE, **changes)
    new = replace(new, estimate_id=await estimated(setup, new))
    id = new_id()
    await setup.database.run(backfill.create_backfill(id, new, COST, setup.clock(), signed()))
    return id


async def progressed(setup: JobSetup, id: UUID, skipped: int, cost_micros: int, **report: Any) -> None:
    """Hand the job to a connector, if it waits, which reports so much."""
    job = await load(setup, id)
    if job.status == "pending":
        held = await setup.database.run(handing_out(setup))
        assert held is not None
        assert held.job.id == id
        job = held.job
        setup.clock.forward(100)
    await setup.database.run(reporting(setup, job, rows_skipped=skipped, cost_micros=cost_micros, **report))


async def fill_backfills(setup: JobSetup) -> dict[str, UUID]:
    """One job at work, one at its cap, one paused, one canceled, one that failed."""
    await keep_mailbox(setup)
    ids: dict[str, UUID] = {}
    ids["capped"] = await created(setup, target_categories=("health",), daily_cost_cap_cents=10)
    await progressed(setup, ids["capped"], 40, 100_000)
    ids["canceled"] = await created(setup, target_categories=("travel",))
    await setup.database.run(backfill.cancel_backfill(ids["canceled"], setup.clock(), signed()))
    ids["failed"] = await created(setup, target_categories=("relationship",))
    await progressed(setup, ids["failed"], 3, 0, status="error", error="the mailbox is gone")
    ids["paused"] = await created(setup, target_categories=("travel", "health"))
    await setup.database.run(backfill.pause_backfill(ids["paused"], setup.clock(), signed()))
    ids["active"] = await created(setup, rate_limit_per_hour=5_000)
    failed = (FailedMessage("18c0ffee", "too large"),)
    await progressed(setup, ids["active"], 120, 3_720_000, failed=failed)
    return ids


@asynccontextmanager
async def counting_connector(
    database: Database, clock: Any, sample: Mapping[str, Any] = SAMPLE, endpoint: str = ENDPOINT
) -> AsyncGenerator[None]:
    """A connector that answers every request for a sample with this one."""
    requests = ConnectorRequests(database, clock, poll_s=0.05)

    async def answer() -> None:
        while True:
            for each in await requests.next(endpoint, 1, timedelta(seconds=5)):
                names = each.arguments["categories"]
                found = {name: {"counted": 300, "about": 300} for name in names}
                reply = Reply(result={**sample, "categories": found})
                await requests.reply(each.id, endpoint, each.lease_token, reply)

    task = asyncio.create_task(answer())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

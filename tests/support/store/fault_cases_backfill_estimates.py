"""For the writing verb of estimates: a database in which it has something to do. Also: estimates for other tests."""

from typing import Any
from uuid import UUID

from postroom.store.backfill import backfill_estimates
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from support.store.fault_cases_backfill import ENDPOINT
from support.store.fault_cases_jobs import Case
from support.store.job_setup import JobSetup


def one(expected: int) -> dict[str, int]:
    return {"low": expected, "expected": expected, "high": expected}


def result_of(classified: int) -> dict[str, Any]:
    """The part of an estimate that is read again later."""
    names = {"to_read": 2 * classified, "ingested": classified + 5, "classified": classified}
    return {name: one(count) for name, count in names.items()} | {
        "uncorrected": classified,
        "cost_micros": one(30_000 * classified),
    }


def recording(setup: JobSetup, id: UUID, classified: int = 40) -> Transaction[None]:
    request = {"categories": ["finance"], "date_from": "2024-01-01", "date_to": "2024-01-31"}
    return backfill_estimates.record_estimate(id, ENDPOINT, request, result_of(classified), "cli:ada", setup.clock())


async def record_estimate(setup: JobSetup) -> Transaction[Any]:
    return recording(setup, new_id())


CASES: list[Case] = [record_estimate]

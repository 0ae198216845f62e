"""An active backfill, for mail that names one."""

from datetime import date, datetime
from uuid import UUID

from postroom.core.backfill.job import NewBackfill
from postroom.core.queue.queues import EMAIL
from postroom.operations.people.audit import signature
from postroom.store.backfill.backfill import create_backfill
from postroom.store.backfill.backfill_work import hand_out
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id

BACKFILL = UUID("01900000-0000-7000-8000-00000000b1b1")
NAMED = {"backfill_job_id": str(BACKFILL)}


async def open_backfill(database: Database, endpoint: str, now: datetime) -> None:
    """The backfill `BACKFILL` of an account that there is."""
    new = NewBackfill(
        "gmail",
        endpoint,
        ("finance",),
        date(2024, 1, 1),
        date(2024, 12, 31),
        rate_limit_per_hour=1_000_000,
        consent=True,
    )
    await database.run(create_backfill(BACKFILL, new, 0, now, signature("test", "admin")))
    signed = signature("test", "connector")
    assert await database.run(hand_out("gmail", endpoint, new_id(), EMAIL, "2026-11-15", now, signed))

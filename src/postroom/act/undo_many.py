"""Undo many actions at once: those of a rule, a batch or a period; per message in reverse order."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from postroom.core.jobs.job import NewJob
from postroom.core.jobs.types import Catalogue
from postroom.store import undos
from postroom.store.audit import AuditEntry
from postroom.store.engine.clock import Clock
from postroom.store.engine.database import Database
from postroom.store.job_builders import undo_job

MOST = 100_000


async def undo_these(
    database: Database,
    catalogue: Catalogue,
    chosen: Sequence[undos.Undoable],
    clock: Clock,
    priority: int = 50,
    entry: AuditEntry | None = None,
) -> int:
    """Enqueue the undoing of all of them; return the number of messages. `chosen` is newest first.

    `entry` is written with the first job.
    """
    now = clock()
    jobs = chains(catalogue, chosen, now, priority)
    for start in range(0, len(jobs), 500):
        await database.run(undos.enqueue_undos(jobs[start : start + 500], now, entry if start == 0 else None))
    return len(jobs)


def chains(catalogue: Catalogue, chosen: Sequence[undos.Undoable], now: datetime, priority: int = 50) -> list[NewJob]:
    """Return one job per message, which starts with its latest action; each request has its own keys."""
    by_message: dict[tuple[UUID, UUID], list[UUID]] = {}
    for id, account_id, message_id in chosen:
        by_message.setdefault((account_id, message_id), []).append(id)
    again = int(now.timestamp() * 1_000_000)
    return [undo_job(catalogue, account_id, tuple(ids), priority, again) for (account_id, _), ids in by_message.items()]

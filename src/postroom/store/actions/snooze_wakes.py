"""Wakes snoozed mail that the database does not know about, because it was snoozed after the backup."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from postroom.core.jobs.job import NewJob
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.jobs.job_builders import overdue_unsnooze_job
from postroom.store.jobs.jobs import enqueue_many, show_job


@transaction
def wake_overdue_snoozes(account_id: UUID, gmail_ids: Sequence[str], label_id: str, now: datetime) -> Script[int]:
    """Enqueue jobs for those of these snoozed messages, by Gmail id, that no job is going to wake. Return how many.

    Safe to repeat: the key of such a job holds while it is live.
    """
    forgotten: list[NewJob] = []
    for gmail_id in gmail_ids:
        if not (yield from _is_awaited(account_id, gmail_id)):
            forgotten.append(overdue_unsnooze_job(account_id, gmail_id, label_id))
    enqueued = yield from enqueue_many.script(forgotten, now)
    return sum(not each.duplicate for each in enqueued)


def _is_awaited(account_id: UUID, gmail_id: str) -> Script[bool]:
    """Return whether a job is going to wake the message, at any time."""
    for (job_id,) in (yield sql("select_waking_jobs", account_id, gmail_id)):
        waking = yield from show_job.script(UUID(job_id))
        if waking is not None and waking.state in ("queued", "running"):
            return True
    return False

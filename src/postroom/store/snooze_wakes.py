"""The wakings of snoozed mail that the database does not know: those of mail that was snoozed after its backup."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from postroom.core.jobs.job import NewJob
from postroom.core.jobs.types import CATALOGUE, UNSNOOZE_GMAIL
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.jobs import enqueue_many, show_job
from postroom.store.new_jobs import new_job


@transaction
def wake_overdue_snoozes(account_id: UUID, gmail_ids: Sequence[str], label_id: str, now: datetime) -> Script[int]:
    """Wakes those of these snoozed messages, by Gmail's ids, that no job is going to wake. Returns how many there were.

    Safe to repeat: the key of such a job holds while it lives.
    """
    forgotten: list[NewJob] = []
    for gmail_id in gmail_ids:
        if not (yield from _is_awaited(account_id, gmail_id)):
            forgotten.append(_waking(account_id, gmail_id, label_id))
    enqueued = yield from enqueue_many.script(forgotten, now)
    return sum(not each.duplicate for each in enqueued)


def _is_awaited(account_id: UUID, gmail_id: str) -> Script[bool]:
    """Whether a job is going to wake the message, at whatever time."""
    for (job_id,) in (yield sql("select_waking_jobs", account_id, gmail_id)):
        waking = yield from show_job.script(UUID(job_id))
        if waking is not None and waking.state in ("queued", "running"):
            return True
    return False


def _waking(account_id: UUID, gmail_id: str, label_id: str) -> NewJob:
    """The message itself may not be in the database, so it is named as Gmail does."""
    payload = {"account_id": str(account_id), "gmail_id": gmail_id, "snooze_label_id": label_id}
    key = f"{UNSNOOZE_GMAIL.name}:{account_id}:{gmail_id}"
    return new_job(CATALOGUE, UNSNOOZE_GMAIL.name, payload, key=key, while_live=True)

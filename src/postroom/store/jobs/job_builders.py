"""One builder for each job type: its payload, key and priority are defined here and nowhere else.

A key consists of the type, the account, and what the job is about. Where a builder says that the key holds while the
job is live, a job that was canceled or failed can be enqueued again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from postroom.core.jobs.job import NewJob
from postroom.core.jobs.types import (
    ACTION_GMAIL,
    APPROVAL_NOTIFY,
    BACKFILL_GMAIL,
    BY_AMOUNT,
    CATALOGUE,
    CLASSIFY,
    HISTORY_SYNC_GMAIL,
    INGEST_GMAIL,
    LABELS_SYNC_GMAIL,
    OUTBOUND_SEND,
    SENDER_NOTIFY,
    UNDO_ACTION,
    UNSNOOZE_GMAIL,
    Catalogue,
    JobType,
)
from postroom.core.queue.envelope import IngestionTier
from postroom.store.jobs.new_jobs import new_job

# What somebody waits for comes first, then new mail; new decisions about old mail can wait.
CLASSIFY_PRIORITY = 20
DECIDE_AGAIN_PRIORITY = 10
ASKED_PRIORITY = 50
BACKFILL_PRIORITY = -10


def classify_job(
    catalogue: Catalogue, account_id: UUID, message_id: UUID, tier: IngestionTier, traceparent: str | None
) -> NewJob:
    """Decide about a new message.

    Metadata has its own key: the whole message, if it comes later, is decided about whatever became of that job.
    """
    key = _key(CLASSIFY, account_id, message_id) + ("" if tier == "full" else f":{tier}")
    payload = {"account_id": str(account_id), "message_id": str(message_id)}
    return new_job(catalogue, CLASSIFY.name, payload, key=key, priority=CLASSIFY_PRIORITY, traceparent=traceparent)


def decide_again(
    catalogue: Catalogue, account_id: UUID, message_id: UUID, generation: int, batch_id: UUID | None = None
) -> NewJob:
    """Decide about a message again, as generation `generation` of its decisions.

    What follows belongs to the batch. The key holds while the job is live.
    """
    payload = {"account_id": str(account_id), "message_id": str(message_id), "again": True}
    if batch_id is not None:
        payload["batch_id"] = str(batch_id)
    key = _key(CLASSIFY, account_id, message_id, generation)
    return new_job(catalogue, CLASSIFY.name, payload, key=key, priority=DECIDE_AGAIN_PRIORITY, while_live=True)


def action_job(catalogue: Catalogue, account_id: UUID, action_id: UUID, priority: int = ASKED_PRIORITY) -> NewJob:
    """Carry out an action."""
    return _about_action(catalogue, ACTION_GMAIL, account_id, action_id, priority=priority)


def approval_job(catalogue: Catalogue, account_id: UUID, action_id: UUID, priority: int) -> NewJob:
    """Notify people that an action waits for them."""
    return _about_action(catalogue, APPROVAL_NOTIFY, account_id, action_id, priority=priority)


def notices_job(seed: UUID, account_id: UUID, action_id: UUID, not_before: datetime | None = None) -> NewJob:
    """Bring the notices of an action into line with it after an answer; the job's id derives from the seed.

    The key holds while the job is live: a notice posted meanwhile is closed by the next one.
    """
    live = _about_action(
        CATALOGUE, APPROVAL_NOTIFY, account_id, action_id, "closing", not_before=not_before, while_live=True
    )
    return live._replace(id=uuid5(seed, str(action_id)), traceparent=None)


def digest_job(not_before: datetime) -> NewJob:
    """Tell people how many actions wait that had no notice of their own."""
    key = f"{APPROVAL_NOTIFY.name}:digest"
    return new_job(CATALOGUE, APPROVAL_NOTIFY.name, {"digest": True}, key=key, not_before=not_before, while_live=True)


def undo_job(catalogue: Catalogue, account_id: UUID, ids: tuple[UUID, ...], priority: int = 0) -> NewJob:
    """Undo these actions on one message, in this order. The key names the first, and holds while the job is live."""
    first, *then = ids
    payload: dict[str, object] = {"account_id": str(account_id), "original_action_id": str(first)}
    if then:
        payload["then"] = [str(each) for each in then]
    key = undo_key(account_id, first)
    return new_job(catalogue, UNDO_ACTION.name, payload, key=key, priority=priority)


def undo_key(account_id: UUID, action_id: UUID) -> str:
    return _key(UNDO_ACTION, account_id, action_id)


def unsnooze_job(
    catalogue: Catalogue,
    account_id: UUID,
    message_id: UUID,
    action_id: UUID,
    label_id: str,
    until: datetime,
    priority: int,
    *,
    by_amount: bool = False,
) -> NewJob:
    """Wake a message at its time. One given as an amount follows a clock that is set back."""
    payload: dict[str, object] = {"message_id": str(message_id), "snooze_label_id": label_id}
    if by_amount:
        payload[BY_AMOUNT] = True
    return _about_action(
        catalogue, UNSNOOZE_GMAIL, account_id, action_id, payload=payload, priority=priority, not_before=until
    )


def overdue_unsnooze_job(account_id: UUID, gmail_id: str, label_id: str) -> NewJob:
    """Wake a message that no job is going to wake. It may not be in the database, so it is named by its Gmail id."""
    payload = {"account_id": str(account_id), "gmail_id": gmail_id, "snooze_label_id": label_id}
    key = _key(UNSNOOZE_GMAIL, account_id, gmail_id)
    return new_job(CATALOGUE, UNSNOOZE_GMAIL.name, payload, key=key, while_live=True)


def outbound_job(
    catalogue: Catalogue, account_id: UUID, action_id: UUID, payload: Mapping[str, Any], priority: int
) -> NewJob:
    """Build the mail that an action sends."""
    return _about_action(catalogue, OUTBOUND_SEND, account_id, action_id, payload=payload, priority=priority)


def sender_notice_job(channel: str, notice: Mapping[str, Any], at: datetime) -> NewJob:
    """Tell people, on one channel, that a sender was throttled at this time."""
    key = _key(SENDER_NOTIFY, notice["sender_id"], at.isoformat(), channel)
    return new_job(CATALOGUE, SENDER_NOTIFY.name, {**notice, "channel": channel}, key=key)


def sync_job(account_id: UUID) -> NewJob:
    """Sync the mailbox; one waiting job is enough for many requests."""
    return _about_account(HISTORY_SYNC_GMAIL, account_id)


def backfill_job(account_id: UUID) -> NewJob:
    """Call the connector of the mailbox to its backfills."""
    return _about_account(BACKFILL_GMAIL, account_id, priority=BACKFILL_PRIORITY)


def labels_job(account_id: UUID) -> NewJob:
    """Sync the labels of the mailbox."""
    return _about_account(LABELS_SYNC_GMAIL, account_id)


def ingest_job(account_id: UUID, message_ids: Sequence[str], key: str) -> NewJob:
    """Fetch messages by their Gmail ids. The key is that of `ingest_key`, or one after it."""
    ids = list(message_ids)
    named = {"message_id": ids[0]} if len(ids) == 1 else {"message_ids": ids}
    return new_job(CATALOGUE, INGEST_GMAIL.name, {"account_id": str(account_id), **named}, key=key)


def ingest_key(account_id: UUID, whose: str) -> str:
    return _key(INGEST_GMAIL, account_id, whose)


def _about_action(
    catalogue: Catalogue,
    type: JobType,
    account_id: UUID,
    action_id: UUID,
    *more: str,
    payload: Mapping[str, Any] | None = None,
    **options: Any,
) -> NewJob:
    about = {"account_id": str(account_id), "action_id": str(action_id), **(payload or {})}
    return new_job(catalogue, type.name, about, key=_key(type, account_id, action_id, *more), **options)


def _about_account(type: JobType, account_id: UUID, **options: Any) -> NewJob:
    return new_job(CATALOGUE, type.name, {"account_id": str(account_id)}, key=_key(type, account_id), **options)


def _key(type: JobType, *about: object) -> str:
    return ":".join(map(str, (type.name, *about)))

"""Requests of a person to a mailbox: fetch messages by their ids, or look for new mail now."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from uuid import UUID

from postroom.core.errors import StoreError
from postroom.core.jobs.job import Enqueued, NewJob
from postroom.core.mail.mailbox_requests import MOST_INGESTED
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.jobs.job_builders import ingest_job, ingest_key, labels_job, sync_job
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.people.audit import Signature, auditing

MOST_GENERATIONS = 1_000


@transaction
def ask_for_messages(
    account_id: UUID, message_ids: Sequence[str], signed: Signature, now: datetime
) -> Script[list[Enqueued]]:
    """Enqueue a job for every hundred messages, by Gmail's ids; return the job of each message.

    A job occupies its worker until the connector has answered, so many messages must not become as many jobs. A running
    job for the same messages is reused; one that has ended is enqueued again.
    """
    jobs: list[NewJob] = []
    for at in range(0, len(message_ids), MOST_INGESTED):
        jobs.append((yield from _ingest_job(account_id, message_ids[at : at + MOST_INGESTED])))
    enqueued = yield from enqueue_many.script(jobs, now)
    after = {"messages": len(message_ids)}
    yield from auditing(signed.under("account.retry_ingest", "account", str(account_id), after=after), now)
    return [enqueued[place // MOST_INGESTED] for place in range(len(message_ids))]


@transaction
def ask_for_sync(account_id: UUID, signed: Signature, now: datetime) -> Script[Enqueued]:
    """Enqueue the jobs that look for new mail and for changed labels; return the first."""
    looking, _ = yield from enqueue_many.script([sync_job(account_id), labels_job(account_id)], now)
    yield from auditing(signed.under("account.sync", "account", str(account_id)), now)
    return looking


def _ingest_job(account_id: UUID, message_ids: Sequence[str]) -> Script[NewJob]:
    ids = sorted(message_ids)
    whose = ids[0] if len(ids) == 1 else sha256("\n".join(ids).encode()).hexdigest()[:32]
    key = yield from _next_key(ingest_key(account_id, whose))
    return ingest_job(account_id, message_ids, key)


def _next_key(first: str) -> Script[str]:
    """The key of the generation that is live or still free: a key of this type is taken for good."""
    for generation in range(1, MOST_GENERATIONS + 1):
        key = first if generation == 1 else f"{first}:{generation}"
        held = yield sql("select_keys", [key])
        if not held:
            return key
        found = yield sql("show_job", as_uuid(held[0][1]))
        if found and found[0][2] in ("queued", "running"):
            return key
    raise StoreError(f"{first} was requested {MOST_GENERATIONS:,} times; `postroom jobs list` shows why it fails")

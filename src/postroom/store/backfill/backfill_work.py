"""The connector's side of a backfill: a job is handed out under a lease, and progress is recorded.

Progress renews the lease. Each report has a number, so that one that is sent twice counts once. When a connector dies,
its job is handed out again with the cursor of the last report: what was read after it is read again, and recognised.
This happens when the lease has run out, or at once if the connector that asks names the lease: it had it before it was
started again. A report of work done before a pause or a cancellation still counts; it ends the lease.
"""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from postroom.core.backfill.job import BackfillJob, Progress, check_progress
from postroom.core.backfill.rate import due_from, spacing, too_early
from postroom.core.errors import Conflict, LeaseLost, TooFast
from postroom.core.lifecycle import BackfillStatus
from postroom.core.mail.message import storable
from postroom.core.queue.queues import HISTORY, QueuePolicy
from postroom.store.backfill.backfill import CHANNEL, capping, load_backfill, locked, moving, showing_spend
from postroom.store.engine.codecs import as_optional_time, as_uuid, json_text, rows_text
from postroom.store.engine.database import Notify, Script, sql, transaction
from postroom.store.jobs.job_builders import backfill_job
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.people.audit import Signature

LEASE = timedelta(minutes=5)
LONGEST_REASON = 500
LONGEST_ERROR = 2000


class HeldJob(NamedTuple):
    """A job as its connector is told of it, and whether live mail waits. `job.status` is the truth, whatever the
    connector reported.
    """

    job: BackfillJob
    live_backlog: bool


@transaction
def hand_out(
    connector_type: str,
    endpoint_identity: str,
    token: UUID,
    policy: QueuePolicy,
    day: str,
    now: datetime,
    signed: Signature,
    held: UUID | None = None,
) -> Script[HeldJob | None]:
    """Hand out the mailbox's job whose connector died, or the one that has waited longest. `held` is the lease that the
    caller had before.

    One job of a mailbox is worked on at a time: two would share its quota and finish no sooner.
    """
    yield sql("lock_endpoint", endpoint_identity)
    backlog = yield from _live_backlog(policy)
    work = yield sql("select_backfill_work", connector_type, endpoint_identity)
    if any(_is_held(lease_token, lease_until, held, now) for _, _, _, lease_token, lease_until in work):
        return None
    for id, _, mode, *_ in work:
        if mode == "background" and backlog:
            continue
        job_id = as_uuid(id)
        before = yield from locked(job_id)
        if before == "pending":
            yield from moving(job_id, before, "active", now, signed, "backfill.start")
        elif before != "active":
            continue
        yield sql("lease_backfill", job_id, token, now + LEASE, signed.actor)
        return HeldJob((yield from load_backfill.script(job_id, day, now)), backlog)
    return None


@transaction
def call_connectors(seed: UUID, now: datetime) -> Script[int]:
    """Call the connector of each mailbox that has a backfill to work on, none that is held, and no call yet; return
    how many. The ids of the jobs derive from the seed.
    """
    accounts = [as_uuid(id) for (id,) in (yield sql("select_accounts_with_backfills", now, now + LEASE))]
    if not accounts:
        return 0
    calls = [backfill_job(id)._replace(id=uuid5(seed, str(id)), traceparent=None) for id in accounts]
    enqueued = yield from enqueue_many.script(calls, now)
    return sum(not each.duplicate for each in enqueued)


def _is_held(token: object, until: object, own: UUID | None, now: datetime) -> bool:
    """Whether a lease other than the caller's own is valid."""
    return token is not None and as_uuid(token) != own and _holds(as_optional_time(until), now)


def _holds(until: datetime | None, now: datetime) -> bool:
    """Whether a lease is valid. One that ends later than a lease can last was written by a wrong clock."""
    return until is not None and now < until <= now + LEASE


@transaction
def record_progress(
    id: UUID, progress: Progress, policy: QueuePolicy, zone: ZoneInfo, day: str, now: datetime, signed: Signature
) -> Script[HeldJob]:
    """Apply a report, and return the state of the job. Raises BadInput, Conflict, LeaseLost and TooFast."""
    status = yield from locked(id)
    job = yield from load_backfill.script(id, day, now)
    if _is_repeated(progress, job):
        return HeldJob(job, (yield from _live_backlog(policy)))
    if not _is_of_holder(progress, job, signed):
        raise LeaseLost(
            f"the backfill {id} is {status}, and not held under this lease; ask for work with backfill.poll"
        )
    check_progress(progress, job, job.window(zone))
    due = _due_after(progress, job, now)
    extra = _unexpected_cost(progress, job)
    yield sql("record_backfill_rows", id, progress.rows_processed, progress.rows_skipped,
        None if progress.cursor is None else json_text(progress.cursor.as_json()), now)  # fmt: skip
    yield sql("add_backfill_progress", id, progress.batch_seq or job.batch_seq + 1, len(progress.failed), extra,
        json_text(_add_categories(job.categories, progress)), due)  # fmt: skip
    yield sql("open_backfill_day", id, day)
    if extra:
        yield sql("add_backfill_day", id, day, extra)
    if progress.failed:
        rows = [(each.message_id[:512], storable(each.reason)[:LONGEST_REASON]) for each in progress.failed]
        yield sql("insert_backfill_failures", id, rows_text(rows), now)
    yield from showing_spend(id, now)
    after = yield from _status_after(progress, (yield from load_backfill.script(id, day, now)), day, now, signed)
    if after == "active":
        yield sql("renew_backfill_lease", id, now + LEASE)
    else:
        yield sql("end_backfill_lease", id)
    yield Notify(CHANNEL, str(id))
    return HeldJob((yield from load_backfill.script(id, day, now)), (yield from _live_backlog(policy)))


def _is_repeated(progress: Progress, job: BackfillJob) -> bool:
    """Whether the report was applied before. Raises Conflict if one before it is missing."""
    if progress.batch_seq is None:
        return False
    # A report that arrives late, under an earlier lease, must not pass for one of the current holder.
    if progress.lease_token is not None and job.lease_token not in (None, progress.lease_token):
        return False
    if progress.batch_seq > job.batch_seq + 1:
        raise Conflict("batch_seq", f"is {progress.batch_seq}, but {job.batch_seq} was the last", "report in order")
    return progress.batch_seq <= job.batch_seq


def _is_of_holder(progress: Progress, job: BackfillJob, signed: Signature) -> bool:
    """Whether the report comes from the holder of the lease. Without a token, it is known by who was given the job."""
    if progress.lease_token is not None:
        return progress.lease_token == job.lease_token
    return job.lease_token is not None and job.lease_holder == signed.actor


def _unexpected_cost(progress: Progress, job: BackfillJob) -> int:
    """The reported cost beyond the expected cost of the messages that came in. It counts as spent."""
    expected = (job.accepted_new - job.covered) * job.message_cost_micros
    return max(0, progress.cost_micros - expected)


def _add_categories(counts: dict[str, int], progress: Progress) -> dict[str, int]:
    total = dict(counts)
    for name, count in progress.categories.items():
        total[name] = total.get(name, 0) + count
    return total


def _due_after(progress: Progress, job: BackfillJob, now: datetime) -> datetime:
    """When the next message is due, so that the rate also holds across restarts. Raises TooFast."""
    read, per_hour = progress.rows_processed + progress.rows_skipped, job.rate_limit_per_hour
    if not read:
        return job.paced_until or now
    since = now if job.lease_until is None else min(now, job.lease_until - LEASE)
    due = due_from(job.paced_until, since, per_hour, now)
    if wait := too_early(due, read, per_hour, now):
        raise TooFast(f"the backfill allows {per_hour:,} messages an hour; these {read:,} are too many by now", wait)
    return max(due + read * spacing(per_hour), now + spacing(per_hour))


def _status_after(
    progress: Progress, job: BackfillJob, day: str, now: datetime, signed: Signature
) -> Script[BackfillStatus]:
    if job.status != "active":
        return job.status
    if progress.status == "completed":
        yield from moving(job.id, "active", "completed", now, signed, "backfill.complete")
        return "completed"
    if progress.status == "error":
        error = storable(progress.error or "the connector did not say why")[:LONGEST_ERROR]
        yield from moving(job.id, "active", "error", now, signed, "backfill.error", error)
        return "error"
    if not job.left_today_micros:
        yield from capping(job.id, day, now, signed)
        return "cost_capped"
    return "active"


def _live_backlog(policy: QueuePolicy) -> Script[bool]:
    tiers = [tier for tier in policy.tiers if tier != HISTORY]
    return bool((yield sql("select_live_backlog", policy.queue, tiers)))

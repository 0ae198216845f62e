"""Backfill jobs: created, listed, paused, resumed and canceled by people; each step is in the audit log.

    create_backfill ──► pending ──hand_out──► active ──record_progress──► completed | error | cost_capped
                          ▲  │                   │
          resume_backfill ┘  └── pause_backfill ─┴── cancel_backfill       (core/lifecycle.py has every move)

A verb that changes a job locks its row first. So what a connector reports, what people ask for and what the model's
calls cost are applied one after another.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID, uuid5

from postroom.core.audited_actions import AuditedAction
from postroom.core.backfill.job import MOST_OPEN, BackfillJob, FailedMessage, FoundMail, NewBackfill
from postroom.core.errors import NotFound, TooManyRequests
from postroom.core.lifecycle import BACKFILL, BackfillStatus
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.jobs.job_builders import backfill_job
from postroom.store.jobs.jobs import enqueue_many, hastening, unpark
from postroom.store.people.audit import Signature, auditing

CHANNEL = "backfill"
GOING: tuple[BackfillStatus, ...] = ("pending", "active")
# A message whose decision takes longer than this was lost on the way, and no longer counts as expected cost.
RECENT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class OpenBackfill:
    """A job of the same mailbox that has not ended."""

    id: UUID
    connector_type: str
    status: BackfillStatus
    target_categories: tuple[str, ...]
    date_from: date
    date_to: date

    def overlaps(self, new: NewBackfill) -> bool:
        shares_days = self.date_from <= new.date_to and new.date_from <= self.date_to
        return shares_days and not set(self.target_categories).isdisjoint(new.target_categories)


def parking_key(id: UUID) -> str:
    """The key under which the decisions about a job's mail wait for the next day, or for the end of a pause."""
    return f"backfill:{id}"


@transaction
def create_backfill(
    id: UUID, new: NewBackfill, message_cost_micros: int, now: datetime, signed: Signature
) -> Script[list[UUID]]:
    """Create a job; return those of the same mailbox that overlap with it. Raises NotFound and TooManyRequests."""
    if not (yield sql("lock_endpoint", new.endpoint_identity)):
        raise NotFound(f"there is no account {new.endpoint_identity!r}; `postroom account list` shows all")
    others = read_rows(OpenBackfill, (yield sql("select_open_backfills", new.endpoint_identity)))
    if len(others) >= MOST_OPEN:
        problem = f"has {len(others)} backfills that have not ended"
        raise TooManyRequests("endpoint_identity", problem, "wait for some, or cancel them")
    first, last = new.date_from.isoformat(), new.date_to.isoformat()
    yield fill("insert_backfill", new, id=id, date_from=first, date_to=last, now=now)
    yield fill("insert_backfill_run", new, job_id=id, message_cost_micros=message_cost_micros)
    after = {
        "endpoint_identity": new.endpoint_identity,
        "target_categories": list(new.target_categories),
        "date_from": first,
        "date_to": last,
        "rate_limit_per_hour": new.rate_limit_per_hour,
        "daily_cost_cap_cents": new.daily_cost_cap_cents,
        "consent": new.consent,
        "mode": new.mode,
        "acts": new.acts,
        "resume_daily": new.resume_daily,
    }
    yield from auditing(signed.under("backfill.create", "backfill", str(id), after=after), now)
    yield Notify(CHANNEL, str(id))
    yield from calling(id, signed.entry_id, now)
    return [each.id for each in others if each.overlaps(new)]


@transaction
def pause_backfill(id: UUID, now: datetime, signed: Signature) -> Script[BackfillStatus]:
    """Pause a job. Its connector learns it with its next report, and decisions about its mail wait. Safe to repeat."""
    return (yield from _change_status(id, "paused", now, signed, "backfill.pause"))


@transaction
def cancel_backfill(id: UUID, now: datetime, signed: Signature) -> Script[BackfillStatus]:
    """Cancel a job for good. Mail that came in stays, and no model is asked about the rest of it. Safe to repeat."""
    status = yield from _change_status(id, "cancelled", now, signed, "backfill.cancel")
    yield from releasing(id, now)
    return status


@transaction
def resume_backfill(id: UUID, now: datetime, signed: Signature) -> Script[BackfillStatus]:
    """Let a job that was paused, reached its cap or failed continue where it stopped. One that is going goes on."""
    before = yield from locked(id)
    if before in GOING:
        return before
    yield from moving(id, before, "pending", now, signed, "backfill.resume")
    yield sql("end_backfill_lease", id)
    yield from releasing(id, now)
    yield from calling(id, signed.entry_id, now)
    return "pending"


def _change_status(
    id: UUID, after: BackfillStatus, now: datetime, signed: Signature, action: AuditedAction
) -> Script[BackfillStatus]:
    """Move a job; one that is so already stays as it is, and the audit log too."""
    before = yield from locked(id)
    if before != after:
        yield from moving(id, before, after, now, signed, action)
    return after


def locked(id: UUID) -> Script[BackfillStatus]:
    """Part of a transaction: lock the job and return its status. Raises NotFound."""
    rows = yield sql("lock_backfill", id)
    if not rows:
        raise NotFound(f"there is no backfill {id}; `postroom backfill list` shows all")
    return rows[0][2]


def moving(
    id: UUID,
    before: BackfillStatus,
    after: BackfillStatus,
    now: datetime,
    signed: Signature,
    action: AuditedAction,
    error: str | None = None,
) -> Script[None]:
    """Part of a transaction: move a locked job, and write it to the audit log. Raises IllegalMove."""
    BACKFILL.check(before, after)
    yield sql("move_backfill", id, before, after, error, now)
    entry = signed.under(action, "backfill", str(id), before={"status": before}, after={"status": after})
    yield from auditing(entry, now)
    yield Notify(CHANNEL, str(id))


def releasing(id: UUID, now: datetime) -> Script[None]:
    """Part of a transaction: let the decisions about a job's mail continue."""
    yield sql("release_backfill", id)
    yield from unpark.script(parking_key(id), now)


def calling(id: UUID, seed: UUID, now: datetime) -> Script[None]:
    """Part of a transaction: call the connector, so that work begins at once, also if a call sleeps until it is tried
    again. The id of the call's job derives from the seed.

    The minute's check (`call_connectors`) is for what this misses: a call that is just being answered.
    """
    for (account_id,) in (yield sql("select_account_to_backfill", id)):
        call = backfill_job(as_uuid(account_id))._replace(id=uuid5(seed, str(account_id)), traceparent=None)
        [enqueued] = yield from enqueue_many.script([call], now)
        if enqueued.duplicate:
            yield from hastening(enqueued.id, now)


def canceling_all(endpoint_identity: str, now: datetime, signed: Signature) -> Script[None]:
    """Part of a transaction: cancel the jobs of a mailbox that is removed; its owner has agreed to no more of them."""
    for each in read_rows(OpenBackfill, (yield sql("select_open_backfills", endpoint_identity))):
        status = yield from locked(each.id)
        if BACKFILL.may(status, "cancelled"):
            entry = signed._replace(entry_id=uuid5(signed.entry_id, str(each.id)))
            yield from moving(each.id, status, "cancelled", now, entry, "backfill.cancel")
            yield from releasing(each.id, now)


def capping(id: UUID, day: str, now: datetime, signed: Signature) -> Script[None]:
    """Part of a transaction: stop an active job whose cap for the day is reached."""
    yield sql("cap_backfill", id, day)
    yield from moving(id, "active", "cost_capped", now, signed, "backfill.cost_cap")


def showing_spend(id: UUID, now: datetime) -> Script[None]:
    """Part of a transaction: bring the cost of a job in cents up to date."""
    yield sql("show_backfill_spend", id, now - RECENT)


@query
def load_backfill(id: UUID, day: str, now: datetime) -> Script[BackfillJob]:
    """A job, with what it has cost on this day. Raises NotFound."""
    job = read_first(BackfillJob, (yield sql("select_backfill", id, day, now - RECENT)))
    if job is None:
        raise NotFound(f"there is no backfill {id}; `postroom backfill list` shows all")
    return job


@query
def list_backfills(
    most: int,
    day: str,
    now: datetime,
    *,
    connector_type: str | None = None,
    endpoint_identity: str | None = None,
    status: str | None = None,
    before: Cursor | None = None,
) -> Script[list[BackfillJob]]:
    """List backfills, newest first."""
    last = before or Cursor(datetime.max.replace(tzinfo=now.tzinfo), UUID(int=2**128 - 1))
    filters = connector_type, endpoint_identity, status, last.at, last.id, most
    return read_rows(BackfillJob, (yield sql("select_backfills", *filters, day, now - RECENT)))


@query
def backfill_found(id: UUID) -> Script[list[FoundMail]]:
    """The mail a job brought in, counted by category and year, the last year first."""
    return read_rows(FoundMail, (yield sql("select_backfill_found", id)))


@query
def backfill_failures(id: UUID, most: int) -> Script[list[FailedMessage]]:
    """The messages that a job could not read, the last first."""
    return read_rows(FailedMessage, (yield sql("select_backfill_failures", id, most)))

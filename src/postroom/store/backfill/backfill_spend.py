"""The cost of a backfill's mail: charged to its job and its day, and held back at the cap.

A call of the model is reserved before it is made, at the most it can cost, and settled after it (`model_calls.py`).
The statement that reserves refuses to exceed the cap of the day; only the first message of a day may. So however many
calls are in progress, a day costs at most its cap, or one message. What is refused waits, parked, for the next day.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.backfill.rate import allowed, due_from, spacing, too_early
from postroom.core.errors import BadInput, Refused, TooFast
from postroom.core.money import MICROS_PER_CENT
from postroom.store.backfill.backfill import (
    calling,
    capping,
    load_backfill,
    locked,
    moving,
    parking_key,
    releasing,
    showing_spend,
)
from postroom.store.engine.codecs import as_optional_time, as_uuid, rows_text
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature

# How long ago a decision may have failed to be noticed.
UNDECIDED = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class BackfillCharge:
    """The job and the day that a call is charged to. `signed` is for the audit log, if this reaches the cap."""

    job_id: UUID
    day: str
    signed: Signature


class Held(NamedTuple):
    """Why a call for a backfill's mail is not made, and the key under which it waits; without a key it never is."""

    why: Literal["capped", "paused", "cancelled"]
    key: str | None


def reserving(charge: BackfillCharge, micros: int, now: datetime) -> Script[Held | None]:
    """Part of a transaction: add the most that a call can cost to the day of its backfill, or say why it is held."""
    id, day = charge.job_id, charge.day
    status = yield from locked(id)
    if status == "cancelled":
        return Held("cancelled", None)
    if status == "paused":
        return Held("paused", parking_key(id))
    job = yield from load_backfill.script(id, day, now)
    yield sql("open_backfill_day", id, day)
    if not (yield sql("reserve_backfill_day", id, day, micros, job.daily_cost_cap_cents * MICROS_PER_CENT)):
        yield sql("hold_backfill", id, day)
        if status == "active":
            yield from capping(id, day, now, charge.signed)
        return Held("capped", parking_key(id))
    yield sql("add_backfill_spend", id, micros)
    return None


def settling(job_id: UUID, day: str, difference: int, now: datetime) -> Script[None]:
    """Part of a transaction: replace the reservation of a call with its cost."""
    yield from locked(job_id)
    yield sql("add_backfill_day", job_id, day, difference)
    yield sql("add_backfill_spend", job_id, difference)
    yield from showing_spend(job_id, now)


def deciding(message_id: UUID, now: datetime) -> Script[None]:
    """Part of a transaction: a decision about a message of a backfill was made, so it no longer waits."""
    for (job_id,) in (yield sql("settle_backfill_mail", message_id)):
        yield from showing_spend(as_uuid(job_id), now)


class Arrived(NamedTuple):
    """A message that came in for a backfill. `is_new`: it was not known; `waits`: a model may be asked about it."""

    job_id: UUID
    inbox_id: UUID
    is_new: bool
    waits: bool


class Pacing(NamedTuple):
    """The rate of a job, and when its next message is due at that rate."""

    per_hour: int
    due: datetime

    def after(self, count: int) -> datetime:
        return self.due + count * spacing(self.per_hour)


class Admission(NamedTuple):
    """The messages that are refused, by their index, and the pacing of the jobs that the others name."""

    refused: dict[int, BadInput | Refused | TooFast]
    pacings: dict[UUID, Pacing]


def admitting(wanted: Mapping[int, tuple[str, str]], now: datetime) -> Script[Admission]:
    """Part of a transaction: refuse the messages that name a job which is not theirs, or not active any more, and those
    that come faster than its rate allows.

    `wanted` has, for the index of each message, its job and its endpoint. Locks the jobs against changes.
    """
    ids = {place: _id(name) for place, (name, _) in wanted.items()}
    rows = yield sql("share_backfills", sorted({id for id in ids.values() if id is not None}))
    known = {as_uuid(id): (identity, status) for id, identity, status, *_ in rows}
    pacings = {as_uuid(id): _pacing(per_hour, due, now) for id, _, _, per_hour, due in rows}
    room = {id: allowed(each.due, each.per_hour, now) for id, each in pacings.items()}
    refused: dict[int, BadInput | Refused | TooFast] = {}
    for place, (name, endpoint_identity) in wanted.items():
        id = ids[place] or UUID(int=0)
        identity, status = known.get(id, (None, None))
        if identity != endpoint_identity:
            remedy = "use the job_id that backfill.poll returned, or leave it out"
            refused[place] = BadInput(
                "control.backfill_job_id", f"{name[:80]!r} is no backfill of this endpoint", remedy
            )
        elif status != "active":
            refused[place] = Refused(f"control.backfill_job_id: the backfill is {status}; send nothing more for it")
        elif room[id] <= 0:
            pacing = pacings[id]
            wait = too_early(pacing.due, allowed(pacing.due, pacing.per_hour, now) + 1, pacing.per_hour, now)
            refused[place] = TooFast(f"the backfill allows {pacing.per_hour:,} messages an hour", wait)
        else:
            room[id] -= 1
    return Admission(refused, pacings)


def _pacing(per_hour: int, due: object, now: datetime) -> Pacing:
    return Pacing(per_hour, due_from(as_optional_time(due), now, per_hour, now))


def _id(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None


def arriving(messages: Sequence[Arrived], pacings: Mapping[UUID, Pacing], now: datetime) -> Script[None]:
    """Part of a transaction: count and remember the messages that came in for backfills. Of these, new ones count for
    the rate.
    """
    rows = [(each.inbox_id, each.job_id, each.waits) for each in messages if each.is_new]
    if rows:
        yield sql("insert_backfill_mail", rows_text(rows), now)
    for job_id in sorted({each.job_id for each in messages}):
        mine = [each for each in messages if each.job_id == job_id]
        due = pacings[job_id].after(sum(each.is_new for each in mine))
        yield sql("accept_backfilled", job_id, len(mine), sum(each.waits for each in mine), due)


def storing(inbox_id: UUID, message_ids: Sequence[UUID], now: datetime) -> Script[None]:
    """Part of a transaction: a message of a backfill was stored; if it was known already, it no longer waits."""
    if message_ids:
        yield sql("link_backfill_mail", inbox_id, message_ids[0])
    else:
        yield from giving_up(inbox_id, now)


def giving_up(inbox_id: UUID, now: datetime) -> Script[None]:
    """Part of a transaction: there will be no decision about this message of a backfill."""
    for (job_id,) in (yield sql("drop_backfill_mail", inbox_id)):
        yield from showing_spend(as_uuid(job_id), now)


@transaction
def release_undecided(now: datetime) -> Script[int]:
    """Mail of backfills whose decision failed for good, or was canceled, no longer waits; return how many."""
    rows = yield sql("drop_undecided_backfill_mail", now - UNDECIDED)
    for job_id in sorted({as_uuid(id) for (id,) in rows}):
        yield from showing_spend(job_id, now)
    return len(rows)


class SpentDay(NamedTuple):
    """The cost of a job on one day of its time zone, with what is reserved for calls in progress."""

    day: str
    micros: int


@query
def spent_days(id: UUID, most: int) -> Script[list[SpentDay]]:
    """The last days on which a job cost something, newest first."""
    return read_rows(SpentDay, (yield sql("select_backfill_days", id, most)))


@query
def held_backfills(day: str) -> Script[list[UUID]]:
    """The jobs with mail whose decision is parked, and that nothing holds back on this day."""
    return [as_uuid(id) for (id,) in (yield sql("select_held_backfills", day))]


@transaction
def release_held(id: UUID, now: datetime) -> Script[None]:
    """Let the decisions about a job's mail continue."""
    yield from releasing(id, now)


@query
def capped_backfills(day: str) -> Script[list[UUID]]:
    """The jobs that reached their cap before this day and are to continue by themselves."""
    return [as_uuid(id) for (id,) in (yield sql("select_capped_backfills", day))]


@transaction
def continue_capped(id: UUID, day: str, now: datetime, signed: Signature) -> Script[bool]:
    """Let a job continue on a new day; False if somebody has changed it meanwhile."""
    status = yield from locked(id)
    job = yield from load_backfill.script(id, day, now)
    if status != "cost_capped" or not job.resume_daily or job.capped_on == day:
        return False
    yield from moving(id, status, "pending", now, signed, "backfill.resume")
    yield from calling(id, signed.entry_id, now)
    return True

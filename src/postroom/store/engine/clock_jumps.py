"""Corrects the times that a clock running ahead has written.

A lease written while the clock was an hour ahead lasts an hour too long, and if its owner has died nobody may touch
what it held. But no valid lease ends further ahead than its own length, so one that does is cut to its length, counted
from now. A living owner renews it as usual; a dead one is noticed after one lease length, not after an hour.

What was written at a time that is yet to come is moved back, together with the time that was counted from it: a snooze
by amount, a deadline, a session. Waits for a retry end at once instead: an early retry does no harm. Times that people
have chosen (snoozed until nine, to be sent at nine) are never changed.

`back_by` is how far the clock was set back, if that was seen. Without it, what was written in the future counts as
written now. Every stored time is listed in `tests/support/store/stored_times.py` with what a jump does to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from postroom.core.jobs.types import is_counted_wait
from postroom.core.outbound.limits import day_of
from postroom.store.engine.codecs import as_optional_time, as_time, as_uuid, from_json
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.outbound.outbound_signals import CHANNEL as OUTBOUND

# Clocks of different machines never agree exactly, nor do two readings of one server's clock.
SLACK = timedelta(seconds=5)
# How much earlier than now a mail may have been sent that was asked for by a clock ahead.
LOOKED_BACK = timedelta(days=1)

# Each pair: select what was written in the future, as its key, the time of writing and the deadline; and move both.
_DEADLINES = (
    ("select_approvals_ahead", "move_approval"),
    ("select_requests_ahead", "move_request"),
    ("select_links_ahead", "move_sign_in_link"),
    ("select_throttles_ahead", "move_throttle"),
    ("select_suppressions_ahead", "move_suppression"),
)
# What happened in the future happened now: limits by time count it from now on.
_EVENTS = (
    "date_auto_replies_back",
    "date_approval_slots_back",
    "date_irreversible_actions_back",
    "date_model_calls_back",
    "date_waiting_messages_back",
    "date_strikes_back",
    "date_acting_back",
)


@dataclass(frozen=True, slots=True)
class Longest:
    """How far in the future each kind of stored time may be."""

    message_lease: timedelta = timedelta(minutes=5)
    """In queues that `queue_leases` does not name."""
    queue_leases: Mapping[str, timedelta] = field(default_factory=lambda: {"email": timedelta(minutes=1)})
    mail_lease: timedelta = timedelta(minutes=1)
    request_lease: timedelta = timedelta(minutes=2)
    same_text: timedelta = timedelta(seconds=30)


@transaction
def shorten_worker_leases(now: datetime) -> Script[int]:
    """Shorten worker leases that were renewed in the future; return how many."""
    rows = yield sql("select_leases_ahead", now + SLACK)
    for token, until, renewed_at in rows:
        yield sql("renew_lease", as_uuid(token), now + (as_time(until) - as_time(renewed_at)), now)
    return len(rows)


@transaction
def shorten_other_leases(longest: Longest, now: datetime) -> Script[int]:
    """Shorten leases of messages, outgoing mail and requests, and drop content hashes that would be kept too long."""
    cut = 0
    for queue, length in longest.queue_leases.items():
        cut += len((yield sql("shorten_queue_leases", queue, now + length + SLACK, now + length)))
    for statement, length in (
        ("shorten_message_leases", longest.message_lease),
        ("shorten_mail_leases", longest.mail_lease),
        ("shorten_request_leases", longest.request_lease),
    ):
        cut += len((yield sql(statement, now + length + SLACK, now + length)))
    forgotten = yield sql("forget_texts_ahead", now + longest.same_text + SLACK)
    return cut + len(forgotten)


@transaction
def end_waits_ahead(now: datetime, back_by: timedelta | None = None) -> Script[int]:
    """Make due the jobs that wait for a retry counted from a time in the future, and move waits by amount back."""
    ended = yield sql("end_retry_waits_ahead", now + SLACK, now)
    moved = 0
    for seq, type, payload_json, written, not_before, job_id in (yield sql("select_waits_ahead", now + SLACK, now)):
        if not is_counted_wait(type, payload := from_json(payload_json)):
            continue
        ahead = _ahead(as_time(written), now, back_by)
        until = as_time(not_before) - ahead
        yield sql("move_wait", seq, until, as_time(written) - ahead)
        if (action_id := payload.get("action_id")) is not None:
            yield sql("move_snooze", as_uuid(action_id), str(job_id), until.isoformat())
        moved += 1
    return len(ended) + moved


@transaction
def release_mail_ahead(now: datetime, back_by: timedelta | None = None) -> Script[int]:
    """Make due the outgoing mail that was accepted or deferred in the future, unless its sender chose the time."""
    rows = yield sql("select_mail_ahead", now + SLACK, now)
    for id, asked_at in rows:
        asked = as_time(asked_at)
        if asked > now:
            asked -= _ahead(asked, now, back_by) + (LOOKED_BACK if back_by is None else timedelta(0))
        yield sql("release_mail_ahead", as_uuid(id), asked, now)
    if rows:
        yield Notify(OUTBOUND, "queued")
    return len(rows)


@transaction
def move_deadlines_ahead(now: datetime, back_by: timedelta | None = None) -> Script[int]:
    """Move back deadlines counted from a time in the future, and date back events to which limits by time apply."""
    moved = 0
    for select, move in _DEADLINES:
        for *key, written, until in (yield sql(select, now + SLACK)):
            ahead = _ahead(as_time(written), now, back_by)
            yield sql(move, *key, as_time(written) - ahead, as_time(until) - ahead)
            moved += 1
    for statement in _EVENTS:
        moved += len((yield sql(statement, now + SLACK, now)))
    moved += len((yield sql("forget_days_ahead", day_of(now + SLACK))))
    return moved + (yield from _moving_sessions(now, back_by))


def _moving_sessions(now: datetime, back_by: timedelta | None) -> Script[int]:
    """A session that was used in the future ends as long after its last use, and after its beginning, as ever."""
    rows = list((yield sql("select_sessions_ahead", now + SLACK)).by_name())
    for row in rows:
        seen, created, rotated = as_time(row["last_seen_at"]), as_time(row["created_at"]), as_time(row["rotated_at"])
        ahead = _ahead(seen, now, back_by)
        idle_ends, ends, proven = as_time(row["idle_ends_at"]), as_time(row["ends_at"]), as_time(row["proven_at"])
        previous = as_optional_time(row["previous_until"])
        yield sql(
            "move_session", row["id"], _back(created, now, ahead), seen - ahead, _back(rotated, now, ahead),
            _back(proven, now, ahead), None if previous is None else _back(previous, now, ahead),
            idle_ends - ahead, ends - ahead if created > now else ends,
        )  # fmt: skip
    return len(rows)


@query
def count_written_ahead(now: datetime) -> Script[int]:
    """How many jobs and mails wait that were written at a time yet to come; times that people chose do not count."""
    jobs = yield sql("select_waits_ahead", now + SLACK, now)
    counted = sum(is_counted_wait(type, from_json(payload)) for _, type, payload, *_ in jobs)
    mails = yield sql("select_mail_ahead", now + SLACK, now)
    return counted + len(mails)


def _ahead(written: datetime, now: datetime, back_by: timedelta | None) -> timedelta:
    """How far ahead the clock was that wrote this time: at least so far that it was not written in the future."""
    return max(back_by or timedelta(0), written - now)


def _back(time: datetime, now: datetime, ahead: timedelta) -> datetime:
    return time - ahead if time > now else time

"""Undoes what a clock that was ahead has left behind.

A lease says "mine until then". Written while the clock was an hour ahead, it says so for an hour too long, and if its
owner has died nobody may touch what it held. But a lease is short, and no honest one ends further ahead than its own
length: one that does is cut to its length, counted from now. An owner that lives renews it as ever; a dead one is found
out after one length, and not after an hour. Waits that were counted from a time yet to come are over at once: a retry
that comes early does no harm. Times that people have chosen (when snoozed mail comes back) are nobody's to change.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from postroom.store.engine.codecs import as_time, as_uuid
from postroom.store.engine.database import Script, sql, transaction

# Clocks of several machines are never quite alike, and nor are two readings of one server's.
SLACK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Longest:
    """How far ahead each kind of stored time may honestly lie."""

    message_lease: timedelta = timedelta(minutes=5)
    mail_lease: timedelta = timedelta(minutes=1)
    request_lease: timedelta = timedelta(minutes=2)
    same_text: timedelta = timedelta(seconds=30)


@transaction
def shorten_worker_leases(now: datetime) -> Script[int]:
    """Cuts leases of workers that were renewed in the future; how many there were."""
    rows = yield sql("select_leases_ahead", now + SLACK)
    for token, until, renewed_at in rows:
        yield sql("renew_lease", as_uuid(token), now + (as_time(until) - as_time(renewed_at)), now)
    return len(rows)


@transaction
def shorten_other_leases(longest: Longest, now: datetime) -> Script[int]:
    """Cuts leases of messages, outgoing mail and requests, and forgets texts that would count as said for too long."""
    cut = 0
    for statement, length in (
        ("shorten_message_leases", longest.message_lease),
        ("shorten_mail_leases", longest.mail_lease),
        ("shorten_request_leases", longest.request_lease),
    ):
        cut += len((yield sql(statement, now + length + SLACK, now + length)))
    forgotten = yield sql("forget_texts_ahead", now + longest.same_text + SLACK)
    return cut + len(forgotten)


@transaction
def end_waits_ahead(now: datetime) -> Script[int]:
    """Makes due what waits for another try since a time that is yet to come."""
    jobs = yield sql("end_retry_waits_ahead", now + SLACK, now)
    mails = yield sql("end_deferrals_ahead", now + SLACK, now)
    for (id,) in mails:
        yield sql("hasten_mail", as_uuid(id), now)
    return len(jobs) + len(mails)

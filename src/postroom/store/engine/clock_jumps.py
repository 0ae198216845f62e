"""Corrects the times that a clock running ahead has written.

A lease written while the clock was an hour ahead lasts an hour too long, and if its owner has died nobody may touch
what it held. But no valid lease ends further ahead than its own length, so one that does is cut to its length, counted
from now. A living owner renews it as usual; a dead one is noticed after one lease length, not after an hour. Waits
counted from a time in the future end at once: an early retry does no harm. Times that people have chosen (when snoozed
mail returns) are never changed.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from postroom.store.engine.codecs import as_time, as_uuid
from postroom.store.engine.database import Script, sql, transaction

# Clocks of different machines never agree exactly, nor do two readings of one server's clock.
SLACK = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Longest:
    """How far in the future each kind of stored time may be."""

    message_lease: timedelta = timedelta(minutes=5)
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
    """Make due what waits for a retry counted from a time in the future."""
    jobs = yield sql("end_retry_waits_ahead", now + SLACK, now)
    mails = yield sql("end_deferrals_ahead", now + SLACK, now)
    for (id,) in mails:
        yield sql("hasten_mail", as_uuid(id), now)
    return len(jobs) + len(mails)

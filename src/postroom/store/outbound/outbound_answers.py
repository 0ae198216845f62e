"""People's answers about outgoing mail: its outcome, that it is to be tried now, or not to be sent at all.

resolve_mail   unknown ──► sent | queued
hasten_mail    queued | deferred, due at once
cancel_mail    queued | deferred | unknown ──► canceled. A mail that a sender holds, or that has a draft, is stopped by
               a sender: only the mailbox tells that it was not sent already
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.errors import IllegalMove, NotFound
from postroom.core.lifecycle import DELIVERY, DeliveryState
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first
from postroom.store.outbound.outbound_moves import CHANNEL, canceling, completing, ending_unheld, noting
from postroom.store.people.audit import Signature, auditing

LONGEST_REASON = 300

Cancellation = Literal["canceled", "stopping"]


class _Locked(NamedTuple):
    state: DeliveryState
    action_id: UUID | None


@query
def find_mail_ids(
    states: Sequence[str],
    tenant: str | None,
    domain: str | None,
    since: datetime | None,
    until: datetime | None,
    most: int,
) -> Script[list[UUID]]:
    """The mails in one of these states that fit all that is given, oldest first. `domain` is that of a recipient."""
    escaped = None if domain is None else re.sub(r"([\\%_])", r"\\\1", domain)
    rows = yield sql("select_mail_ids", list(states), tenant, escaped, since, until, most)
    return [as_uuid(row[0]) for row in rows]


@transaction
def resolve_mail(id: UUID, outcome: Literal["sent", "not_sent"], signed: Signature, now: datetime) -> Script[str]:
    """Settle what a person has looked up: it was sent, or it was not and is sent now. Returns the state after that."""
    state, action_id = yield from _lock(id)
    if state in ("queued", "deferred") and (yield sql("select_unknown_recipients", id)):
        return (yield from _settling_some(id, state, outcome, signed, now))
    if state != "unknown":
        raise IllegalMove(f"what became of the mail {id} is known: it is {state}; `postroom outbound show` tells more")
    after: DeliveryState = "sent" if outcome == "sent" else "queued"
    DELIVERY.check(state, after)
    if outcome == "sent":
        yield from ending_unheld(id, after, None, None, now)
        yield from completing(action_id, None, now)
    else:
        yield sql("queue_unknown_mail", id, now)
        yield from noting(action_id, None, now)
        yield Notify(CHANNEL, "queued")
    entry = signed.under("outbound.resolve", "delivery", str(id), before={"state": state}, after={"state": after})
    yield from auditing(entry, now)
    return after


def _settling_some(
    id: UUID, state: DeliveryState, outcome: Literal["sent", "not_sent"], signed: Signature, now: datetime
) -> Script[str]:
    """Settle the recipients whose fate is unknown, while others of the same mail are still tried."""
    if outcome == "sent":
        yield sql("settle_unknown_recipients", id, "sent", now)
    else:
        yield sql("queue_unknown_recipients", id, None, now, now)
        yield Notify(CHANNEL, "queued")
    yield from auditing(signed.under("outbound.resolve", "delivery", str(id), after={"recipients": outcome}), now)
    return state


@transaction
def hasten_mail(id: UUID, signed: Signature, now: datetime) -> Script[None]:
    """Make a mail that waits for its next attempt due at once."""
    state, _ = yield from _lock(id)
    if state == "unknown":
        raise IllegalMove(f"the mail {id} may have been sent; look, and say so with `postroom outbound resolve`")
    if state not in ("queued", "deferred"):
        raise IllegalMove(f"the mail {id} is {state}, so it is not waiting for an attempt")
    yield sql("hasten_mail", id, now)
    yield from auditing(signed.under("outbound.retry", "delivery", str(id), before={"state": state}), now)
    yield Notify(CHANNEL, "queued")


@transaction
def cancel_mail(id: UUID, signed: Signature, now: datetime) -> Script[Cancellation]:
    """Do not send it: its action is canceled at once, and so is the mail where it is certain that nobody is sending it.

    `stopping`: a sender holds it, or it has a draft that may have been sent. The next sender looks, and takes it back.
    """
    mail = yield from _lock(id)
    if mail.state in DELIVERY.terminal:
        raise IllegalMove(f"the mail {id} is {mail.state} and cannot be canceled any more")
    reason, result = _reason(mail, signed), "canceled"
    has_draft = bool((yield sql("select_outbound_draft", id)))
    if mail.state == "sending" or (has_draft and mail.state != "unknown"):
        result = "stopping"
        yield sql("request_mail_cancel", id)
        yield sql("hasten_mail", id, now)
    else:
        DELIVERY.check(mail.state, result)
        yield from ending_unheld(id, result, None, reason, now)
    # What is unknown or stopping may have been sent: then its sender counts as answered.
    yield from canceling(mail.action_id, reason, now, maybe_sent=result == "stopping" or mail.state == "unknown")
    before, after = {"state": mail.state}, {"result": result}
    yield from auditing(signed.under("outbound.cancel", "delivery", str(id), before=before, after=after), now)
    return result


def _reason(mail: _Locked, signed: Signature) -> str:
    why = f": {signed.reason[:LONGEST_REASON]}" if signed.reason else ""
    doubt = "; it may have been sent before" if mail.state == "unknown" else ""
    return f"canceled by {signed.actor}{why}{doubt}"


def _lock(id: UUID) -> Script[_Locked]:
    mail = read_first(_Locked, (yield sql("lock_mail", id)))
    if mail is None:
        raise NotFound(f"there is no outgoing mail {id}; `postroom outbound list` shows what there is")
    return mail

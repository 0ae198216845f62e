"""What people say about outgoing mail: what became of it, that it is to be tried now, or not to be sent at all.

resolve_delivery   unknown ──► delivered | queued
hasten_delivery    queued | deferred, due at once
cancel_delivery    queued | deferred | unknown ──► canceled; what a sender holds, or has a draft, is stopped by a
                   sender, because its action has ended: only the mailbox tells that it was not sent already
"""

from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from postroom.core.errors import IllegalMove, NotFound
from postroom.core.lifecycle import DELIVERY, DeliveryState
from postroom.store.audit import Signature, auditing
from postroom.store.engine.database import Notify, Script, sql, transaction
from postroom.store.engine.reading import read_first
from postroom.store.outbound_ends import CHANNEL, canceling, completing

LONGEST_REASON = 300

Cancellation = Literal["canceled", "stopping"]


class _Locked(NamedTuple):
    state: DeliveryState
    action_id: UUID
    draft_id: str | None


@transaction
def resolve_delivery(id: UUID, outcome: Literal["sent", "not_sent"], signed: Signature, now: datetime) -> Script[str]:
    """A person has looked: it was sent, or it was not and is sent now. Returns the state after that."""
    state, action_id, _ = yield from _lock(id)
    if state != "unknown":
        raise IllegalMove(f"what became of the mail {id} is known: it is {state}; `postroom outbound show` tells more")
    after = "delivered" if outcome == "sent" else "queued"
    DELIVERY.check(state, after)
    if outcome == "sent":
        yield sql("settle_unknown_delivery", id, now)
        yield from completing(action_id, None, now)
    else:
        yield sql("queue_unknown_delivery", id, now)
        yield sql("note_on_action", action_id, None, now)
        yield Notify(CHANNEL, "queued")
    entry = signed.under("outbound.resolve", "delivery", str(id), before={"state": state}, after={"state": after})
    yield from auditing(entry, now)
    return after


@transaction
def hasten_delivery(id: UUID, signed: Signature, now: datetime) -> Script[None]:
    """One that waits for its next attempt is due at once."""
    state, _, _ = yield from _lock(id)
    if state == "unknown":
        raise IllegalMove(f"the mail {id} may have been sent; look, and say so with `postroom outbound resolve`")
    if state not in ("queued", "deferred"):
        raise IllegalMove(f"the mail {id} is {state}, so it does not wait for anything")
    yield sql("hasten_delivery", id, now)
    yield from auditing(signed.under("outbound.retry", "delivery", str(id), before={"state": state}), now)
    yield Notify(CHANNEL, "queued")


@transaction
def cancel_delivery(id: UUID, signed: Signature, now: datetime) -> Script[Cancellation]:
    """It is not to be sent: its action ends as canceled at once, and so does the mail where that can be known here.

    `stopping`: a sender holds it, or it has a draft that may have been sent. The next sender looks, and takes it back.
    """
    delivery = yield from _lock(id)
    if delivery.state in DELIVERY.terminal:
        raise IllegalMove(f"the mail {id} is {delivery.state} and cannot be canceled any more")
    reason = _reason(delivery, signed)
    result: Cancellation = "stopping"
    if delivery.state == "unknown" or (delivery.state != "sending" and delivery.draft_id is None):
        DELIVERY.check(delivery.state, "canceled")
        result = "canceled"
        yield sql("withdraw_delivery", id, result, reason, now)
    else:
        yield sql("hasten_delivery", id, now)
    if delivery.state in ("queued", "deferred") and result == "canceled":
        # What is unknown may have been sent: then its sender counts as answered.
        yield sql("delete_auto_reply", delivery.action_id)
    yield from canceling(delivery.action_id, reason, now)
    before, after = {"state": delivery.state}, {"result": result}
    yield from auditing(signed.under("outbound.cancel", "delivery", str(id), before=before, after=after), now)
    return result


def _reason(delivery: _Locked, signed: Signature) -> str:
    why = f": {signed.reason[:LONGEST_REASON]}" if signed.reason else ""
    doubt = "; it may have been sent before" if delivery.state == "unknown" else ""
    return f"canceled by {signed.actor}{why}{doubt}"


def _lock(id: UUID) -> Script[_Locked]:
    delivery = read_first(_Locked, (yield sql("lock_delivery", id)))
    if delivery is None:
        raise NotFound(f"there is no outgoing mail {id}; `postroom outbound list` shows what there is")
    return delivery

"""The moves of outgoing mail, each part of a transaction: a mail, its recipients and its action change together.

The row of the mail is written first: its lock is that of its recipients, its draft and its content too. Whoever asked
for the mail is told of its end: an action ends with it; whoever asked without one hears of it on the channel, and finds
the end, with its reason, at the mail.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.actions.permits import DeliveryLease
from postroom.core.actions.undo import sent_hint
from postroom.core.errors import LeaseLost
from postroom.core.lifecycle import DELIVERY, DeliveryState
from postroom.core.outbound.states import mail_state
from postroom.store.actions.actions import locking
from postroom.store.actions.decisions import CHANNEL as DECISIONS
from postroom.store.engine.codecs import as_uuid, json_text
from postroom.store.engine.database import Notify, Rows, Script, sql
from postroom.store.outbound.outbound_figures import recording_delivery
from postroom.store.outbound.outbound_results import counting_sending
from postroom.store.outbound.outbound_signals import CHANNEL as CHANNEL
from postroom.store.outbound.outbound_turns import leaving

DraftIds = tuple[str, str]
"""The id of a draft, and that of the message in it."""
DIED = (
    "the process that sent it died before it knew the answer, so it may have arrived; look at the destination, then "
    "run `postroom outbound resolve`"
)


def owned(hold: DeliveryLease, rows: Rows) -> Sequence[Any]:
    """The row that a statement has changed under this lease."""
    if not rows:
        raise lease_lost(hold)
    return rows[0]


def lease_lost(hold: DeliveryLease) -> LeaseLost:
    return LeaseLost(f"the mail {hold.id} was taken over by another sender; this one changes nothing")


def keeping_draft(id: UUID, draft: DraftIds | None) -> Script[None]:
    if draft is not None:
        yield sql("upsert_outbound_draft", id, *draft)


def returning(hold: DeliveryLease, draft: DraftIds | None, now: datetime) -> Script[UUID | None]:
    """The mail waits again, as if nobody had tried. Returns the action that asked for it."""
    (action_id,) = owned(hold, (yield sql("return_mail", *hold, now)))
    yield sql("move_recipients", hold.id, "queued", None, None, now)
    yield from keeping_draft(hold.id, draft)
    return _optional(action_id)


def releasing(hold: DeliveryLease, reason: str, now: datetime) -> Script[None]:
    """The holder lets go of a mail that leaves by SMTP, without knowing what became of it."""
    owned(hold, (yield sql("return_mail", *hold, now)))
    yield from releasing_recipients(hold.id, reason, now)
    yield Notify(CHANNEL, "queued")


def releasing_recipients(id: UUID, reason: str, now: datetime) -> Script[None]:
    """Recipients whose mail was leaving are unknown, for this reason; the others wait again. The mail is queued."""
    yield sql("insert_doubtful_attempts", id, reason, now)
    doubted = yield sql("doubt_leaving", id, reason, now)
    yield sql("return_recipients", id, now)
    if doubted:
        states = [row[0] for row in (yield sql("select_recipient_states", id))]
        if mail_state(states) == "unknown":
            yield sql("doubt_returned_mail", id, reason, now)
        yield Notify(CHANNEL, "unknown")


def deferring(hold: DeliveryLease, not_before: datetime, error: str, now: datetime) -> Script[None]:
    yield from counting_sending(hold.id, "deferred", now)
    action_id = yield from _leaving(hold, "deferred", now, error, reply=error, not_before=not_before)
    yield from noting(action_id, error, now)
    yield Notify(CHANNEL, "deferred")


def doubting(hold: DeliveryLease, error: str, now: datetime) -> Script[None]:
    action_id = yield from _leaving(hold, "unknown", now, error)
    yield from noting(action_id, error, now)
    yield Notify(CHANNEL, "unknown")


def delivering(hold: DeliveryLease, sent_message_id: str, now: datetime) -> Script[None]:
    recipients = yield from counting_sending(hold.id, "sent", now)
    action_id = yield from _leaving(hold, "sent", now, sent_message_id=sent_message_id)
    yield from recording_delivery(hold.id, recipients, now)
    yield from completing(action_id, sent_message_id, now)


def bouncing(hold: DeliveryLease, error: str, now: datetime) -> Script[None]:
    yield from counting_sending(hold.id, "bounced", now)
    action_id = yield from _leaving(hold, "bounced", now, error, reply=error)
    yield from failing(action_id, error, now)


def _leaving(
    hold: DeliveryLease,
    state: DeliveryState,
    now: datetime,
    error: str | None = None,
    *,
    reply: str | None = None,
    not_before: datetime | None = None,
    sent_message_id: str | None = None,
) -> Script[UUID | None]:
    """The sender lets go of the mail. Returns the action that asked for it."""
    ended_at = now if state in DELIVERY.terminal else None
    rows = yield sql("end_sending", *hold, state, not_before, sent_message_id, error, ended_at, now)
    (action_id,) = owned(hold, rows)
    yield sql("insert_mailbox_attempts", hold.id, state, reply or error, now)
    yield from _moving_recipients(hold.id, state, not_before, reply, now)
    return _optional(action_id)


def ending_unheld(
    id: UUID, state: DeliveryState, sent_message_id: str | None, error: str | None, now: datetime
) -> Script[None]:
    """End a mail that no sender holds: recipients that have not ended take this state. Its action is the caller's."""
    yield from leaving(id)
    yield sql("end_waiting_mail", id, state, sent_message_id, error, now)
    yield from _moving_recipients(id, state, None, None, now)
    followed = mail_state([row[0] for row in (yield sql("select_recipient_states", id))])
    if followed != state:
        yield sql("correct_mail_state", id, followed)


def _moving_recipients(
    id: UUID, state: DeliveryState, not_before: datetime | None, reply: str | None, now: datetime
) -> Script[None]:
    yield sql("move_recipients", id, state, not_before, reply, now)
    if state in DELIVERY.terminal:
        yield sql("delete_outbound_content", id)


def noting(action_id: UUID | None, note: str | None, now: datetime) -> Script[None]:
    """Note at the action why it is still being carried out."""
    if action_id is not None:
        yield sql("note_on_action", action_id, note, now)


def completing(action_id: UUID | None, sent_message_id: str | None, now: datetime) -> Script[None]:
    """An action that somebody has ended meanwhile stays as it is: the mail is out all the same, and says so itself."""
    yield Notify(CHANNEL, "sent")
    if action_id is None:
        return
    action = yield from locking(action_id)
    if action is not None:
        yield from noting(action_id, None, now)
        hint = sent_hint(action.action_type, action.undo_hint, sent_message_id)
        yield sql("complete_action", action_id, json_text(hint), now)
    yield Notify(DECISIONS, "completed")


def failing(action_id: UUID | None, error: str, now: datetime) -> Script[None]:
    """The mail was not sent, and whoever would have been answered may be answered by the next one."""
    yield Notify(CHANNEL, "failed")
    if action_id is not None:
        yield sql("delete_auto_reply", action_id)
        yield sql("fail_action", action_id, error, None, now)
        yield Notify(DECISIONS, "failed")


def canceling(action_id: UUID | None, reason: str, now: datetime, *, maybe_sent: bool = False) -> Script[None]:
    """The action ends as canceled, unless it has ended before. A mail that may have been sent counts as an answer."""
    yield Notify(CHANNEL, "canceled")
    if action_id is not None:
        if not maybe_sent:
            yield sql("delete_auto_reply", action_id)
        yield sql("cancel_action", action_id, reason, now)
        yield Notify(DECISIONS, "canceled")


def _optional(id: Any) -> UUID | None:
    return None if id is None else as_uuid(id)

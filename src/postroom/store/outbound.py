"""Mail on its way out: admitted with the end of its job, leased by a sender, delivered with the end of its action.

    admit_delivery ──► queued ──lease_deliveries──► sending ──deliver────► delivered   (the action is completed)
                         ▲                            │ │ └───bounce─────► bounced     (the action has failed)
     give_back_delivery ─┘      deferred ◄────defer───┘ └─────doubt──────► unknown     (a person says what happened)
                                       withdraw_delivery ──► canceled | expired

Every change of what is being sent names the lease: a sender that was taken for dead changes nothing. The kill switch is
read in the transaction that admits, in that which leases, and once more right before anything is sent. What people
say about outgoing mail is in outbound_answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.actions.permits import DeliveryLease
from postroom.core.errors import Fatal, LeaseLost, NotFound
from postroom.core.jobs.job import Job
from postroom.core.lifecycle import AccountState, DeliveryState
from postroom.store.actions import locking
from postroom.store.decisions import CHANNEL as DECISIONS
from postroom.store.engine.codecs import as_time, as_uuid, json_text
from postroom.store.engine.database import Notify, Rows, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.jobs import completing_one
from postroom.store.outbound_ends import CHANNEL as CHANNEL
from postroom.store.outbound_ends import canceling, completing
from postroom.store.pauses import unless_paused
from postroom.store.protection import protected_now
from postroom.store.restores import sent_before_restore, settling_at_admission

DeliveryKind = Literal["forward", "reply"]
Withdrawn = Literal["canceled", "expired"]
DraftIds = tuple[str, str]
"""The id of a draft, and that of the message in it."""


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A finished mail. `thread_id` is the conversation of a reply; `source_key` names what it is about."""

    id: UUID
    account_id: UUID
    action_id: UUID
    kind: DeliveryKind
    recipients: tuple[str, ...]
    subject: str
    mime: str = field(repr=False)
    thread_id: str | None = None
    source_key: str | None = None


class SendGuard(NamedTuple):
    """What is looked at again in the transaction that admits. Without `once_since`, whom it goes to does not matter."""

    sender: str
    labels: frozenset[str]
    once_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeasedDelivery:
    """A delivery in the hands of a sender."""

    id: UUID
    lease_token: UUID
    account_id: UUID
    action_id: UUID
    thread_id: str | None
    attempts: int
    draft_id: str | None
    draft_message_id: str | None
    admitted_at: datetime
    asked_at: datetime
    """When the action was decided on: it was not sent earlier. A person may have had it admitted anew since."""
    account_state: AccountState

    @property
    def hold(self) -> DeliveryLease:
        return DeliveryLease(self.id, self.lease_token)


@transaction
def admit_delivery(job: Job, new: NewDelivery, guard: SendGuard, now: datetime) -> Script[str | None]:
    """The mail waits to be sent, and the job has done its part; or, for the reason returned, it is not sent.

    Raises Parked while a pause stands. An account is locked, so that two answers to one sender are not both the first.
    """
    yield from completing_one(job, now)
    for state, _ in (yield sql("lock_account", new.account_id)):
        if state == "removed":
            raise Fatal("the account was removed; connect it with `postroom account add gmail`")
    yield from unless_paused(new.account_id)
    refused = (yield from protected_now(new.account_id)).reason(guard.sender, guard.labels)
    was_sent = yield from sent_before_restore(new.account_id, new.source_key)
    if refused is None and guard.once_since is not None and not was_sent:
        refused = yield from _answer_once(new, guard.once_since, now)
    if refused is not None:
        yield from canceling(new.action_id, refused, now)
        return refused
    yield sql(
        "insert_outbound",
        new.id,
        new.account_id,
        new.action_id,
        new.kind,
        json_text(new.recipients),
        new.subject,
        new.mime,
        new.thread_id,
        new.source_key,
        now,
    )
    yield from settling_at_admission(new.id, new.account_id, new.action_id, new.source_key, new.id, now)
    yield Notify(CHANNEL, "queued")
    return None


def _answer_once(new: NewDelivery, since: datetime, now: datetime) -> Script[str | None]:
    to = new.recipients[0]
    for action_id, replied_at in (yield sql("select_auto_reply", new.account_id, to)):
        if as_time(replied_at) > since and as_uuid(action_id) != new.action_id:
            return f"this sender was answered on {as_time(replied_at):%Y-%m-%d}; one answer is enough for a while"
    yield sql("upsert_auto_reply", new.account_id, to, new.action_id, now)
    return None


@transaction
def refuse_delivery(job: Job, action_id: UUID, reason: str, now: datetime) -> Script[str | None]:
    """It is not sent, and that is no failure: the job has ended, the action is canceled with the reason."""
    yield from completing_one(job, now)
    yield from canceling(action_id, reason, now)
    return reason


@query
def any_delivery_due(now: datetime) -> Script[bool]:
    """Whether a look would find something: those who wait in vain only read."""
    return bool((yield sql("select_due_delivery", now)))


@transaction
def lease_deliveries(lease_token: UUID, most: int, now: datetime, until: datetime) -> Script[list[LeasedDelivery]]:
    """Takes those that are due, the longest due first, and those whose sender has died. The token is new each time."""
    yield sql("return_deliveries", now)
    yield sql("lease_deliveries", lease_token, until, most, now)
    rows = yield sql("select_leased_deliveries", lease_token, until)
    return read_rows(LeasedDelivery, rows, lease_token=lease_token)


@query
def load_mime(id: UUID) -> Script[str]:
    rows = yield sql("select_mime", id)
    if not rows or not rows[0][0]:
        raise NotFound(f"the text of the mail {id} is not kept any more")
    return rows[0][0]


@transaction
def hold_delivery(
    hold: DeliveryLease, draft: DraftIds | None, now: datetime, until: datetime
) -> Script[Literal["executing", "ended"]]:
    """Right before sending: keeps the draft's ids, renews the lease, and tells whether the action still wants it.

    Raises Parked while a pause stands: the draft is kept all the same, by the next transaction that gives it back.
    """
    draft_id, message_id = draft or (None, None)
    rows = yield sql("hold_delivery", *hold, draft_id, message_id, until, now)
    account_id, action_id = _ours(hold, rows)
    yield from unless_paused(as_uuid(account_id))
    action = yield from locking(as_uuid(action_id))
    return "executing" if action is not None and action.state == "executing" else "ended"


@transaction
def renew_delivery(hold: DeliveryLease, draft: DraftIds | None, now: datetime, until: datetime) -> Script[None]:
    """Between questions that take long: it stays this sender's own, and what is known of its draft is kept."""
    draft_id, message_id = draft or (None, None)
    _ours(hold, (yield sql("hold_delivery", *hold, draft_id, message_id, until, now)))


@transaction
def give_back_delivery(hold: DeliveryLease, draft: DraftIds | None, now: datetime) -> Script[None]:
    """Back to those that wait, as if nobody had tried; what is known of its draft is kept."""
    if draft is not None:
        _ours(hold, (yield sql("hold_delivery", *hold, *draft, now, now)))
    _ours(hold, (yield sql("return_delivery", *hold, now)))
    yield Notify(CHANNEL, "queued")


@transaction
def deliver(hold: DeliveryLease, sent_message_id: str, now: datetime) -> Script[None]:
    """It was sent: the delivery has ended, and with it the action."""
    rows = yield sql("end_delivery", *hold, "delivered", sent_message_id, None, now)
    (action_id,) = _ours(hold, rows)
    yield from completing(as_uuid(action_id), sent_message_id, now)


@transaction
def defer(hold: DeliveryLease, draft: DraftIds | None, not_before: datetime, error: str, now: datetime) -> Script[None]:
    """Not now: it is tried again then. The reason is shown at the action too, which goes on."""
    if draft is not None:
        _ours(hold, (yield sql("hold_delivery", *hold, *draft, now, now)))
    (action_id,) = _ours(hold, (yield sql("defer_delivery", *hold, not_before, error, now)))
    yield sql("note_on_action", as_uuid(action_id), error, now)
    yield Notify(CHANNEL, "deferred")


@transaction
def bounce(hold: DeliveryLease, error: str, now: datetime) -> Script[None]:
    """It was refused for good, and was not sent."""
    (action_id,) = _ours(hold, (yield sql("end_delivery", *hold, "bounced", None, error, now)))
    yield from _failed(as_uuid(action_id), error, now)


@transaction
def doubt(hold: DeliveryLease, error: str, now: datetime) -> Script[None]:
    """Nobody can tell whether it was sent. It is not sent again until a person has said that it was not."""
    (action_id,) = _ours(hold, (yield sql("doubt_delivery", *hold, error, now)))
    yield sql("note_on_action", as_uuid(action_id), error, now)
    yield Notify(CHANNEL, "unknown")


@transaction
def withdraw_delivery(hold: DeliveryLease, state: Withdrawn, error: str, now: datetime) -> Script[None]:
    """It was not sent and will not be: first given back, then ended, as the lifecycle has it."""
    (action_id,) = _ours(hold, (yield sql("return_delivery", *hold, now)))
    yield sql("withdraw_delivery", hold.id, state, error, now)
    if state == "canceled":
        yield sql("delete_auto_reply", as_uuid(action_id))
        yield from canceling(as_uuid(action_id), error, now)
    else:
        yield from _failed(as_uuid(action_id), error, now)


def _ours(hold: DeliveryLease, rows: Rows) -> Sequence[Any]:
    if not rows:
        raise LeaseLost(f"the mail {hold.id} was taken over by another sender; this one changes nothing")
    return rows[0]


def _failed(action_id: UUID, error: str, now: datetime) -> Script[None]:
    yield sql("delete_auto_reply", action_id)
    yield sql("fail_action", action_id, error, now)
    yield Notify(CHANNEL, "failed")
    yield Notify(DECISIONS, "failed")


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """Outgoing mail as it is shown. `paused` is why nothing is sent at all, where that is so."""

    id: UUID
    account_id: UUID
    account: str
    account_state: AccountState
    action_id: UUID
    kind: DeliveryKind
    recipients: tuple[str, ...]
    subject: str
    state: DeliveryState
    attempts: int
    not_before: datetime
    draft_id: str | None
    sent_message_id: str | None
    error: str | None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    paused: str | None


@query
def list_deliveries(most: int, state: str | None = None) -> Script[list[DeliveryView]]:
    """The newest first."""
    return read_rows(DeliveryView, (yield sql("select_deliveries", None, state, most)))


@query
def load_delivery(id: UUID) -> Script[DeliveryView]:
    view = read_first(DeliveryView, (yield sql("select_deliveries", str(id), None, 1)))
    if view is None:
        raise NotFound(f"there is no outgoing mail {id}; `postroom outbound list` shows what there is")
    return view

"""Mail that leaves by SMTP: what becomes of each recipient, and of the mail that follows from it.

    load_outgoing ──► leave ──────────► record_outcomes ──► sent | deferred | bounced | rejected | expired | unknown
                      │ the content leaves now     │ the mail, its action, the counts, reports and suppressions with it
                      └─ its holder dies: unknown, with the reason; the others are queued again

Every change names the lease. What is `unknown` waits for a person (`outbound_answers.resolve_mail`), or is sent again
if the settings say so (`resend_unknown`); it is never repeated otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import NamedTuple
from uuid import UUID

from postroom.core.actions.permits import DeliveryLease
from postroom.core.errors import Canceled, NotFound, Parked
from postroom.core.lifecycle import DELIVERY, DeliveryState, RecipientState
from postroom.core.mail.addresses import canonical
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.destinations import smtp_address
from postroom.core.outbound.priority import NEW_FOR
from postroom.core.outbound.retries import RetrySchedule
from postroom.core.outbound.states import mail_state
from postroom.core.outbound.transport import MailOptions, MessageClass
from postroom.core.outbound.transport import Notify as NotifyOn
from postroom.store import outbound_moves as moves
from postroom.store.engine.codecs import as_time, as_uuid, rows_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.jobs import PAUSE
from postroom.store.outbound import CHANNEL, NewMail, queueing_mail
from postroom.store.outbound_figures import recording_delivery
from postroom.store.pauses import is_all_paused
from postroom.store.sender_counts import SenderCount, counting
from postroom.store.sender_notices import SYSTEM
from postroom.store.senders import sender_for
from postroom.store.suppressions import suppressing

STOPPED = "the process ended while it was sent; look at the destination, then run `postroom outbound resolve`"


@dataclass(frozen=True, slots=True)
class OutgoingContent:
    """A leased mail as it is given to a transport, and what is needed to report about it."""

    id: UUID
    tenant: str
    sender_id: int
    envelope_sender: str
    message_class: MessageClass
    options: MailOptions
    admitted_at: datetime
    content: bytes = field(repr=False)


class LeasedRecipient(NamedTuple):
    """A recipient that is due. `refused` says why it gets nothing: it is suppressed. `paused`: its destination is."""

    position: int
    address: str
    attempts: int
    notify: tuple[NotifyOn, ...]
    original: str | None
    delay_reported: bool
    last_reply: str | None
    refused: str | None = None
    paused: str | None = None


class RecipientChange(NamedTuple):
    """What became of a recipient in one attempt. An `uncounted` one was none: the destination was told nothing."""

    position: int
    address: str
    state: RecipientState
    reply: str | None
    enhanced: str | None = None
    bounce_class: BounceClass | None = None
    not_before: datetime | None = None
    uncounted: bool = False
    reports_delay: bool = False


@query
def load_outgoing(hold: DeliveryLease) -> Script[tuple[OutgoingContent, list[LeasedRecipient]]]:
    """The mail under this lease, and its recipients that are due."""
    mail = read_first(OutgoingContent, (yield sql("select_outgoing_mail", *hold)))
    if mail is None:
        raise NotFound(f"the mail {hold.id} is not held under this lease, or its content is not kept any more")
    rows = list((yield sql("select_leased_recipients", hold.id)).by_name())
    named = {row["position"]: canonical(row["address"]) or row["address"] for row in rows}
    refused: dict[str, str] = {}
    for address, cause, detail in (yield sql("select_suppressed", mail.tenant, list(named.values()))):
        refused[address] = f"this address is suppressed ({cause}{f': {detail}' if detail else ''})"
    paused = yield from _destination_pauses()
    found = [
        LeasedRecipient(
            row["position"],
            row["address"],
            row["attempts"],
            tuple(row["notify"].split(",")) if row["notify"] else (),
            row["original"],
            bool(row["delay_reported"]),
            row["last_reply"],
            refused.get(named[row["position"]]),
            paused.get(_destination(row["address"])),
        )
        for row in rows
    ]
    return mail, found


@transaction
def leave(hold: DeliveryLease, positions: Sequence[int], now: datetime, until: datetime) -> Script[None]:
    """Store that the content leaves for these recipients now, and renew the lease; or raise if it may not leave.

    Raises Parked while a pause stands, of everything, of the tenant or of the destination; Canceled if somebody has
    canceled it; LeaseLost if another sender has taken over. A pause of everything comes before or after this, and finds
    what leaves.
    """
    yield sql("await_no_pause")
    _, _, cancel_requested = moves.owned(hold, (yield sql("renew_mail_lease", *hold, until, now)))
    if (yield from is_all_paused()):
        raise Parked(f"{PAUSE}all", "Postroom is paused; `postroom resume` continues")
    for name, reason in (yield sql("select_tenant_pause", hold.id)):
        raise Parked(f"{PAUSE}tenant", f"the tenant {name} is paused: {reason}")
    if cancel_requested:
        raise Canceled(f"the mail {hold.id} was canceled")
    rows = yield sql("mark_leaving", hold.id, list(positions), now)
    paused = yield from _destination_pauses()
    for (address,) in rows:
        if (destination := _destination(address)) in paused:
            raise Parked(f"{PAUSE}destination", f"mail to {destination} is paused: {paused[destination]}")


def _destination(address: str) -> str:
    found = smtp_address(address)
    return found.destination if found is not None else ""


def _destination_pauses() -> Script[dict[str, str]]:
    return {row[0]: row[1] for row in (yield sql("select_destination_pauses"))}


@transaction
def record_outcomes(
    hold: DeliveryLease, changes: Sequence[RecipientChange], reports: Sequence[NewMail], now: datetime
) -> Script[DeliveryState]:
    """Store what became of each recipient, and all that follows from it. Returns the state of the mail.

    The reports to its sender wait to be sent from then on. A canceled mail is not tried again.
    """
    action, cancel_requested, sender_id, tenant = moves.owned(hold, (yield sql("lock_sending_mail", *hold, now)))
    if cancel_requested:
        changes = [_canceled(each) for each in changes]
    yield sql("record_recipients", hold.id, rows_text([_row(each) for each in changes]), now)
    yield from counting([_count(sender_id, changes)], now)
    for each in changes:
        if each.state == "bounced" and each.bounce_class is BounceClass.HARD:
            yield from suppressing(tenant, each.address, "bounce", each.reply, hold.id, now)
    yield from queueing_reports(reports, now)
    state = yield from _settling(hold, None if action is None else as_uuid(action), now)
    yield from recording_delivery(hold.id, sum(each.state == "sent" for each in changes), now)
    return state


def queueing_reports(reports: Sequence[NewMail], now: datetime) -> Script[None]:
    """Part of a transaction: let reports wait to be sent, from the tenant of the system itself."""
    if reports:
        yield from sender_for(SYSTEM, SYSTEM, SYSTEM, now, since=now - NEW_FOR)
    for report in reports:
        yield from queueing_mail(report, now)


def _row(change: RecipientChange) -> tuple[object, ...]:
    said = change.reply, change.enhanced, change.bounce_class
    return change.position, change.state, int(change.uncounted), change.not_before, *said, change.reports_delay


def _canceled(change: RecipientChange) -> RecipientChange:
    waits = change.state in ("queued", "deferred")
    return change._replace(state="canceled", not_before=None) if waits else change


def _count(sender_id: int, changes: Sequence[RecipientChange]) -> SenderCount:
    states = [each.state for each in changes]
    failed = states.count("bounced") + states.count("expired")
    return SenderCount(sender_id, 0, states.count("sent"), failed, states.count("rejected"))


def _settling(hold: DeliveryLease, action_id: UUID | None, now: datetime) -> Script[DeliveryState]:
    """The holder lets go of the mail; its state follows from its recipients, and its action with it."""
    state, error, not_before = yield from derived(hold.id)
    has_ended = state in DELIVERY.terminal
    yield sql("end_sending", *hold, state, not_before, None, error, now if has_ended else None, now)
    yield Notify(CHANNEL, state)
    yield from ending(hold.id, action_id, state, error, now)
    return state


def derived(id: UUID) -> Script[tuple[DeliveryState, str | None, datetime | None]]:
    """Part of a transaction: the state of a mail by its recipients, its error, and when the next of them is due."""
    rows = yield sql("select_recipient_states", id)
    state = mail_state([row[0] for row in rows])
    due = [as_time(row[1]) for row in rows if row[0] in ("queued", "deferred")]
    troubled = [row[2] for row in rows if row[0] != "sent" and row[2] is not None]
    return state, troubled[0] if troubled else None, min(due, default=None)


def ending(id: UUID, action_id: UUID | None, state: DeliveryState, error: str | None, now: datetime) -> Script[None]:
    """Part of a transaction: what follows from the state of a mail, for its content and its action."""
    if state in DELIVERY.terminal:
        yield sql("delete_outbound_content", id)
    match state:
        case "sent" | "partially_sent":
            yield from moves.completing(action_id, None, now)
        case "canceled":
            yield from moves.canceling(action_id, error or "canceled", now)
        case "bounced" | "rejected" | "expired":
            yield from moves.failing(action_id, error or state, now)
        case _:
            yield from moves.noting(action_id, error, now)


@transaction
def release_mail(hold: DeliveryLease, now: datetime) -> Script[None]:
    """Let go of a mail whose delivery is interrupted: whom its content was leaving for is unknown, the others wait."""
    yield from moves.releasing(hold, STOPPED, now)


@query
def has_unknown(schedule: RetrySchedule, now: datetime) -> Script[bool]:
    """Whether `resend_unknown` would find something."""
    return bool((yield sql("select_unknown_mail", now - schedule.give_up, 1)))


@transaction
def resend_unknown(most: int, schedule: RetrySchedule, rng: Random, now: datetime) -> Script[list[UUID]]:
    """By the rule `resend`: let mail whose fate is unknown be sent again. Returns which.

    It waits as deferred mail does: a server that takes mail and never answers must not get it over and over. When its
    time is over, a person decides.
    """
    found: list[UUID] = []
    note = "it may have been sent before; sent again as `delivery.unknown` says"
    for id, admitted_at, attempts in (yield sql("select_unknown_mail", now - schedule.give_up, most)):
        later = schedule.next_try(attempts, as_time(admitted_at), now, rng) or now
        yield sql("queue_unknown_recipients", as_uuid(id), note, later, now)
        found.append(as_uuid(id))
    if found:
        yield Notify(CHANNEL, "queued")
    return found


@dataclass(frozen=True, slots=True)
class RecipientResult:
    """A recipient of an outgoing mail as it is shown in full."""

    position: int
    address: str
    state: RecipientState
    attempts: int
    not_before: datetime
    last_reply: str | None
    enhanced: str | None
    bounce_class: BounceClass | None


@query
def list_results(mail_id: UUID) -> Script[list[RecipientResult]]:
    """What has become of each recipient, in the order of the mail."""
    return read_rows(RecipientResult, (yield sql("select_recipient_results", mail_id)))

"""Mail that leaves by SMTP: what becomes of each recipient, and of the mail that follows from it.

    load_outgoing ──► leave ──────────► record_outcomes ──► sent | deferred | bounced | rejected | expired | unknown
                      │ the content leaves now     │ the mail, its action, the counts, reports and suppressions with it
                      └─ its holder dies: unknown, with the reason; the others are queued again

Every change names the lease. What is `unknown` waits for a person (`outbound_answers.resolve_mail`), or is sent again
if the settings say so (`resend_unknown`); it is never repeated otherwise.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.permits import DeliveryLease
from postroom.core.errors import Canceled, LeaseLost, Parked, PostroomError
from postroom.core.lifecycle import DELIVERY, DeliveryState, RecipientState
from postroom.core.mail.addresses import canonical
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.destinations import smtp_address
from postroom.core.outbound.fairness import Discipline
from postroom.core.outbound.priority import NEW_FOR, SenderLane
from postroom.core.outbound.retries import RetrySchedule
from postroom.core.outbound.states import mail_state
from postroom.core.outbound.strikes import USUAL_STRIKES, StrikeRule
from postroom.core.outbound.transport import MailOptions, MessageClass
from postroom.core.outbound.transport import Notify as NotifyOn
from postroom.store.actions.pauses import is_all_paused
from postroom.store.engine.codecs import as_time, as_uuid, rows_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_row, read_rows
from postroom.store.jobs.jobs import PAUSE
from postroom.store.outbound import outbound_moves as moves
from postroom.store.outbound.outbound import CHANNEL, NewMail, queueing_mail
from postroom.store.outbound.outbound_attempts import recording_attempts
from postroom.store.outbound.outbound_figures import Delivered, recording_deliveries
from postroom.store.outbound.outbound_results import CountedOutcome, counting_outcomes
from postroom.store.outbound.sender_counts import SenderCount, counting
from postroom.store.outbound.senders import sender_for
from postroom.store.outbound.suppressions import Refusal, clearing_strikes, striking, suppressing

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
    """The outcome of one attempt at a recipient. An `uncounted` one was none: nothing was said to the destination.

    `strikes` says that its refusal counts against the address. `host` is the server that replied, if one did, and `tls`
    what protected the connection to it. `held` is the reason of an uncounted one.
    """

    position: int
    address: str
    state: RecipientState
    reply: str | None
    enhanced: str | None = None
    bounce_class: BounceClass | None = None
    not_before: datetime | None = None
    uncounted: bool = False
    reports_delay: bool = False
    strikes: bool = False
    host: str | None = None
    tls: str | None = None
    held: str | None = None


class Outgoing(NamedTuple):
    """A leased mail, and its recipients that are due."""

    mail: OutgoingContent
    recipients: list[LeasedRecipient]


@query
def load_outgoing(
    holds: Sequence[DeliveryLease], now: datetime, longest: int | None = None
) -> Script[list[Outgoing | None]]:
    """The mails under these leases. None for one that is not held so, or whose content is longer, or not kept."""
    mails: dict[DeliveryLease, OutgoingContent] = {}
    rows = yield sql("select_outgoing_mail", [hold.id for hold in holds], longest)
    for row in rows.by_name():
        mails[DeliveryLease(as_uuid(row["id"]), as_uuid(row["lease_token"]))] = read_row(OutgoingContent, row)
    tenants = {mail.id: mail.tenant for hold, mail in mails.items() if hold in holds}
    rows = yield sql("select_leased_recipients", list(tenants))
    found = [(as_uuid(row["mail_id"]), row) for row in rows.by_name()]
    named = {row["address"]: canonical(row["address"]) or row["address"] for _, row in found}
    refused: dict[tuple[str, str], str] = {}
    suppressed = yield sql("select_suppressed", sorted(set(tenants.values())), sorted(set(named.values())), now)
    for tenant, address, cause, detail in suppressed:
        refused[tenant, address] = f"this address is suppressed ({cause}{f': {detail}' if detail else ''})"
    paused = yield from _destination_pauses()
    recipients: defaultdict[UUID, list[LeasedRecipient]] = defaultdict(list)
    for id, row in found:
        why = refused.get((tenants[id], named[row["address"]])), paused.get(_destination(row["address"]))
        recipients[id].append(_recipient(row, *why))
    return [Outgoing(mail, recipients[mail.id]) if (mail := mails.get(hold)) else None for hold in holds]


@query
def measure_content(id: UUID) -> Script[tuple[str, int] | None]:
    """The tenant of a mail and the length of its content in bytes; None if that is not kept any more."""
    for tenant, length in (yield sql("select_content_length", id)):
        return tenant, length
    return None


def _recipient(row: Mapping[str, Any], refused: str | None, paused: str | None) -> LeasedRecipient:
    return LeasedRecipient(
        row["position"],
        row["address"],
        row["attempts"],
        tuple(row["notify"].split(",")) if row["notify"] else (),
        row["original"],
        bool(row["delay_reported"]),
        row["last_reply"],
        refused,
        paused,
    )


class Departure(NamedTuple):
    """The recipients of a mail for whom its content would leave now."""

    hold: DeliveryLease
    recipients: Sequence[tuple[int, str]]
    """Their positions and addresses."""


@transaction
def leave(departures: Sequence[Departure], now: datetime, until: datetime) -> Script[list[PostroomError | None]]:
    """Store that the contents leave now, and renew the leases. Returns, for each, the reason why it may not leave.

    That is Parked while a pause stands, of everything, of the tenant or of the destination; Canceled if somebody has
    canceled it; LeaseLost if another sender has taken over. A pause of everything comes before or after this, and finds
    what leaves.
    """
    yield sql("await_no_pause")
    ids = [each.hold.id for each in departures]
    held: dict[DeliveryLease, bool] = {}
    for id, lease_token, cancel_requested in (yield sql("renew_mail_leases", ids, until, now)):
        held[DeliveryLease(as_uuid(id), as_uuid(lease_token))] = bool(cancel_requested)
    stopped = yield from is_all_paused()
    tenants = {as_uuid(id): (name, why) for id, name, why in (yield sql("select_paused_tenants", ids))}
    destinations = yield from _destination_pauses()
    answers: list[PostroomError | None] = []
    for hold, recipients in departures:
        error = moves.lease_lost(hold) if hold not in held else None
        if error is None and stopped:
            error = Parked(f"{PAUSE}all", "Postroom is paused; `postroom resume` continues")
        if error is None and hold.id in tenants:
            name, why = tenants[hold.id]
            error = Parked(f"{PAUSE}tenant", f"the tenant {name} is paused: {why}")
        if error is None and held[hold]:
            error = Canceled(f"the mail {hold.id} was canceled")
        answers.append(error or _paused_destination(recipients, destinations))
    leaving = [
        (hold.id, position)
        for (hold, recipients), error in zip(departures, answers, strict=True)
        for position, _ in recipients
        if error is None
    ]
    yield sql("mark_leaving", rows_text(leaving), now)
    return answers


def _paused_destination(recipients: Sequence[tuple[int, str]], paused: Mapping[str, str]) -> Parked | None:
    for _, address in recipients:
        if (destination := _destination(address)) in paused:
            return Parked(f"{PAUSE}destination", f"mail to {destination} is paused: {paused[destination]}")
    return None


def _destination(address: str) -> str:
    found = smtp_address(address)
    return found.destination if found is not None else ""


def _destination_pauses() -> Script[dict[str, str]]:
    return {row[0]: row[1] for row in (yield sql("select_destination_pauses"))}


class Attempt(NamedTuple):
    """The outcome of one attempt at a mail, and the reports to its sender about that."""

    hold: DeliveryLease
    changes: Sequence[RecipientChange]
    reports: Sequence[NewMail] = ()
    strikes: StrikeRule = USUAL_STRIKES


class _Held(NamedTuple):
    id: UUID
    lease_token: UUID
    action_id: UUID | None
    cancel_requested: bool
    sender_id: int
    tenant: str
    discipline: Discipline | None
    admitted_at: datetime
    lane: SenderLane


@transaction
def record_outcomes(attempts: Sequence[Attempt], now: datetime) -> Script[list[DeliveryState | LeaseLost]]:
    """Store what became of each recipient, and all that follows from it. Returns the state of each mail, or LeaseLost.

    The reports to its sender wait to be sent from then on. A canceled mail is not tried again.
    """
    rows = yield sql("lock_sending_mails", [each.hold.id for each in attempts], now)
    locked = {DeliveryLease(each.id, each.lease_token): each for each in read_rows(_Held, rows)}
    ours = [(locked[each.hold], _unless_canceled(each, locked[each.hold])) for each in attempts if each.hold in locked]
    if ours:
        changed = [(attempt.hold.id, *_row(each)) for _, attempt in ours for each in attempt.changes]
        yield sql("record_recipients", rows_text(changed), now)
        yield from recording_attempts([(attempt.hold.id, each) for _, attempt in ours for each in attempt.changes], now)
        yield from counting([_count(mail.sender_id, attempt.changes) for mail, attempt in ours], now)
        outcomes = [_outcome(each) for _, attempt in ours for each in attempt.changes if not each.uncounted]
        yield from counting_outcomes(outcomes, ours[0][0].id, now)
        reached = [(mail.tenant, each.address) for mail, a in ours for each in a.changes if each.state == "sent"]
        yield from clearing_strikes(reached)
        for mail, attempt in ours:
            yield from _following(mail, attempt, now)
    states = yield from _settling([mail for mail, _ in ours], now)
    yield from _measuring(ours, now)
    return [states[each.hold.id] if each.hold in locked else moves.lease_lost(each.hold) for each in attempts]


def _unless_canceled(attempt: Attempt, mail: _Held) -> Attempt:
    return (
        attempt._replace(changes=[_cancel_waiting(each) for each in attempt.changes])
        if mail.cancel_requested
        else attempt
    )


def _following(mail: _Held, attempt: Attempt, now: datetime) -> Script[None]:
    for each in attempt.changes:
        if each.state == "bounced" and each.bounce_class is BounceClass.HARD:
            yield from suppressing(mail.tenant, each.address, "bounce", each.reply, mail.id, now)
        elif each.strikes:
            yield from striking(Refusal(mail.tenant, each.address, each.reply, mail.id), attempt.strikes, now)
    yield from queueing_reports(attempt.reports, now)


def _measuring(ours: Sequence[tuple[_Held, Attempt]], now: datetime) -> Script[None]:
    delivered: list[Delivered] = []
    for mail, attempt in ours:
        sent = sum(each.state == "sent" for each in attempt.changes)
        if sent and mail.discipline is not None:
            delivered.append(Delivered(mail.discipline, mail.lane, mail.admitted_at, sent))
    if delivered:
        yield from recording_deliveries(delivered, ours[0][0].id, now)


def queueing_reports(reports: Sequence[NewMail], now: datetime) -> Script[None]:
    """Part of a transaction: let reports wait to be sent, from senders that are not new."""
    for report in reports:
        tenant, domain, username, _ = report.sender
        yield from sender_for(tenant, domain, username, now, since=now - NEW_FOR)
        yield from queueing_mail(report, now)


def _row(change: RecipientChange) -> tuple[object, ...]:
    said = change.reply, change.enhanced, change.bounce_class
    return change.position, change.state, int(change.uncounted), change.not_before, *said, change.reports_delay


def _cancel_waiting(change: RecipientChange) -> RecipientChange:
    waits = change.state in ("queued", "deferred")
    return change._replace(state="canceled", not_before=None) if waits else change


def _outcome(change: RecipientChange) -> CountedOutcome:
    return CountedOutcome(change.address, change.state, change.bounce_class)


def _count(sender_id: int, changes: Sequence[RecipientChange]) -> SenderCount:
    states = [each.state for each in changes]
    failed = states.count("bounced") + states.count("expired")
    return SenderCount(sender_id, 0, states.count("sent"), failed, states.count("rejected"))


def _settling(mails: Sequence[_Held], now: datetime) -> Script[dict[UUID, DeliveryState]]:
    """The holder lets go of the mails; the state of each follows from its recipients, and its action with it."""
    if not mails:
        return {}
    ids = [mail.id for mail in mails]
    recipients: defaultdict[UUID, list[Sequence[Any]]] = defaultdict(list)
    for id, *row in (yield sql("select_states_of_mails", ids)):
        recipients[as_uuid(id)].append(row)
    settled = {id: _derive(recipients[id]) for id in ids}
    rows: list[tuple[object, ...]] = []
    for id, (state, error, not_before) in settled.items():
        rows.append((id, state, not_before, error, now if state in DELIVERY.terminal else None))
    yield sql("end_sendings", rows_text(rows), now)
    yield sql("delete_outbound_contents", [id for id, (state, _, _) in settled.items() if state in DELIVERY.terminal])
    for mail in mails:
        state, error, _ = settled[mail.id]
        yield Notify(CHANNEL, state)
        yield from _telling(mail.action_id, state, error, now)
    return {id: state for id, (state, _, _) in settled.items()}


Derived = tuple[DeliveryState, str | None, datetime | None]
"""The state of a mail, its error, and when the next of its recipients is due."""


def derived(id: UUID) -> Script[Derived]:
    """Part of a transaction: what follows for a mail from its recipients."""
    return _derive((yield sql("select_recipient_states", id)))


def _derive(rows: Sequence[Sequence[Any]]) -> Derived:
    state = mail_state([row[0] for row in rows])
    due = [as_time(row[1]) for row in rows if row[0] in ("queued", "deferred")]
    troubled = [row[2] for row in rows if row[0] != "sent" and row[2] is not None]
    return state, troubled[0] if troubled else None, min(due, default=None)


def ending(id: UUID, action_id: UUID | None, state: DeliveryState, error: str | None, now: datetime) -> Script[None]:
    """Part of a transaction: what follows from the state of a mail, for its content and its action."""
    if state in DELIVERY.terminal:
        yield sql("delete_outbound_content", id)
    yield from _telling(action_id, state, error, now)


def _telling(action_id: UUID | None, state: DeliveryState, error: str | None, now: datetime) -> Script[None]:
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
    """List the result of each recipient, in the order of the mail."""
    return read_rows(RecipientResult, (yield sql("select_recipient_results", mail_id)))

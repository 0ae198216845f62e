"""Outgoing mail: admitted with the end of its job, leased by a sender, and ended together with its action.

    admit_mail ──► queued ──lease_mail──► sending ──deliver────► sent        (the action is completed)
                     ▲                      │ │ └───bounce─────► bounced     (the action has failed)
      give_back_mail ┘   deferred ◄──defer──┘ └─────doubt──────► unknown     (a person says what happened)
                                 withdraw_mail ──► canceled | expired

Mail that is due waits for its turn (outbound_turns); which mail is next, the fair picker says.

A mail stands on its own: a user of a tenant's domain sends it, and an action may have asked for it. Each recipient is
a row with a state of its own; a mailbox sends to all of them at once, so there they share the state of their mail.

Every change of a mail being sent names the lease: a sender that was taken for dead changes nothing. The kill switch is
read in the transaction that admits, in the one that leases, and once more right before anything is sent. What people
say about outgoing mail is in outbound_answers.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.actions.permits import DeliveryLease
from postroom.core.errors import Collided, Fatal, NotFound
from postroom.core.jobs.job import Job
from postroom.core.lifecycle import AccountState, DeliveryState, RecipientState
from postroom.core.mail.addresses import canonical
from postroom.core.mail.headers import head_of, read_head, values
from postroom.core.outbound.fair_nodes import InFlight
from postroom.core.outbound.fairness import Discipline
from postroom.core.outbound.lanes import Lane, LanePolicy
from postroom.core.outbound.priority import SenderLane
from postroom.core.outbound.rollout import Rollout
from postroom.core.outbound.transport import MailOptions
from postroom.core.outbound.transport import MessageClass as MessageClass
from postroom.core.submission.envelope import Recipient
from postroom.store.actions.actions import locking
from postroom.store.actions.pauses import check_paused, is_all_paused
from postroom.store.actions.protection import protected_now
from postroom.store.engine.codecs import as_optional_time, as_time, as_uuid
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_row, read_rows
from postroom.store.installation.restores import OpenMail, sent_before_restore, settling_at_admission
from postroom.store.jobs.jobs import completing_one
from postroom.store.outbound import outbound_moves as moves
from postroom.store.outbound.delivery_bound import DeliveryBound, bounding
from postroom.store.outbound.outbound_figures import LeaseFigure, recording_leases
from postroom.store.outbound.outbound_moves import CHANNEL as CHANNEL
from postroom.store.outbound.outbound_moves import DraftIds
from postroom.store.outbound.outbound_turns import ReadyMail, choosing, joining, keeping, waking
from postroom.store.outbound.senders import ending_holds, sender_for, standing

MailKind = Literal["forward", "reply", "submitted", "report"]
Withdrawn = Literal["canceled", "expired"]

WOKEN_AT_ONCE = 1000
LONGEST_MESSAGE_ID = 998
LOOK_AGAIN = timedelta(minutes=1)
"""When mail is looked at again whose mailbox cannot be used."""
LONG_DUE = datetime.fromtimestamp(0, UTC)
EVERYWHERE = Rollout("all")
NO_OPTIONS = MailOptions()


@dataclass(frozen=True, slots=True)
class Capacity:
    """The places for deliveries of one dispatcher, those in use, and the shares of lanes and tenants.

    With a `stopwatch`, the time that choosing takes is measured too. A `bound` holds for all processes together.
    """

    in_flight: InFlight
    policy: LanePolicy = field(default_factory=LanePolicy.of)
    rollout: Rollout = EVERYWHERE
    stopwatch: Callable[[], float] | None = None
    bound: DeliveryBound | None = None


class MailSender(NamedTuple):
    """On whose behalf a mail is sent. `envelope_sender` is the address to which a failure is reported."""

    tenant: str
    domain: str
    username: str
    envelope_sender: str

    @classmethod
    def of_mailbox(cls, email: str) -> "MailSender":
        """The owner of a mailbox. A domain is its own tenant."""
        domain = email.rpartition("@")[2].lower()
        return cls(domain, domain, email, email)


@dataclass(frozen=True, slots=True)
class NewMail:
    """A finished mail. `thread_id` is the conversation of a reply; `source_key` names what it is about."""

    id: UUID
    account_id: UUID | None
    """The mailbox that it leaves through, if it does not leave by SMTP."""
    action_id: UUID | None
    """The action that asked for it, if one did."""
    sender: MailSender
    kind: MailKind
    recipients: tuple[Recipient, ...]
    subject: str
    content: bytes = field(repr=False)
    thread_id: str | None = None
    source_key: str | None = None
    message_class: MessageClass = "transactional"
    not_before: datetime | None = None
    options: MailOptions = NO_OPTIONS


class SendGuard(NamedTuple):
    """Checked again in the transaction that admits a mail: the sender and labels of the message that it is about, and,
    for an answer, that its recipient was not answered after `once_since`."""

    sender: str
    labels: frozenset[str]
    once_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LeasedMail:
    """A mail that a sender holds."""

    id: UUID
    lease_token: UUID
    lane: Lane
    tenant_id: int
    sender_id: int
    sender_lane: SenderLane
    """The lane of its sender's priority, where `lane` may be that of retries or of first in, first out."""
    cost: int
    """How many recipients it goes to."""
    account_id: UUID | None
    """The mailbox that it leaves through; without one it leaves by SMTP."""
    action_id: UUID | None
    thread_id: str | None
    leases: int
    """How often it was leased, this time included."""
    attempts: int
    draft_id: str | None
    draft_message_id: str | None
    admitted_at: datetime
    asked_at: datetime
    """When it was asked for: it was not sent earlier. A person may have had it admitted anew since."""
    account_state: AccountState | None

    @property
    def hold(self) -> DeliveryLease:
        return DeliveryLease(self.id, self.lease_token)

    @property
    def discipline(self) -> Discipline:
        return "fifo" if self.lane == "fifo" else "fair"

    @property
    def is_first(self) -> bool:
        return self.leases == 1


@transaction
def admit_mail(
    job: Job, new: NewMail, guard: SendGuard | None, now: datetime, rollout: Rollout = EVERYWHERE
) -> Script[str | None]:
    """Let the mail wait to be sent, and end the job; or return the reason why it is not sent.

    Raises Parked while a pause stands. The account is locked, so that two answers to one sender are not both the first.
    """
    account_id = _mailbox_of(new)
    yield from completing_one(job, now)
    for state, _ in (yield sql("lock_account", account_id)):
        if state == "removed":
            raise Fatal("the account was removed; connect it again with `postroom account add`")
    yield from check_paused.script(account_id)
    if (refused := (yield from _refusal(new, account_id, guard, now))) is not None:
        yield from moves.canceling(new.action_id, refused, now)
        return refused
    yield from queueing_mail(new, now, rollout)
    waiting = OpenMail(new.id, new.action_id, "queued", new.source_key, now)
    yield from settling_at_admission(waiting, account_id, new.id, now)
    return None


def queueing_mail(new: NewMail, now: datetime, rollout: Rollout = EVERYWHERE) -> Script[None]:
    """Part of a transaction: let the mail, its recipients and its content wait until it is their turn."""
    tenant, domain, username, envelope_sender = new.sender
    sender = yield from sender_for(tenant, domain, username, now)
    turn = yield from standing(sender, now)
    names = (new.kind, new.subject, new.account_id, new.thread_id, new.source_key, new.action_id)
    not_before = new.not_before or now
    ready = not_before <= now
    owner = (sender.tenant, domain, username, sender.id, new.message_class, envelope_sender)
    asked = (*astuple(new.options), message_id_of(new.content))
    ((seq,),) = yield sql("insert_outbound_mail", new.id, *owner, *names, *asked, ready, not_before, now)
    for position, each in enumerate(new.recipients):
        asked = each.address, ",".join(each.notify), each.original
        yield sql("insert_outbound_recipient", new.id, position, *asked, not_before, now)
    yield sql("insert_outbound_content", new.id, new.content)
    if ready:
        mail = ReadyMail(new.id, seq, new.message_class == "bulk", max(1, len(new.recipients)))
        yield from joining([(turn.standing(rollout), mail)])
    yield Notify(CHANNEL, "queued")


def message_id_of(content: bytes) -> str | None:
    """The Message-ID, by which a report about the mail is recognised."""
    found = values(read_head(head_of(content)).headers, "message-id")
    return found[0].strip()[:LONGEST_MESSAGE_ID] or None if found else None


def _mailbox_of(new: NewMail) -> UUID:
    if new.account_id is None:
        raise Fatal("the mail of an action leaves through a mailbox, and this one names none")
    return new.account_id


def _refusal(new: NewMail, account_id: UUID, guard: SendGuard | None, now: datetime) -> Script[str | None]:
    if (suppressed := (yield from _suppression(new, now))) is not None or guard is None:
        return suppressed
    refused = (yield from protected_now(account_id)).reason(guard.sender, guard.labels)
    was_sent = yield from sent_before_restore(account_id, new.source_key)
    if refused is None and guard.once_since is not None and not was_sent:
        refused = yield from _answer_once(new, account_id, guard.once_since, now)
    return refused


def _suppression(new: NewMail, now: datetime) -> Script[str | None]:
    """The reason why nobody would get it, if all of its recipients are suppressed."""
    tenant, domain, username, _ = new.sender
    sender = yield from sender_for(tenant, domain, username, now)
    names = {canonical(each.address) or each.address for each in new.recipients}
    found = list((yield sql("select_suppressed", [sender.tenant], sorted(names), now)))
    if not found or len(found) < len(names):
        return None
    _, address, cause, _ = found[0]
    return f"{address} is suppressed ({cause}); `postroom suppression remove` lets mail go there again"


def _answer_once(new: NewMail, account_id: UUID, since: datetime, now: datetime) -> Script[str | None]:
    to, asker = new.recipients[0].address, new.action_id or new.id
    for action_id, replied_at in (yield sql("select_auto_reply", account_id, to)):
        if as_time(replied_at) > since and as_uuid(action_id) != asker:
            return f"this sender was answered on {as_time(replied_at):%Y-%m-%d}; one answer is enough for a while"
    yield sql("upsert_auto_reply", account_id, to, asker, now)
    return None


@transaction
def refuse_mail(job: Job, action_id: UUID | None, reason: str, now: datetime) -> Script[str | None]:
    """End the job without sending, which is no failure: the action is canceled with the reason."""
    yield from completing_one(job, now)
    yield from moves.canceling(action_id, reason, now)
    return reason


@query
def any_mail_due(now: datetime) -> Script[bool]:
    """Whether choosing would find something: idle dispatchers only read."""
    if (yield from is_all_paused()):
        return False
    if (yield sql("select_any_turn")) or (yield sql("select_due_mail", now)):
        return True
    return bool((yield sql("select_ended_holds", 1, now)))


@query
def next_mail_due() -> Script[datetime | None]:
    """When the next mail becomes due that is not: its time comes, its holder's lease ends, or its sender's throttle. A
    time in the past: something waits now.
    """
    if (yield sql("select_any_turn")):
        return LONG_DUE
    return as_optional_time((yield sql("select_next_mail"))[0][0])


@transaction
def lease_mail(
    lease_token: UUID, most: int, now: datetime, until: datetime, capacity: Capacity | None = None
) -> Script[list[LeasedMail]]:
    """Take the mails whose turn it is. Those whose holder has died wait for their turn again. The token is new each
    time."""
    capacity = capacity or Capacity(InFlight(most))
    for (id,) in (yield sql("return_expired_mail", now)):
        yield from moves.releasing_recipients(as_uuid(id), moves.DIED, now)
    if (yield from is_all_paused()):
        return []
    yield from ending_holds(now)
    yield from waking(capacity.rollout, WOKEN_AT_ONCE, now)
    in_flight = capacity.in_flight
    if capacity.bound is not None:
        in_flight, most = yield from bounding(in_flight, most, capacity.bound, now)
    stopwatch = capacity.stopwatch or _standing_still
    started = stopwatch()
    chosen = yield from choosing(capacity.policy, in_flight, most)
    if not chosen.picks:
        return []
    picked = {each.mail.seq: each for each in chosen.picks}
    measured = capacity.rollout.is_measured
    for (taken,) in (yield sql("lease_chosen", list(picked), lease_token, until, now + LOOK_AGAIN, measured, now)):
        if taken < len(picked):
            raise Collided("a mail that was chosen waits no more; choose again")
    yield from keeping(chosen)
    took = None if capacity.stopwatch is None else timedelta(seconds=stopwatch() - started)
    yield sql("lease_recipients", lease_token, until, now)
    leased: list[LeasedMail] = []
    for row in (yield sql("select_leased_mail", lease_token, until)).by_name():
        pick = picked[row["seq"]]
        leased.append(read_row(LeasedMail, row, lease_token=lease_token, lane=pick.lane, cost=int(pick.mail.cost)))
    if measured:
        yield from recording_leases([_lease(each, now) for each in leased], took, now)
    return leased


def _lease(mail: LeasedMail, now: datetime) -> LeaseFigure:
    wait = now - mail.admitted_at if mail.is_first else None
    return LeaseFigure(mail.discipline, mail.sender_id, mail.sender_lane, mail.cost, wait)


def _standing_still() -> float:
    return 0.0


@query
def load_content(id: UUID) -> Script[bytes]:
    rows = yield sql("select_outbound_content", id)
    if not rows:
        raise NotFound(f"the text of the mail {id} is not kept any more")
    return rows[0][0]


@transaction
def hold_mail(
    hold: DeliveryLease, draft: DraftIds | None, now: datetime, until: datetime
) -> Script[Literal["wanted", "ended"]]:
    """Right before sending: keep the draft's ids, renew the lease, and return whether the mail is still wanted.

    Raises Parked while a pause stands: the draft is kept all the same, by the next transaction that gives it back.
    """
    account_id, action_id, cancel_requested = yield from _renewing(hold, draft, now, until)
    yield from check_paused.script(as_uuid(account_id))
    if cancel_requested:
        return "ended"
    if action_id is None:
        return "wanted"
    action = yield from locking(as_uuid(action_id))
    return "wanted" if action is not None and action.state == "executing" else "ended"


@transaction
def renew_mail(hold: DeliveryLease, draft: DraftIds | None, now: datetime, until: datetime) -> Script[None]:
    """Renew the lease while a long question is asked, and keep what is known of the draft."""
    yield from _renewing(hold, draft, now, until)


def _renewing(
    hold: DeliveryLease, draft: DraftIds | None, now: datetime, until: datetime
) -> Script[tuple[Any, Any, bool]]:
    account_id, action_id, cancel_requested = moves.owned(hold, (yield sql("renew_mail_lease", *hold, until, now)))
    yield from moves.keeping_draft(hold.id, draft)
    return account_id, action_id, bool(cancel_requested)


@transaction
def give_back_mail(hold: DeliveryLease, draft: DraftIds | None, now: datetime) -> Script[None]:
    """Let the mail wait again, as if nobody had tried; what is known of its draft is kept."""
    yield from moves.returning(hold, draft, now)
    yield Notify(CHANNEL, "queued")


@transaction
def deliver(hold: DeliveryLease, sent_message_id: str, now: datetime) -> Script[None]:
    """It was sent: the mail has ended, and its action with it."""
    yield from moves.delivering(hold, sent_message_id, now)


@transaction
def defer(hold: DeliveryLease, draft: DraftIds | None, not_before: datetime, error: str, now: datetime) -> Script[None]:
    """Try again then. The reason is shown at the action too, which goes on."""
    yield from moves.deferring(hold, not_before, error, now)
    yield from moves.keeping_draft(hold.id, draft)


@transaction
def bounce(hold: DeliveryLease, error: str, now: datetime) -> Script[None]:
    """It was refused for good, and was not sent."""
    yield from moves.bouncing(hold, error, now)


@transaction
def doubt(hold: DeliveryLease, error: str, now: datetime) -> Script[None]:
    """Mark a mail as unknown: it may have been sent, and is not sent again until a person says that it was not."""
    yield from moves.doubting(hold, error, now)


@transaction
def withdraw_mail(hold: DeliveryLease, state: Withdrawn, error: str, now: datetime) -> Script[None]:
    """It was not sent and will not be: first given back, then ended, as the lifecycle has it."""
    action_id = yield from moves.returning(hold, None, now)
    yield from moves.ending_unheld(hold.id, state, None, error, now)
    yield from (moves.canceling if state == "canceled" else moves.failing)(action_id, error, now)


@dataclass(frozen=True, slots=True)
class MailView:
    """Outgoing mail as it is shown. `paused` is why nothing is sent at all, where that is so."""

    id: UUID
    account_id: UUID | None
    account: str | None
    account_state: AccountState | None
    username: str
    action_id: UUID | None
    kind: MailKind
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
def list_mail(most: int, state: str | None = None) -> Script[list[MailView]]:
    """The newest first."""
    return read_rows(MailView, (yield sql("select_outbound_mail", None, state, most)))


@query
def load_mail(id: UUID) -> Script[MailView]:
    view = read_first(MailView, (yield sql("select_outbound_mail", str(id), None, 1)))
    if view is None:
        raise NotFound(f"there is no outgoing mail {id}; `postroom outbound list` shows what there is")
    return view


class RecipientView(NamedTuple):
    """One recipient of an outgoing mail. `last_reply` is how the last failed attempt was answered."""

    address: str
    state: RecipientState
    attempts: int
    not_before: datetime
    last_reply: str | None


@query
def list_recipients(mail_id: UUID) -> Script[list[RecipientView]]:
    """In the order of the mail."""
    return read_rows(RecipientView, (yield sql("select_outbound_recipients", mail_id)))

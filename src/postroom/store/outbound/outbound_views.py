"""Outgoing mail and its queue as people look at it: who was served how evenly, who waits, and single mails.

Lists are read in the order of acceptance by key, so that a page costs the same however much mail there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from postroom.core.errors import NotFound
from postroom.core.lifecycle import DeliveryState, RecipientState
from postroom.core.outbound.bounce_classes import BounceClass
from postroom.core.outbound.fairness import Discipline
from postroom.core.outbound.priority import SenderLane
from postroom.core.views import Internal, Untrusted
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.installation.figure_folds import folded_part
from postroom.store.outbound.outbound import MailKind, MessageClass
from postroom.store.outbound.outbound_attempts import AttemptView, list_attempts
from postroom.store.outbound.suppressions import Suppression
from postroom.store.outbound.tenants import TenantState

NEWEST = 2**63 - 1
LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class EvennessHour:
    """How evenly tenants were served in one hour, per unit of weight."""

    hour: datetime
    members: int
    served: Annotated[int, "Recipients of the mail that was leased."]
    gini: float
    jain: float


@query
def evenness_hours(since: datetime, until: datetime) -> Script[list[EvennessHour]]:
    """The hours of the window in which somebody was served, oldest first."""
    begin, end = yield from folded_part("evenness", since, until)
    before = read_rows(EvennessHour, (yield sql("select_evenness_hours", since, begin))) if since < begin else []
    kept = read_rows(EvennessHour, (yield sql("select_kept_evenness", begin, end))) if begin < end else []
    return [*before, *kept, *read_rows(EvennessHour, (yield sql("select_evenness_hours", end, until)))]


class WaitingTenant(NamedTuple):
    """The mail of a tenant that waits. `held` is the part of it that may not leave now."""

    tenant_id: int
    waiting: int
    held: int
    oldest_due_at: datetime | None


@query
def waiting_tenants() -> Script[list[WaitingTenant]]:
    """The tenants whose mail waits. Mail that goes first in, first out is not kept by tenant."""
    return read_rows(WaitingTenant, (yield sql("select_waiting_tenants")))


class SendingLane(NamedTuple):
    lane: SenderLane
    sending: int


@query
def sending_lanes() -> Script[list[SendingLane]]:
    """How much mail of each priority is in delivery now."""
    return read_rows(SendingLane, (yield sql("select_sending_lanes")))


class TenantNames(NamedTuple):
    id: int
    name: str
    weight: float
    state: TenantState
    state_reason: str | None


@query
def tenants_by_id(ids: Sequence[int]) -> Script[list[TenantNames]]:
    return read_rows(TenantNames, (yield sql("select_tenants_by_id", list(ids))))


@dataclass(frozen=True, slots=True)
class OutgoingLine:
    """One outgoing mail in a list: its first recipient, and how many there are."""

    id: UUID
    seq: Internal[int]
    tenant: str
    username: str
    kind: MailKind
    subject: Untrusted[str]
    state: DeliveryState
    error: Untrusted[str | None]
    recipient: Untrusted[str | None]
    recipients: int
    attempts: int
    asked_at: datetime
    updated_at: datetime


@query
def page_of_mail(states: Sequence[DeliveryState], before: int | None, most: int) -> Script[list[OutgoingLine]]:
    """Outgoing mail, the newest first; in these states, or in any."""
    last = NEWEST if before is None else before
    if states:
        return read_rows(OutgoingLine, (yield sql("select_mail_in_states", list(states), last, most)))
    return read_rows(OutgoingLine, (yield sql("select_newest_mail", last, most)))


@dataclass(frozen=True, slots=True)
class OutgoingDetail:
    """One outgoing mail, without its content."""

    id: UUID
    tenant: str
    domain: str
    username: str
    envelope_sender: Untrusted[str]
    message_class: MessageClass
    kind: MailKind
    subject: Untrusted[str]
    account: Annotated[str | None, "The mailbox that it leaves through, if it does not leave by SMTP."]
    action_id: UUID | None
    state: DeliveryState
    cancel_requested: bool
    error: Untrusted[str | None]
    require_tls: bool
    discipline: Internal[Discipline | None]
    leases: Internal[int]
    not_before: datetime
    asked_at: datetime
    admitted_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    paused: Annotated[str | None, "Why nothing is sent at all, where that is so."]


@dataclass(frozen=True, slots=True)
class RecipientDetail:
    """One recipient of a mail, and how the last attempt was answered."""

    position: int
    address: Untrusted[str]
    state: RecipientState
    attempts: int
    not_before: datetime
    last_reply: Untrusted[str | None]
    enhanced: str | None
    bounce_class: BounceClass | None
    updated_at: datetime
    complained_at: datetime | None


class MailConversation(NamedTuple):
    """A mail, what became of its recipients, and the attempts at them."""

    mail: OutgoingDetail
    recipients: Annotated[list[RecipientDetail], "The first of them, in the order of the mail."]
    attempts: Annotated[list[AttemptView], "The latest of them, in their order."]


@query
def load_conversation(id: UUID, most: int) -> Script[MailConversation]:
    """A mail with what was said about each of its recipients. Raises NotFound."""
    mail = read_first(OutgoingDetail, (yield sql("select_mail_detail", id)))
    if mail is None:
        raise NotFound(f"there is no outgoing mail {id}; `postroom outbound list` shows what there is")
    recipients = read_rows(RecipientDetail, (yield sql("select_recipient_details", id, most)))
    return MailConversation(mail, recipients, (yield from list_attempts.script(id, most)))


class SuppressionKey(NamedTuple):
    """Where a page of suppressed addresses ends."""

    at: datetime
    tenant: str
    address: str


@query
def page_of_suppressions(tenant: str | None, before: SuppressionKey | None, most: int) -> Script[list[Suppression]]:
    """Suppressed addresses, the newest first, of one tenant or of all."""
    last = before or SuppressionKey(LAST, "", "")
    if tenant is None:
        return read_rows(Suppression, (yield sql("select_newest_suppressions", *last, most)))
    return read_rows(Suppression, (yield sql("select_suppressions_of_tenant", tenant, last.at, last.address, most)))

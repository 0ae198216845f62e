"""The answers about outgoing mail."""

from datetime import datetime
from uuid import UUID

from postroom.interfaces.http.api.forms import Answer, Page


class SpreadForm(Answer):
    """How long something took, in seconds."""

    count: int
    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float


class OutboundQueueForm(Answer):
    """The queue as it is now. `limits` are those of one process with so many slots, while lanes compete."""

    condition: str
    multiplier: float
    waiting: int
    oldest_wait_s: float
    slots: int
    limits: dict[str, int]


class LaneForm(Answer):
    lane: str
    sending: int | None
    limit: int | None
    waiting: int
    oldest_due_at: datetime | None
    wait: SpreadForm | None


class EvennessHourForm(Answer):
    """How evenly tenants were served in one hour, per unit of weight."""

    hour: datetime
    members: int
    served: int
    gini: float
    jain: float


class SignForm(Answer):
    what: str
    points: int


class UntrustedThrottle(Answer):
    reason: str


class ThrottleForm(Answer):
    until: datetime
    untrusted: UntrustedThrottle


class WatchedForm(Answer):
    """A sender with a throttle or a score. `is_held` says that its mail is held back now."""

    username: str
    tenant: str
    score: int
    signs: list[SignForm]
    throttle: ThrottleForm | None
    is_held: bool


class ClassForm(Answer):
    """How often a result had a class; the class is empty where the answer gave none."""

    result: str
    bounce_class: str
    count: int


class UntrustedDestination(Answer):
    destination: str


class DestinationForm(Answer):
    sent: int
    deferred: int
    bounced: int
    rejected: int
    expired: int
    untrusted: UntrustedDestination


class ResultsForm(Answer):
    classes: list[ClassForm]
    destinations: list[DestinationForm]


class UntrustedPause(Answer):
    reason: str


class PausedDestinationForm(Answer):
    destination: str
    paused_by: str
    created_at: datetime
    untrusted: UntrustedPause


class OutboundAnswer(Answer):
    since: datetime
    until: datetime
    stage: str
    queue: OutboundQueueForm
    lanes: list[LaneForm]
    evenness: list[EvennessHourForm]
    watched: list[WatchedForm]
    results: ResultsForm
    paused: list[PausedDestinationForm]


class UntrustedState(Answer):
    state_reason: str | None


class TenantLineForm(Answer):
    """A tenant: what it was served in the window, its share of all, and what waits now."""

    id: int
    name: str
    weight: float
    state: str
    served: int
    share: float
    waiting: int
    held: int
    oldest_due_at: datetime | None
    untrusted: UntrustedState


class TenantPageAnswer(Page):
    """`tenants` is how many were served or have mail waiting, `served` is how many recipients in all."""

    lines: list[TenantLineForm]
    tenants: int
    served: int


class TenantForm(Answer):
    id: int
    name: str
    domains: list[str]
    senders: int
    weight: float
    state: str
    created_at: datetime
    updated_at: datetime
    untrusted: UntrustedState


class UntrustedSender(Answer):
    state_reason: str | None
    throttle_reason: str | None


class SenderForm(Answer):
    username: str
    domain: str
    tenant: str
    addresses: list[str]
    plan: str
    lane: str
    weight: float
    state: str
    daily_limit: int | None
    accepted_today: int
    abuse_score: int
    throttled_until: datetime | None
    has_password: bool
    created_at: datetime
    untrusted: UntrustedSender


class TenantAnswer(Answer):
    tenant: TenantForm
    senders: list[SenderForm]


class UntrustedOutgoing(Answer):
    subject: str
    recipient: str | None
    error: str | None


class OutgoingLineForm(Answer):
    """An outgoing mail: its first recipient, and how many there are."""

    id: UUID
    tenant: str
    username: str
    kind: str
    state: str
    recipients: int
    attempts: int
    asked_at: datetime
    updated_at: datetime
    untrusted: UntrustedOutgoing


class OutgoingPage(Page):
    """The newest first."""

    mail: list[OutgoingLineForm]


class UntrustedMailDetail(Answer):
    envelope_sender: str
    subject: str
    error: str | None


class OutgoingForm(Answer):
    """One mail, without its content. `paused` says why nothing is sent at all, where that is so."""

    id: UUID
    tenant: str
    domain: str
    username: str
    message_class: str
    kind: str
    account: str | None
    action_id: UUID | None
    state: str
    cancel_requested: bool
    require_tls: bool
    not_before: datetime
    asked_at: datetime
    admitted_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    paused: str | None
    untrusted: UntrustedMailDetail


class UntrustedRecipient(Answer):
    address: str
    last_reply: str | None


class RecipientForm(Answer):
    position: int
    state: str
    attempts: int
    not_before: datetime
    enhanced: str | None
    bounce_class: str | None
    updated_at: datetime
    complained_at: datetime | None
    untrusted: UntrustedRecipient


class UntrustedAttempt(Answer):
    address: str
    host: str | None
    reply: str | None


class AttemptForm(Answer):
    """One attempt at one recipient. While it is `held`, one attempt counts how often in `times`."""

    number: int
    outcome: str
    started_at: datetime
    ended_at: datetime
    times: int
    tls: str | None
    untrusted: UntrustedAttempt


class ConversationAnswer(Answer):
    """A mail, what became of its recipients, and the latest attempts at them in their order."""

    mail: OutgoingForm
    recipients: list[RecipientForm]
    attempts: list[AttemptForm]


class UntrustedSuppression(Answer):
    address: str
    detail: str | None


class SuppressionForm(Answer):
    tenant: str
    cause: str
    created_at: datetime
    expires_at: datetime | None
    untrusted: UntrustedSuppression


class SuppressionPageAnswer(Page):
    suppressions: list[SuppressionForm]

"""Senders: the users who may submit mail, what they may send, and throttles that hold back their mail.

throttling ──► in force: nothing is accepted, what waits stays ──its time is over──► mail drains as `throttled`
                                                                                          │ the score has fallen
               releasing, at any time, by a person ◄──────────────────────────────────────┘
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from postroom.core.errors import Conflict, DailyLimitReached, NotFound, SenderDisabled, SenderThrottled, TenantPaused
from postroom.core.jobs.job import NewJob
from postroom.core.outbound.limits import DailyLimits, day_of, limit_reached
from postroom.core.outbound.priority import DEFAULT_PLAN, SenderLane, Throttle, lane_of
from postroom.core.views import Internal, Untrusted
from postroom.store.engine.codecs import as_optional_time, as_time, json_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_first, read_row
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.outbound.outbound_signals import CHANNEL
from postroom.store.outbound.outbound_turns import SenderTurn, placing
from postroom.store.outbound.sender_counts import SenderCount, counting, next_hour
from postroom.store.outbound.tenants import TenantState, adding_domain, tenant_for
from postroom.store.people.audit import Signature, auditing

SenderState = Literal["active", "disabled"]
ThrottleCause = Literal["score", "person"]


@dataclass(frozen=True, slots=True)
class NewSender:
    """A sender to be added. The tenant is that of the domain, by default a tenant of its own name."""

    username: str
    domain: str
    addresses: tuple[str, ...]
    """Patterns of the addresses that may be written in From, such as `*@example.com`."""
    tenant: str | None = None
    password_hash: str | None = field(default=None, repr=False)
    plan: str = DEFAULT_PLAN
    weight: float = 1.0
    daily_limit: int | None = None


@dataclass(frozen=True, slots=True)
class Sender:
    """A sender with its place in the queue: domain and tenant, weights, and what says its lane."""

    id: int
    domain_id: int
    tenant_id: int
    username: str
    domain: str
    tenant: str
    plan: str
    state: SenderState
    tenant_state: TenantState
    weight: float
    domain_weight: float
    tenant_weight: float
    created_at: datetime
    throttle: Throttle | None

    def lane(self, now: datetime) -> SenderLane:
        return lane_of(self.plan, self.created_at, self.throttle, now)

    def is_held(self, now: datetime) -> bool:
        """Whether its mail is held back."""
        return self.state == "disabled" or (self.throttle is not None and self.throttle.is_in_force(now))


@dataclass(frozen=True, slots=True)
class SenderView:
    """A sender as it is shown, without the hash of the password."""

    id: Internal[int]
    username: str
    domain: str
    tenant: str
    addresses: tuple[str, ...]
    plan: str
    lane: SenderLane
    weight: float
    state: SenderState
    state_reason: Untrusted[str | None]
    daily_limit: int | None
    accepted_today: int
    abuse_score: int
    throttled_until: datetime | None
    throttle_reason: Untrusted[str | None]
    has_password: bool
    created_at: datetime
    updated_at: Internal[datetime]


@dataclass(frozen=True, slots=True)
class SenderLogin:
    """The data by which a sender logs in."""

    id: int
    username: str
    password_hash: str | None = field(repr=False)
    state: SenderState
    addresses: tuple[str, ...]
    daily_limit: int | None
    domain: str
    tenant: str


class ThrottleChange(NamedTuple):
    """A throttle that began, was changed or ended: the sender as it was, and the new throttle."""

    sender: Sender
    throttle: Throttle | None


class Grounds(NamedTuple):
    """The score that led to a throttle, and when the first sign of it was seen."""

    score: int
    active_since: datetime | None


@transaction
def add_sender(new: NewSender, signed: Signature, now: datetime) -> Script[SenderView]:
    """Add a sender, with its domain and tenant if they are new."""
    domain_id = yield from _domain_for(new.tenant, new.domain, now)
    added = yield from _inserting(domain_id, new, now, now)
    if added is None:
        remedy = f"see `postroom sender show {new.username}`"
        raise Conflict("sender", f"there is already a sender {new.username}", remedy)
    after = {
        "username": new.username,
        "domain": new.domain,
        "addresses": list(new.addresses),
        "plan": new.plan,
        "daily_limit": new.daily_limit,
    }
    yield from auditing(signed.under("sender.add", "sender", str(added), after=after), now)
    return (yield from _showing(new.username, now))[0]


def sender_for(tenant: str, domain: str, username: str, now: datetime, since: datetime | None = None) -> Script[Sender]:
    """Part of a transaction: the sender with this username, made with domain and tenant if there is none.

    `since` is when its owner was first known, such as the time at which a mailbox was connected.
    """
    username = username.lower()
    if (found := (yield from _finding(None, username))) is not None:
        return found
    domain_id = yield from _domain_for(tenant, domain.lower(), now, adopt=True)
    yield from _inserting(domain_id, NewSender(username, domain, (username,)), since or now, now)
    return (yield from _sender_named(username))


def _domain_for(tenant: str | None, domain: str, now: datetime, *, adopt: bool = False) -> Script[int]:
    """The id of the domain, which is made if there is none. One of another tenant is a Conflict, unless adopted."""
    for domain_id, owner in (yield sql("select_sender_domain", domain)):
        if adopt or tenant in (None, owner):
            return domain_id
        remedy = f"leave --tenant out, or use --tenant {owner}"
        raise Conflict("tenant", f"{domain} belongs to the tenant {owner}", remedy)
    tenant_id = yield from tenant_for(tenant or domain, now)
    for domain_id, _owner in (yield sql("select_sender_domain", domain)):
        return domain_id  # made by another process while we waited for the tenant
    return (yield from adding_domain(tenant_id, domain, now))


def _inserting(domain_id: int, new: NewSender, since: datetime, now: datetime) -> Script[int | None]:
    addresses = json_text(list(new.addresses))
    limits = (new.plan, new.weight, new.daily_limit)
    rows = yield sql("insert_sender", domain_id, new.username, addresses, new.password_hash, *limits, since, now)
    return rows[0][0] if rows else None


@query
def list_senders(
    now: datetime, tenant: str | None = None, *, throttled: bool = False, most: int = 10_000
) -> Script[list[SenderView]]:
    """By tenant, domain and name; only those with a throttle if `throttled`."""
    return (yield from _showing(None, now, tenant, throttled, most))


@query
def load_sender(username: str, now: datetime) -> Script[SenderView]:
    for view in (yield from _showing(username.lower(), now)):
        return view
    raise _unknown(username)


def _showing(
    username: str | None, now: datetime, tenant: str | None = None, throttled: bool = False, most: int = 1
) -> Script[list[SenderView]]:
    rows = yield sql("select_senders", username, tenant, throttled, day_of(now), most)
    return [read_row(SenderView, row, lane=_lane(row, now)) for row in rows.by_name()]


def _lane(row: Mapping[str, Any], now: datetime) -> SenderLane:
    until = as_optional_time(row["throttled_until"])
    throttle = None if until is None else Throttle(until, row["throttle_reason"])
    return lane_of(row["plan"], as_time(row["created_at"]), throttle, now)


@query
def sender_by_login(username: str) -> Script[SenderLogin | None]:
    """The sender who logs in with this name; None if there is none."""
    return read_first(SenderLogin, (yield sql("select_login", username.lower())))


@query
def sender_of_token(id: int) -> Script[SenderLogin]:
    """The sender that a token is bound to."""
    found = read_first(SenderLogin, (yield sql("select_login_by_id", id)))
    if found is None:
        raise _unknown_id(id)
    return found


@transaction
def set_password(username: str, password_hash: str, signed: Signature, now: datetime) -> Script[None]:
    """Replace the password. Only its hash is stored, and the audit log has neither."""
    sender = yield from _locking(username)
    yield sql("set_password", sender.id, password_hash, now)
    yield from auditing(signed.under("sender.password", "sender", str(sender.id)), now)


@transaction
def disable_sender(username: str, signed: Signature, now: datetime) -> Script[bool]:
    """Accept and send nothing of the sender any more; False if that was so before."""
    return (yield from _moving(username, "disabled", signed, now))


@transaction
def enable_sender(username: str, signed: Signature, now: datetime) -> Script[bool]:
    """Accept mail of the sender again; False if that was so before."""
    return (yield from _moving(username, "active", signed, now))


def _moving(username: str, state: SenderState, signed: Signature, now: datetime) -> Script[bool]:
    sender = yield from _locking(username)
    if sender.state == state:
        return False
    yield sql("move_sender", sender.id, state, signed.reason if state == "disabled" else None, now)
    yield from standing(replace(sender, state=state), now)
    action = "sender.disable" if state == "disabled" else "sender.enable"
    states = {"before": {"state": sender.state}, "after": {"state": state}}
    yield from auditing(signed.under(action, "sender", str(sender.id), **states), now)
    yield Notify(CHANNEL, "senders")
    return True


def _finding(id: int | None, username: str | None) -> Script[Sender | None]:
    return read_first(Sender, (yield sql("select_sender", id, username)))


def _sender_named(username: str) -> Script[Sender]:
    if (found := (yield from _finding(None, username.lower()))) is None:
        raise _unknown(username)
    return found


def sender_by_id(id: int) -> Script[Sender]:
    """Part of a transaction."""
    if (found := (yield from _finding(id, None))) is None:
        raise _unknown_id(id)
    return found


def standing(sender: Sender, now: datetime) -> Script[SenderTurn]:
    """Part of a transaction: bring the sender's waiting mail into the lane that it belongs to now."""
    return (yield from placing(sender.id, sender.lane(now), sender.is_held(now)))


def ending_holds(now: datetime, most: int = 100) -> Script[None]:
    """Part of a transaction: let mail of throttled senders drain whose time is over."""
    for (id,) in (yield sql("select_ended_holds", most, now)):
        yield from standing((yield from _locking_by_id(id)), now)


def _locking(username: str) -> Script[Sender]:
    return (yield from _locking_by_id((yield from _sender_named(username)).id))


def _locking_by_id(id: int) -> Script[Sender]:
    yield sql("lock_sender", id)
    return (yield from sender_by_id(id))


def _unknown_id(id: int) -> NotFound:
    return NotFound(f"there is no sender with the id {id}; `postroom sender list` lists them")


def _unknown(username: str) -> NotFound:
    return NotFound(f"there is no sender {username}; `postroom sender list` lists them")


# Throttles


@transaction
def throttle_sender(username: str, throttle: Throttle, signed: Signature, now: datetime) -> Script[ThrottleChange]:
    """Throttle a sender by hand, or change the throttle that stands."""
    sender = yield from _locking(username)
    return (yield from throttling(sender, throttle, None, signed, now))


@transaction
def throttle_for_score(
    sender_id: int, throttle: Throttle, grounds: Grounds, notices: list[NewJob], signed: Signature, now: datetime
) -> Script[ThrottleChange | None]:
    """Throttle a sender for its score, and have people told; None if another process was first."""
    sender = yield from _locking_by_id(sender_id)
    if sender.throttle is not None:
        return None
    change = yield from throttling(sender, throttle, grounds, signed, now)
    yield from enqueue_many.script(notices, now)
    return change


def throttling(
    sender: Sender, throttle: Throttle, grounds: Grounds | None, signed: Signature, now: datetime
) -> Script[ThrottleChange]:
    """Part of a transaction that has locked the sender: begin a throttle, or change the one that stands."""
    score, active_since = grounds or (None, None)
    cause: ThrottleCause = "person" if grounds is None else "score"
    yield sql("upsert_throttle", sender.id, cause, score, throttle.reason, active_since, throttle.until, now)
    change = yield from _changing(sender, throttle, now)
    after = {"until": throttle.until.isoformat(), "reason": throttle.reason, "score": score}
    yield from auditing(
        signed.under(
            "sender.throttle", "sender", str(sender.id), before=_throttle_fields(sender.throttle), after=after
        ),
        now,
    )
    return change


@transaction
def release_sender(username: str, signed: Signature, now: datetime) -> Script[ThrottleChange | None]:
    """End a throttle by hand; None if there is none. What was counted so far is not held against the sender."""
    sender = yield from _locking(username)
    change = yield from releasing(sender, "person", signed, now)
    if change is not None:
        yield sql("forgive_sender", sender.id, next_hour(now))
    return change


@transaction
def release_for_score(sender_id: int, signed: Signature, now: datetime) -> Script[ThrottleChange | None]:
    """End a throttle that is over and whose score has fallen; None if another process was first."""
    sender = yield from _locking_by_id(sender_id)
    if sender.throttle is None or sender.throttle.is_in_force(now):
        return None
    return (yield from releasing(sender, "score", signed, now))


def releasing(sender: Sender, cause: ThrottleCause, signed: Signature, now: datetime) -> Script[ThrottleChange | None]:
    """Part of a transaction that has locked the sender: end the throttle; None if there is none."""
    if sender.throttle is None:
        return None
    yield sql("end_throttle", sender.id, cause, now)
    change = yield from _changing(sender, None, now)
    yield from auditing(
        signed.under("sender.release", "sender", str(sender.id), before=_throttle_fields(sender.throttle), after=None),
        now,
    )
    return change


def _changing(sender: Sender, throttle: Throttle | None, now: datetime) -> Script[ThrottleChange]:
    """Every throttle begins, changes and ends here."""
    yield sql("set_throttle", sender.id, *(throttle or (None, None)), now)
    yield from standing(replace(sender, throttle=throttle), now)
    yield Notify(CHANNEL, "senders")
    return ThrottleChange(sender, throttle)


def _throttle_fields(throttle: Throttle | None) -> dict[str, Any] | None:
    return None if throttle is None else {"until": throttle.until.isoformat(), "reason": throttle.reason}


# Admission


@dataclass(frozen=True, slots=True)
class _Admission:
    username: str
    state: SenderState
    state_reason: str | None
    daily_limit: int | None
    throttle: Throttle | None
    first_accepted_at: datetime | None
    domain_id: int
    domain: str
    domain_limit: int | None
    tenant: str
    tenant_state: TenantState
    tenant_reason: str | None

    def check(self, now: datetime) -> None:
        """Raise what keeps mail of this sender from being accepted."""
        if self.state == "disabled":
            raise SenderDisabled(f"{self.username} may not send mail: {self.state_reason or 'disabled'}")
        if self.tenant_state == "paused":
            raise TenantPaused(f"mail of {self.tenant} is paused: {self.tenant_reason or 'by the operator'}")
        if self.throttle is not None and self.throttle.is_in_force(now):
            until = self.throttle.until
            message = f"{self.username} is throttled until {until:%Y-%m-%d %H:%M} UTC: {self.throttle.reason}"
            raise SenderThrottled(message, until)


def admitting(sender_id: int, recipients: int, now: datetime, limits: DailyLimits | None = None) -> Script[None]:
    """Part of a transaction that accepts a mail: count its recipients. Without `limits` the usual ones hold.

    Raises SenderDisabled, TenantPaused, SenderThrottled or DailyLimitReached, and then counts nothing: the transaction
    may go on with another mail.
    """
    found = read_first(_Admission, (yield sql("select_admission", sender_id)))
    if found is None:
        raise _unknown_id(sender_id)
    found.check(now)
    usual = limits or DailyLimits()
    limit = found.daily_limit or usual.sender
    yield from _counting_day("sender", sender_id, found.username, recipients, limit, now)
    if (domain_limit := found.domain_limit or usual.domain) is not None:
        try:
            yield from _counting_day("domain", found.domain_id, found.domain, recipients, domain_limit, now)
        except DailyLimitReached:
            yield sql("count_accepted_day", "sender", sender_id, day_of(now), -recipients, limit)
            raise
    yield from counting([SenderCount(sender_id, accepted=recipients)], now)
    if found.first_accepted_at is None:
        yield sql("note_first_accepted", sender_id, now)


def _counting_day(
    level: Literal["sender", "domain"], node_id: int, name: str, recipients: int, limit: int, now: datetime
) -> Script[None]:
    if not (yield sql("count_accepted_day", level, node_id, day_of(now), recipients, limit)):
        raise limit_reached(name, limit, now)

"""What automation has to respect: protected senders and labels, what runs in shadow, and what the hour has seen."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from postroom.core.addresses import addresses, canonical, canonical_domain
from postroom.core.auto_reply import answer_goes_to, why_not_answered
from postroom.core.errors import BadInput
from postroom.core.safety import Protected, Surroundings
from postroom.store.audit import Signature, auditing
from postroom.store.codecs import as_time
from postroom.store.database import Script, query, sql, transaction
from postroom.store.mail import StoredMessage

Kind = Literal["sender", "domain", "label"]
ShadowKind = Literal["category", "model"]
HOUR = timedelta(hours=1)
LONGEST_VALUE = 320
_ASCII_DOMAIN = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")


@dataclass(frozen=True, slots=True)
class ProtectedView:
    """One sender, domain or label that is never touched."""

    kind: str
    value: str
    reason: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Restraints:
    """What the safety of one account's mail is judged by."""

    protected: Protected
    shadowed_categories: frozenset[str]
    model_in_shadow: bool
    irreversible_this_hour: int


@transaction
def protect(kind: Kind, value: str, reason: str, signed: Signature, now: datetime) -> Script[str]:
    """Returns the value as it is kept and compared."""
    value = _compared(kind, value)
    yield sql("insert_protected", kind, value, reason, now)
    yield from auditing(signed.under("protect", kind, value, after={"reason": reason}), now)
    return value


@transaction
def unprotect(kind: Kind, value: str, signed: Signature, now: datetime) -> Script[bool]:
    """False when it was not protected."""
    value = _compared(kind, value)
    removed = yield sql("delete_protected", kind, value)
    if removed:
        yield from auditing(signed.under("unprotect", kind, value), now)
    return bool(removed)


@query
def list_protected() -> Script[list[ProtectedView]]:
    rows = yield sql("select_protected")
    return [ProtectedView(kind, value, reason, as_time(at)) for kind, value, reason, at in rows]


@transaction
def begin_shadow(kind: ShadowKind, name: str, signed: Signature, now: datetime) -> Script[bool]:
    """From here on it decides and touches nothing. False when it was in shadow already."""
    begun = yield sql("insert_shadow", kind, name, now)
    if begun:
        yield from auditing(signed.under("shadow.begin", kind, name), now)
    return bool(begun)


@transaction
def end_shadow(kind: ShadowKind, name: str, signed: Signature, now: datetime) -> Script[bool]:
    """From here on its decisions count. False when it was not in shadow."""
    ended = yield sql("delete_shadow", kind, name)
    if ended:
        yield from auditing(signed.under("shadow.end", kind, name), now)
    return bool(ended)


@query
def restraints(account_id: UUID, now: datetime) -> Script[Restraints]:
    """Read before a decision; the hourly cap is enforced again where an action begins."""
    protected = yield from protected_now()
    shadows = [(kind, name) for kind, name, _ in (yield sql("select_shadows"))]
    begun = yield sql("count_irreversible", account_id, now - HOUR)
    return Restraints(
        protected,
        frozenset(name for kind, name in shadows if kind == "category"),
        any(kind == "model" for kind, _ in shadows),
        begun[0][0],
    )


def protected_now() -> Script[Protected]:
    """Part of a transaction."""
    found: dict[str, set[str]] = {"sender": set(), "domain": set(), "label": set()}
    for kind, value, *_ in (yield sql("select_protected")):
        found[kind].add(value)
    return Protected(frozenset(found["sender"]), frozenset(found["domain"]), frozenset(found["label"]))


def surroundings(message: StoredMessage, found: Restraints) -> Surroundings:
    """What safety looks at, of a stored message."""
    return Surroundings(
        message.subject.sender,
        message.subject.labels,
        found.protected,
        found.irreversible_this_hour,
        why_not_answered(message.subject.sender, message.subject.headers, message.own_addresses),
        answer_goes_to(message.subject.sender, message.subject.headers) != message.subject.sender,
    )


def _compared(kind: Kind, value: str) -> str:
    """The form in which senders, their domains and labels of stored mail are compared: any other would never match."""
    given = value.strip()
    if not given or len(given) > LONGEST_VALUE or not given.isprintable():
        raise BadInput(kind, "is empty, too long or unprintable", f"use up to {LONGEST_VALUE} characters")
    match kind:
        case "label":
            return given.casefold()
        case "sender":
            found = _sender(given)
        case "domain":
            found = _domain(given)
    if found is None:
        remedy = "write a sender as ada@example.com, and a domain, which covers all below it, as example.com"
        raise BadInput(kind, f"{given!r} is none", remedy)
    return found


def _sender(given: str) -> str | None:
    """One whole address, without a name beside it. A star is no wildcard, and would protect nobody."""
    found = canonical(given)
    if found is None or addresses(given) != [found] or "*" in given:
        return None
    domain = found.rpartition("@")[2]
    return found if domain.startswith("[") or _ASCII_DOMAIN.fullmatch(domain) else None


def _domain(given: str) -> str | None:
    found = canonical_domain(given).removesuffix(".")
    return found if _ASCII_DOMAIN.fullmatch(found) else None

"""Limits on automation: protected senders and labels, what runs in shadow, and the actions of the last hour."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from postroom.core.actions.hiding import hides
from postroom.core.actions.safety import (
    Proposed,
    Protected,
    ProtectedKind,
    SafetyFacts,
    ShadowKind,
    is_of_people,
)
from postroom.core.errors import BadInput
from postroom.core.mail.addresses import addresses, canonical, canonical_domain
from postroom.core.mail.auto_reply import answer_goes_to, why_not_answered
from postroom.core.mail.system_labels import SYSTEM_LABELS
from postroom.core.rules.in_sight import why_kept_in_sight
from postroom.store.actions.pauses import ALL, recalling
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.mail.mail import StoredMessage
from postroom.store.people.audit import Signature, auditing

HOUR = timedelta(hours=1)
LONGEST_VALUE = 320
_SYSTEM_LABELS = {each.lower() for each in SYSTEM_LABELS}
_ASCII_DOMAIN = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")


@dataclass(frozen=True, slots=True)
class ProtectedView:
    """One sender, domain or label that is never touched."""

    kind: ProtectedKind
    value: str
    reason: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Restraints:
    """The restraints that safety checks for mail of one account."""

    protected: Protected
    shadowed_categories: frozenset[str]
    model_in_shadow: bool
    irreversible_this_hour: int


@transaction
def protect(kind: ProtectedKind, value: str, reason: str, signed: Signature, now: datetime) -> Script[str]:
    """Protect a value; return it in the stored form. Raises BadInput for a label that no known mailbox has, since it
    would silently protect nothing.
    """
    value = _normalize(kind, value)
    yield from recalling(ALL)
    if kind == "label":
        yield from _resolve_label(value)
    yield sql("insert_protected", kind, value, reason, now)
    yield from auditing(signed.under("protect", kind, value, after={"reason": reason}), now)
    return value


@transaction
def unprotect(kind: ProtectedKind, value: str, signed: Signature, now: datetime) -> Script[bool]:
    """Remove a protection. False if there was none."""
    value = _normalize(kind, value)
    removed = yield sql("delete_protected", kind, value)
    if kind == "label":
        yield sql("delete_protected_labels", value)
    if removed:
        yield from auditing(signed.under("unprotect", kind, value), now)
    return bool(removed)


def _resolve_label(value: str) -> Script[None]:
    """Store the ids that the name stands for, so that a label stays protected when it is renamed."""
    rows = yield sql("select_all_labels")
    found = [
        (as_uuid(row["account_id"]), row["provider_label_id"])
        for row in rows.by_name()
        if value in (row["provider_label_id"].casefold(), row["name"].casefold())
    ]
    if not found and value not in _SYSTEM_LABELS:
        remedy = "see `postroom labels list`; create the label there, run `postroom labels sync`, and try again"
        raise BadInput("label", f"no mailbox has a label {value!r}, so it would protect nothing", remedy)
    for account_id, label_id in found:
        yield sql("insert_protected_label", value, account_id, label_id)


def resolve_protected(account_id: UUID, labels: Iterable[tuple[str, str]]) -> Script[None]:
    """Part of a transaction that has seen these label ids and names: store the ids of protected names, since a label
    that was deleted and created again has a new id.
    """
    protected = {value for kind, value, *_ in (yield sql("select_protected")) if kind == "label"}
    for id, name in labels:
        if name.casefold() in protected:
            yield sql("insert_protected_label", name.casefold(), account_id, id)


class LostProtection(NamedTuple):
    """A protected label that no mailbox has, or has only under another name."""

    value: str
    now_called: str | None


@query
def lost_protection() -> Script[list[LostProtection]]:
    """Protected labels that were deleted or renamed since they were protected."""
    rows = yield sql("select_all_labels")
    names = {(row["account_id"], row["provider_label_id"]): row["name"] for row in rows.by_name()}
    known = {name.casefold() for name in names.values()} | {id.casefold() for _, id in names} | _SYSTEM_LABELS
    renamed: dict[str, str] = {}
    for value, account, id in (yield sql("select_protected_labels")):
        if (account, id) in names:
            renamed.setdefault(value, names[account, id])
    rows = yield sql("select_protected")
    return [
        LostProtection(value, renamed.get(value)) for kind, value, *_ in rows if kind == "label" and value not in known
    ]


@query
def list_protected() -> Script[list[ProtectedView]]:
    return read_rows(ProtectedView, (yield sql("select_protected")))


@transaction
def begin_shadow(kind: ShadowKind, name: str, signed: Signature, now: datetime) -> Script[bool]:
    """Put it in shadow: it decides but changes nothing. False if it was in shadow already."""
    begun = yield sql("insert_shadow", kind, name, now)
    if begun:
        yield from auditing(signed.under("shadow.begin", kind, name), now)
    return bool(begun)


@transaction
def end_shadow(kind: ShadowKind, name: str, signed: Signature, now: datetime) -> Script[bool]:
    """End its shadow: its decisions count. False if it was not in shadow."""
    ended = yield sql("delete_shadow", kind, name)
    if ended:
        yield from auditing(signed.under("shadow.end", kind, name), now)
    return bool(ended)


@query
def restraints(account_id: UUID, now: datetime) -> Script[Restraints]:
    """Read the restraints before a decision; the hourly cap is enforced again when an action begins."""
    protected = yield from protected_now(account_id)
    shadows = [(kind, name) for kind, name, _ in (yield sql("select_shadows"))]
    begun = yield sql("count_irreversible", account_id, now - HOUR)
    return Restraints(
        protected,
        frozenset(name for kind, name in shadows if kind == "category"),
        any(kind == "model" for kind, _ in shadows),
        begun[0][0],
    )


def protected_now(account_id: UUID) -> Script[Protected]:
    """Part of a transaction: what is protected in the mailbox of this account."""
    found: dict[str, set[str]] = {"sender": set(), "domain": set(), "label": set()}
    for kind, value, *_ in (yield sql("select_protected")):
        found[kind].add(value)
    ids: dict[str, str] = {}
    if found["label"]:
        for value, account, id in (yield sql("select_protected_labels")):
            if as_uuid(account) == account_id:
                ids[id] = value
    return Protected(frozenset(found["sender"]), frozenset(found["domain"]), frozenset(found["label"]), ids)


def safety_facts(
    message: StoredMessage, found: Restraints, proposed: Proposed | None = None, now: datetime | None = None
) -> SafetyFacts:
    """The facts that safety checks about a stored message. Without the action that is proposed now, since a person has
    approved it, hiding is not judged."""
    is_hidden = (
        proposed is not None
        and not is_of_people(proposed)
        and hides(proposed.action_type, proposed.parameters, message.folders, None if message.was_snoozed else now)
    )
    return SafetyFacts(
        message.facts.sender,
        message.facts.labels,
        found.protected,
        found.irreversible_this_hour,
        why_not_answered(message.facts.sender, message.facts.headers, message.own_addresses),
        answer_goes_to(message.facts.sender, message.facts.headers) != message.facts.sender,
        hides=is_hidden,
        kept_in_sight=why_kept_in_sight(message.facts, message.policy_tier) if is_hidden else None,
    )


def _normalize(kind: ProtectedKind, value: str) -> str:
    """The form in which senders, domains and labels of stored mail are compared; any other would never match."""
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
        raise BadInput(kind, f"{given!r} is not valid", remedy)
    return found


def _sender(given: str) -> str | None:
    """One plain address without a name. A star is not a wildcard, and would protect nobody."""
    found = canonical(given)
    if found is None or addresses(given) != [found] or "*" in given:
        return None
    domain = found.rpartition("@")[2]
    return found if domain.startswith("[") or _ASCII_DOMAIN.fullmatch(domain) else None


def _domain(given: str) -> str | None:
    found = canonical_domain(given).removesuffix(".")
    return found if _ASCII_DOMAIN.fullmatch(found) else None

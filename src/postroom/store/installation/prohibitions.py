"""The owner's prohibitions, carried over from a replaced database into the one restored in its place.

A backup does not contain what was forbidden after it was made. So what either of the two databases forbids, the
restored one forbids: pauses, protected senders and labels, what runs in shadow, revoked tokens, accounts that were
paused or removed, rules that were disabled, put in shadow, made to ask for approval, or removed. Even that may be
incomplete, and the replaced database may be gone or unreadable, so a restored one starts paused, until a person resumes
it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from postroom.store.accounts.accounts import AccountView, list_accounts, pause_account, remove_account
from postroom.store.actions.pauses import ALL, Pause, pause, standing_pauses
from postroom.store.actions.protection import ProtectedView, list_protected
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.store.people.tokens import list_tokens, revoke_token
from postroom.store.rules.rules import RuleView, disable_rule, list_rules

_RESTORED = "the database was restored from a backup of "


@dataclass(frozen=True, slots=True)
class Prohibitions:
    """The prohibitions of one database, and the installation it belongs to."""

    instance_id: UUID | None
    pauses: Sequence[Pause]
    protected: Sequence[ProtectedView]
    protected_labels: Sequence[tuple[str, UUID, str]]
    shadows: Sequence[tuple[str, str]]
    revoked_tokens: frozenset[UUID]
    accounts: Mapping[UUID, AccountView]
    rules: Mapping[UUID, RuleView]


@dataclass(slots=True)
class Carried:
    """How many prohibitions only the replaced database had."""

    pauses: int = 0
    protected: int = 0
    shadows: int = 0
    tokens: int = 0
    accounts: int = 0
    rules: int = 0

    def as_counts(self) -> dict[str, int]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


@query
def load_prohibitions() -> Script[Prohibitions]:
    timeline = yield sql("select_timeline")
    labels = yield sql("select_protected_labels")
    shadows = yield sql("select_shadows")
    tokens = yield from list_tokens.script()
    return Prohibitions(
        as_uuid(timeline[0][0]) if timeline else None,
        (yield from standing_pauses.script()),
        (yield from list_protected.script()),
        [(value, as_uuid(account), label) for value, account, label in labels],
        [(kind, name) for kind, name, _ in shadows],
        frozenset(each.id for each in tokens if each.revoked_at is not None),
        {each.id: each for each in (yield from list_accounts.script())},
        {each.id: each for each in (yield from list_rules.script())},
    )


@transaction
def begin_paused(
    replaced: Prohibitions | None, backup_at: datetime, signed: Signature, now: datetime
) -> Script[Carried]:
    """Add the prohibitions of the replaced database to the restored one, and pause it until a person resumes it."""
    here = yield from load_prohibitions.script()
    carried = Carried()
    if replaced is not None:
        yield from _carry_pauses(replaced, here, carried)
        yield from _carry_protection(replaced, here, carried, now)
        yield from _carry_tokens(replaced, here, carried, signed, now)
        yield from _carry_accounts(replaced, here, carried, signed, now)
        yield from _carry_rules(replaced, here, carried, signed, now)
    reason = f"{_RESTORED}{backup_at:%Y-%m-%d %H:%M} UTC"
    for each in (*here.pauses, *(replaced.pauses if replaced is not None else ())):
        if each.scope == ALL and not each.reason.startswith(_RESTORED):
            reason = f"{reason}; before that it was paused: {each.reason}"
            break
    yield from pause.script(ALL, reason, _copy_signature(signed), now)
    return carried


def _carry_pauses(replaced: Prohibitions, here: Prohibitions, carried: Carried) -> Script[None]:
    """Carry over pauses of accounts that exist here. The pause of everything is set in any case."""
    known = {each.scope for each in here.pauses}
    for each in replaced.pauses:
        if each.scope not in known and (each.scope == ALL or UUID(each.scope) in here.accounts):
            carried.pauses += 1
            yield fill("insert_pause", each, now=each.since)


def _carry_protection(replaced: Prohibitions, here: Prohibitions, carried: Carried, now: datetime) -> Script[None]:
    known = {(each.kind, each.value) for each in here.protected}
    for each in replaced.protected:
        if (each.kind, each.value) not in known:
            carried.protected += 1
            yield fill("insert_protected", each, now=each.created_at)
    for value, account_id, label_id in replaced.protected_labels:
        if account_id in here.accounts:
            yield sql("insert_protected_label", value, account_id, label_id)
    for kind, name in replaced.shadows:
        carried.shadows += len((yield sql("insert_shadow", kind, name, now)))


def _carry_tokens(
    replaced: Prohibitions, here: Prohibitions, carried: Carried, signed: Signature, now: datetime
) -> Script[None]:
    for token in (yield from list_tokens.script()):
        if token.id in replaced.revoked_tokens - here.revoked_tokens:
            carried.tokens += 1
            yield from revoke_token.script(token.id, _copy_signature(signed, "it was revoked after the backup"), now)


def _carry_accounts(
    replaced: Prohibitions, here: Prohibitions, carried: Carried, signed: Signature, now: datetime
) -> Script[None]:
    for id, account in here.accounts.items():
        then = replaced.accounts.get(id)
        if then is None or then.state == account.state or account.state == "removed":
            continue
        if then.state == "removed":
            carried.accounts += 1
            yield from remove_account.script(id, _copy_signature(signed, "it was removed after the backup"), now)
        elif then.state == "paused":
            carried.accounts += 1
            reason = then.state_reason or "it was paused after the backup"
            yield from pause_account.script(id, _copy_signature(signed, reason), now)


def _carry_rules(
    replaced: Prohibitions, here: Prohibitions, carried: Carried, signed: Signature, now: datetime
) -> Script[None]:
    is_same = replaced.instance_id is not None and replaced.instance_id == here.instance_id
    for id, rule in here.rules.items():
        reason = _why_disabled(rule, replaced.rules.get(id), is_same) if rule.enabled else None
        if reason is not None:
            carried.rules += 1
            yield from disable_rule.script(id, reason, now, _copy_signature(signed, reason))
            yield sql("forget_confirmation", id)


def _why_disabled(rule: RuleView, then: RuleView | None, is_same_installation: bool) -> str | None:
    """Why a rule of the backup must not act as it did. Another installation says nothing about rules it lacks."""
    if then is None:
        return "it was removed after the backup" if is_same_installation else None
    if not then.enabled:
        return then.disabled_reason or "it was disabled after the backup"
    if then.awaits_confirmation and not rule.awaits_confirmation:
        return "it waited for your confirmation after the backup"
    if then.mode == "shadow" and rule.mode != "shadow":
        return "it was put in shadow after the backup"
    if then.needs_approval and not rule.needs_approval:
        return "it was made to ask for approval after the backup"
    return None


def _copy_signature(signed: Signature, reason: str | None = None) -> Signature:
    """The same signature under another audit entry."""
    return Signature(new_id(), signed.actor, signed.role, reason)

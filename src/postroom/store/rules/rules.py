"""Rule verbs: a change names the version it is based on, and is signed in the audit log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.actions.action import IRREVERSIBLE, DecidedType
from postroom.core.errors import BadInput, Conflict, Fatal, NotFound
from postroom.core.rules.draft import RuleDraft, as_document, check_rule, check_wake_times
from postroom.core.rules.rule import Rule, RuleMode, ScopeName
from postroom.core.views import Internal, Shown, Untrusted
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.people.audit import Signature, auditing

CHANNEL = "rules"
"""Announces changes of rules."""
MOST_RULES = 10_000
EARLIER = "earlier"
"""The confirmation of rules that were in use before confirmations were stored."""
MOST_NAMES_AUDITED = 100

Known = Literal["refuse", "skip", "replace"]
"""The treatment of a rule whose name exists already."""


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule as it is shown. Names and conditions may have come from mail, through proposals and imports."""

    id: UUID
    name: Untrusted[str]
    description: Internal[str]
    scope: ScopeName
    scope_ref: Internal[str | None]
    priority: int
    conditions: Internal[Mapping[str, Any]]
    action: Internal[DecidedType]
    parameters: Internal[Mapping[str, Any]]
    mode: RuleMode
    enabled: bool
    disabled_reason: Untrusted[str | None]
    needs_approval: bool
    continues: Internal[bool]
    confirmed_hash: Internal[str | None]
    origin: str
    version: int
    created_at: datetime
    updated_at: datetime

    @property
    def draft(self) -> RuleDraft:
        return RuleDraft(
            self.name,
            self.conditions,
            self.action,
            self.parameters,
            self.description,
            self.scope,
            self.scope_ref,
            self.priority,
            self.mode == "shadow",
            self.needs_approval,
            self.enabled,
            self.disabled_reason,
            self.continues,
        )

    @property
    def document(self) -> Annotated[Shown[Untrusted[dict[str, Any]]], "The rule as in a file."]:
        return as_document(self.draft)

    @property
    def content_hash(self) -> Shown[str]:
        """The fingerprint of what it does to which mail."""
        return self.draft.content_hash

    @property
    def awaits_confirmation(self) -> Shown[bool]:
        """Whether it decides nothing until a person confirms it: a token wrote it, and it sends or deletes."""
        if not self.enabled or self.mode == "shadow" or self.confirmed_hash == EARLIER:
            return False
        return _is_risky(self.draft) and self.confirmed_hash != self.content_hash

    @property
    def decides(self) -> bool:
        """Whether it decides about mail, in shadow or not."""
        return self.enabled and not self.awaits_confirmation

    @property
    def rule(self) -> Rule:
        """The rule, as the engine needs it."""
        return self.draft.as_rule(self.id)


class KeptRules(NamedTuple):
    """The names of the rules that were added, replaced, and left out."""

    added: tuple[str, ...]
    replaced: tuple[str, ...]
    skipped: tuple[str, ...]


@dataclass(slots=True)
class _Keeping:
    added: list[str] = field(default_factory=list[str])
    replaced: list[str] = field(default_factory=list[str])
    skipped: list[str] = field(default_factory=list[str])


@transaction
def add_rules(drafts: Sequence[tuple[UUID, RuleDraft]], now: datetime, origin: str = "user") -> Script[int]:
    """Add the rules whose names are new; return how many. For the rules that ship with Postroom."""
    added = 0
    for id, draft in drafts:
        added += len((yield from insert(id, draft, origin, None, now)))
    return added


@transaction
def keep_rules(
    drafts: Sequence[tuple[UUID, RuleDraft]], known: Known, origin: str, signed: Signature, now: datetime
) -> Script[KeptRules]:
    """Store rules, all or none. Each comes with the id to use if it is new."""
    [[stored]] = yield sql("count_rules")
    if stored + len(drafts) > MOST_RULES:
        raise BadInput("rules", f"there would be {stored + len(drafts):,}", f"remove some; {MOST_RULES:,} are allowed")
    kept = _Keeping()
    # Rules of equal priority are tried in the order of their ids, which is the given order.
    ids = sorted(id for id, _ in drafts)
    for id, (_, draft) in zip(ids, drafts, strict=True):
        yield from _keep(id, draft, known, origin, kept, signed, now)
    whole = as_document(drafts[0][1]) if len(drafts) == 1 else None
    after = {name: list(getattr(kept, name)[:MOST_NAMES_AUDITED]) for name in ("added", "replaced")}
    counts = {f"{name}_count": len(getattr(kept, name)) for name in ("added", "replaced", "skipped")}
    action = "rules.add" if known == "refuse" else "rules.import"
    about = drafts[0][1].name if len(drafts) == 1 else f"{len(drafts)} rules"
    yield from auditing(signed.under(action, "rule", about, after=whole or {**after, **counts}), now)
    yield Notify(CHANNEL, "kept")
    return KeptRules(tuple(kept.added), tuple(kept.replaced), tuple(kept.skipped))


def _keep(
    id: UUID, draft: RuleDraft, known: Known, origin: str, kept: _Keeping, signed: Signature, now: datetime
) -> Script[None]:
    if (yield from insert(id, draft, origin, signed, now)):
        kept.added.append(draft.name)
        return
    if known == "refuse":
        raise Conflict(
            "name", f"there is already a rule {draft.name!r}", "change it with `postroom rules edit`, or choose another"
        )
    view = yield from load_rule.script(draft.name)
    if known == "skip" or view.draft == draft:
        kept.skipped.append(draft.name)
        return
    yield from update(view, draft, signed, now)
    kept.replaced.append(draft.name)


@transaction
def edit_rule(id: UUID, version: int, draft: RuleDraft, signed: Signature, now: datetime) -> Script[RuleView]:
    """Replace the rule with the draft, if it is still the version the draft is based on."""
    before = read_first(RuleView, (yield sql("select_rule", id)))
    if before is None:
        raise NotFound("the rule was removed meanwhile; see `postroom rules list`")
    if before.version != version:
        raise changed_meanwhile(before)
    if draft.name != before.name and (yield sql("select_rule_named", draft.name)):
        raise Conflict("name", f"there is already a rule {draft.name!r}", "choose another name")
    yield from update(before, draft, signed, now)
    documents = {"before": before.document, "after": as_document(draft)}
    yield from auditing(signed.under("rules.edit", "rule", before.name, **documents), now)
    yield Notify(CHANNEL, "edited")
    return (yield from load_rule.script(draft.name))


@transaction
def switch_rule(name: str, enabled: bool, signed: Signature, now: datetime) -> Script[RuleView]:
    """Enable a valid rule, or disable one with the reason of the signature. Safe to repeat."""
    view = yield from load_rule.script(name)
    if enabled:
        check_rule(view.conditions, view.action, view.parameters)
        check_wake_times(view.action, view.parameters, now)
    reason = None if enabled else signed.reason
    if (view.enabled, view.disabled_reason) == (enabled, reason):
        return view
    confirmed = _confirmed_hash(replace(view.draft, enabled=enabled, disabled_reason=None), signed, view)
    if not (yield sql("switch_rule", view.id, view.version, enabled, reason, confirmed, now)):
        return (yield from switch_rule.script(name, enabled, signed, now))  # it was changed meanwhile: look again
    action = "rules.enable" if enabled else "rules.disable"
    before = {"enabled": view.enabled, "disabled_reason": view.disabled_reason}
    yield from auditing(signed.under(action, "rule", name, before=before, after={"enabled": enabled}), now)
    yield Notify(CHANNEL, "switched")
    return (yield from load_rule.script(name))


@transaction
def confirm_rule(id: UUID, shown_hash: str, signed: Signature, now: datetime) -> Script[RuleView]:
    """Let a rule decide that a token wrote, if its content is still what the person saw. Safe to repeat."""
    signed.require_person("confirm a rule")
    view = read_first(RuleView, (yield sql("select_rule", id)))
    if view is None:
        raise NotFound("the rule was removed meanwhile; see `postroom rules list`")
    if view.content_hash != shown_hash:
        raise changed_meanwhile(view)
    if not view.awaits_confirmation:
        return view
    if not (yield sql("confirm_rule", id, view.version, shown_hash, now)):
        raise changed_meanwhile(view)
    after = {"content_hash": shown_hash, "rule": view.document}
    yield from auditing(signed.under("rules.confirm", "rule", view.name, after=after), now)
    yield Notify(CHANNEL, "confirmed")
    return (yield from load_rule.script(view.name))


@transaction
def remove_rule(name: str, signed: Signature, now: datetime) -> Script[None]:
    """Remove the rule. Its decisions stay recorded under its name."""
    view = yield from load_rule.script(name)
    yield sql("delete_rule", view.id)
    yield from auditing(signed.under("rules.remove", "rule", name, before=view.document), now)
    yield Notify(CHANNEL, "removed")


@transaction
def disable_rule(id: UUID, reason: str, now: datetime, signed: Signature | None = None) -> Script[None]:
    """Disable a broken rule with the reason; it is kept."""
    disabled = yield sql("disable_rule", id, reason, False, now)
    if disabled and signed is not None:
        after = {"enabled": False, "disabled_reason": reason}
        yield from auditing(signed.under("rules.disable", "rule", disabled[0][0], after=after), now)
    if disabled:
        yield Notify(CHANNEL, "disabled")


@query
def rules_mark() -> Script[tuple[object, ...]]:
    """A mark that changes whenever the rules in use do."""
    rows = yield sql("select_rules_mark")
    return tuple(rows[0])


@query
def enabled_rules() -> Script[list[Rule]]:
    """The rules to evaluate, in order."""
    rows = yield sql("select_rules")
    return [view.rule for view in read_rows(RuleView, rows) if view.decides]


@query
def list_rules() -> Script[list[RuleView]]:
    """Every rule, in the order of evaluation."""
    rows = yield sql("select_rules")
    return read_rows(RuleView, rows)


@query
def unconfirmed_rules() -> Script[list[RuleView]]:
    """The rules that wait for a person's confirmation, in the order of evaluation."""
    rows = yield sql("select_risky_rules", [*sorted(IRREVERSIBLE), "several"])
    return [view for view in read_rows(RuleView, rows) if view.awaits_confirmation]


@query
def load_rule(name: str) -> Script[RuleView]:
    view = read_first(RuleView, (yield sql("select_rule_named", name)))
    if view is None:
        raise NotFound(f"there is no rule {name!r}; see `postroom rules list`")
    return view


def insert(id: UUID, draft: RuleDraft, origin: str, signed: Signature | None, now: datetime) -> Script[Sequence[Any]]:
    """Part of a transaction: insert the rule and return its id; nothing if its name exists. Rules that ship with
    Postroom have no signature."""
    check_wake_times(draft.action_type, draft.parameters, now)
    hash = _confirmed_hash(draft, signed)
    return (yield fill("insert_rule", draft, id=id, mode=_mode(draft), confirmed_hash=hash, origin=origin, now=now))


def update(before: RuleView, draft: RuleDraft, signed: Signature, now: datetime) -> Script[None]:
    """Part of a transaction: replace the rule with the draft. Raises Conflict if it was changed since it was read."""
    check_wake_times(draft.action_type, draft.parameters, now)
    confirmed = _confirmed_hash(draft, signed, before)
    if not (yield fill("update_rule", draft, before, mode=_mode(draft), confirmed_hash=confirmed, now=now)):
        raise changed_meanwhile(before)


def _mode(draft: RuleDraft) -> RuleMode:
    return "shadow" if draft.shadow else "active"


def _confirmed_hash(draft: RuleDraft, signed: Signature | None, before: RuleView | None = None) -> str | None:
    """The hash of the content that is confirmed once this is written.

    A person who lets a rule act confirms it, and one who stops it withdraws that. A token keeps the confirmation of
    content that it does not change, and gives none.
    """
    if signed is None or not signed.is_token:
        return draft.content_hash if draft.enabled and not draft.shadow else None
    if before is None or draft.content_hash != before.content_hash:
        return None
    return before.confirmed_hash


def _is_risky(draft: RuleDraft) -> bool:
    try:
        return draft.is_reviewed
    except Fatal:  # its actions cannot be read, so it does nothing
        return False


def changed_meanwhile(view: RuleView) -> Conflict:
    """The error for a change that is based on an older version of the rule."""
    return Conflict(
        "version",
        f"the rule {view.name!r} was changed meanwhile; it is version {view.version}",
        "look at it, and try again",
    )

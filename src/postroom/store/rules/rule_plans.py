"""Carries out a plan for the rules: all of it in one transaction, or nothing."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from postroom.core.errors import BadInput, Conflict
from postroom.core.rules.draft import RuleDraft, as_document
from postroom.core.rules.plan import Plan, PlannedChange, applied_origin
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Notify, Script, sql, transaction
from postroom.store.engine.reading import read_first
from postroom.store.people.audit import Signature, auditing
from postroom.store.rules.rules import (
    CHANNEL,
    MOST_NAMES_AUDITED,
    MOST_RULES,
    RuleView,
    changed_meanwhile,
    insert,
    update,
)


@transaction
def apply_plan(plan: Plan, ids: Sequence[UUID], signed: Signature, now: datetime) -> Script[None]:
    """Carry out a plan. `ids` are new ones, one for each change. Raises Conflict if any rule was added, changed or
    removed since the plan was made.
    """
    yield sql("lock_asker", "rules.apply")
    versions = {as_uuid(id): version for id, version in (yield sql("select_rule_versions"))}
    if versions != plan.basis:
        raise Conflict("rules", "were changed since the plan was made", "look at the plan again")
    total = len(versions) + plan.count("+") - plan.count("-")
    if total > MOST_RULES:
        raise BadInput("rules", f"there would be {total:,}", f"remove some; {MOST_RULES:,} are allowed")
    for change in plan.changes:
        if change.sign == "-" or change.moved:
            yield from _remove(change)
    for id, change in zip(sorted(ids), plan.changes, strict=True):
        if change.draft is None:
            continue
        if change.sign == "+" or change.moved:
            yield from _add(id, change.draft, signed, now)
        else:
            yield from _replace(change, change.draft, signed, now)
    if plan.changes:
        yield from auditing(
            signed.under("rules.apply", "rule", f"{len(plan.changes)} rules", after=_audit_summary(plan)), now
        )
        yield Notify(CHANNEL, "applied")


def _add(id: UUID, draft: RuleDraft, signed: Signature, now: datetime) -> Script[None]:
    if not (yield from insert(id, draft, applied_origin(draft), signed, now)):
        raise Conflict("name", f"there is a rule {draft.name!r} meanwhile", "look at the plan again")


def _replace(change: PlannedChange, draft: RuleDraft, signed: Signature, now: datetime) -> Script[None]:
    before = yield from _rule_to_change(change)
    if change.fields:
        yield from update(before, draft, signed, now)
    yield sql("set_rule_origin", before.id, applied_origin(draft))


def _remove(change: PlannedChange) -> Script[None]:
    before = yield from _rule_to_change(change)
    yield sql("delete_rule", before.id)


def _rule_to_change(change: PlannedChange) -> Script[RuleView]:
    """The stored rule, if it is still the version that the plan was made for."""
    view = read_first(RuleView, (yield sql("select_rule_named", change.name)))
    if view is None or view.id != change.id:
        raise Conflict("name", f"the rule {change.name!r} was removed meanwhile", "look at the plan again")
    if view.version != change.version:
        raise changed_meanwhile(view)
    return view


def _audit_summary(plan: Plan) -> dict[str, object]:
    names = {sign: [each.name for each in plan.changes if each.sign == sign] for sign in ("+", "~", "-")}
    words = {"+": "added", "~": "changed", "-": "removed"}
    after: dict[str, object] = {words[sign]: found[:MOST_NAMES_AUDITED] for sign, found in names.items()}
    after |= {f"{words[sign]}_count": len(found) for sign, found in names.items()}
    if len(plan.changes) == 1 and plan.changes[0].draft is not None:
        after["rule"] = as_document(plan.changes[0].draft)
    return after

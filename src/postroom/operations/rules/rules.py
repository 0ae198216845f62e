"""The deterministic rules: add, edit, enable, disable and remove them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import UUID

from postroom.core.access import READ
from postroom.core.actions.steps import steps_of
from postroom.core.errors import BadInput
from postroom.core.rules.draft import RuleDraft, read_draft, unknown_labels
from postroom.core.rules.rule import read_scope
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import RULES
from postroom.operations.operation import dialogue
from postroom.operations.rules.scopes import scope_ref
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.labels import list_all_labels
from postroom.store.rules import rules as store
from postroom.store.rules.rules import RuleView as RuleView

COLUMNS = ("priority", "name", "scope", "scope_ref", "action", "mode", "enabled", "confirmed", "disabled_reason")
ACTION_FIELDS = frozenset({"then", "parameters", "actions"})


@dataclass(frozen=True, slots=True)
class AddedRules:
    """The names of the added rules, and for each that applies a label which does not exist yet, that label.

    Such a label is created when it is first needed.
    """

    names: Sequence[str]
    new_labels: Mapping[str, str]


def rule_row(view: RuleView) -> Mapping[str, Any]:
    """The rule as commands show it; `confirmed` is false while it waits for a person."""
    shown = {key: value for key, value in asdict(view).items() if key != "confirmed_hash"}
    return {**shown, "confirmed": not view.awaits_confirmation}


async def list_rules(database: Database) -> list[RuleView]:
    """List the deterministic rules in the order in which they are tried."""
    return await database.run(store.list_rules())


async def load_rule(database: Database, name: str) -> RuleView:
    return await database.run(store.load_rule(name))


async def rule_named(database: Database, name: str) -> UUID:
    return (await load_rule(database, name)).id


async def add_rules(by: Caller, drafts: Iterable[RuleDraft], *, allow_missing: bool = False) -> AddedRules:
    """Add rules, all or none. Names must be new, and unless allowed, all labels in conditions must exist."""
    await prepare(by.database)
    found, known = await with_resolved_scopes(by.database, drafts), await known_labels(by.database)
    if not allow_missing:
        refuse_unknown_labels(found, known)
    rules = [(new_id(), draft) for draft in found]
    await by.run(store.keep_rules(rules, "refuse", "user", by.signature, by.clock()))
    new = {draft.name: label for draft in found if (label := _new_label(draft, known)) is not None}
    return AddedRules([draft.name for draft in found], new)


async def edit_rule(
    by: Caller,
    name: str,
    change: RuleDraft | Mapping[str, Any],
    *,
    version: int | None = None,
    allow_missing: bool = False,
) -> RuleView:
    """Replace a rule, or change the given fields, which are named as in a document.

    With a version, change it only if it is still that version.
    """
    view = await by.run(store.load_rule(name))
    draft = change if isinstance(change, RuleDraft) else _change(view, change)
    [draft] = await with_resolved_scopes(by.database, [draft])
    if not allow_missing:
        refuse_unknown_labels([draft], await known_labels(by.database))
    wanted = view.version if version is None else version
    return await by.run(store.edit_rule(view.id, wanted, draft, by.signature, by.clock()))


async def switch_rule(by: Caller, name: str, enabled: bool) -> RuleView:
    """Enable a valid rule, or disable one for the reason in the signature. Safe to repeat."""
    return await by.run(store.switch_rule(name, enabled, by.signature, by.clock()))


@RULES.operation(READ, dialogue("rules confirm"))
async def list_unconfirmed(database: Database, /) -> list[RuleView]:
    """List the rules that tokens wrote and that send or delete: they decide nothing until a person confirms them."""
    return await database.run(store.unconfirmed_rules())


async def remove_rule(by: Caller, name: str) -> None:
    """Remove a rule for good. Its past decisions stay recorded under its name."""
    await by.run(store.remove_rule(name, by.signature, by.clock()))


async def with_resolved_scopes(database: Database, drafts: Iterable[RuleDraft]) -> list[RuleDraft]:
    """Return the drafts with their accounts resolved to ids and their values normalized."""
    found: list[RuleDraft] = []
    for draft in drafts:
        ref = await scope_ref(database, draft.scope, draft.scope_ref)
        key = read_scope(draft.scope, ref).key
        found.append(draft if key is None else replace(draft, scope_ref=key[1]))
    return found


async def known_labels(database: Database) -> frozenset[str] | None:
    """Return ids and casefolded names of all labels; None while no mailbox has reported any."""
    labels = await database.run(list_all_labels())
    ids = {each.provider_label_id for each in labels}
    return frozenset(ids | {each.name.casefold() for each in labels}) if labels else None


def first_unknown_label(draft: RuleDraft, known: frozenset[str] | None) -> str | None:
    """Return a label in the rule's conditions that no mailbox has."""
    return None if known is None else min(unknown_labels(draft, known), default=None)


def refuse_unknown_labels(drafts: Iterable[RuleDraft], known: frozenset[str] | None) -> None:
    """Raise BadInput for a rule with a condition on a label that no mailbox has."""
    for draft in drafts:
        if (missing := first_unknown_label(draft, known)) is not None:
            problem = f"has a condition on the label {missing!r}, which no mailbox has"
            remedy = "see `postroom labels list`; or accept it anyway with --allow-missing"
            raise BadInput(f"rule {draft.name}", problem, remedy)


def _new_label(draft: RuleDraft, known: frozenset[str] | None) -> str | None:
    """Return a label that the rule applies and that does not exist yet."""
    steps = steps_of(draft.action_type, draft.parameters)
    labels = [str(step.parameters.get("label")) for step in steps if step.action_type == "apply_label"]
    if known is None:
        return None
    return next((each for each in labels if each not in known and each.casefold() not in known), None)


def _change(view: RuleView, fields: Mapping[str, Any]) -> RuleDraft:
    """Apply the fields. A new action starts without parameters, a new scope without the old one's reference."""
    before = view.document
    if "then" in fields or "actions" in fields:
        kept = ("then", "parameters") if fields.get("then") == view.action else ()
        before = {name: value for name, value in before.items() if name not in ACTION_FIELDS or name in kept}
    if "scope" in fields:
        before.pop("scope_ref", None)
    return read_draft({**before, **fields})

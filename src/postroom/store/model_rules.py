"""The verbs of model rules: rules in words, given to the model with the messages of their scope."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID

from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.rules.rule import SCOPES
from postroom.store.audit import Signature, auditing
from postroom.store.directions import check_words, checked_place
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.reading import read_rows

LONGEST_NAME = 200
LONGEST_RULE = 4_000
MOST_MODEL_RULES = 1_000
ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class ModelRule:
    """One rule in words."""

    name: str
    text: str
    scope: str = "global"
    scope_ref: str | None = None
    position: int = 0
    mode: str = ACTIVE
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ModelRuleView:
    """A model rule as it is kept. `updated_at` tells whether it was changed meanwhile."""

    id: UUID
    name: str
    text: str
    scope: str
    scope_ref: str | None
    position: int
    mode: str
    enabled: bool
    created_at: datetime
    updated_at: datetime

    @property
    def rule(self) -> ModelRule:
        return ModelRule(self.name, self.text, self.scope, self.scope_ref, self.position, self.mode, self.enabled)


@transaction
def add_model_rule(id: UUID, rule: ModelRule, signed: Signature, now: datetime) -> Script[ModelRuleView]:
    rule = _checked(rule)
    stored = yield from _all()
    if len(stored) >= MOST_MODEL_RULES:
        raise BadInput("model rules", f"are {MOST_MODEL_RULES:,} already", "join some, or remove some")
    _check_name(rule.name, stored)
    yield sql("insert_model_rule", id, *_values(rule), now)
    yield from auditing(signed.under("model_rules.add", "model_rule", str(id), after=asdict(rule)), now)
    return (yield from _with_id(id))


@transaction
def edit_model_rule(before: ModelRuleView, after: ModelRule, signed: Signature, now: datetime) -> Script[ModelRuleView]:
    """Puts it in the place of the other, if that is still as it was seen."""
    after = _checked(after)
    if after.name != before.name:
        _check_name(after.name, (yield from _all()))
    if not (yield sql("update_model_rule", before.id, before.updated_at, *_values(after), now)):
        yield from _with_id(before.id)
        raise Conflict("model rule", "it was changed meanwhile", "look at `postroom model-rules list`, and try again")
    entry = signed.under(
        "model_rules.edit", "model_rule", str(before.id), before=asdict(before.rule), after=asdict(after)
    )
    yield from auditing(entry, now)
    return (yield from _with_id(before.id))


@transaction
def remove_model_rule(id: UUID, signed: Signature, now: datetime) -> Script[None]:
    before = yield from _with_id(id)
    yield sql("delete_model_rule", id)
    yield from auditing(signed.under("model_rules.remove", "model_rule", str(id), before=asdict(before.rule)), now)


@query
def list_model_rules() -> Script[list[ModelRuleView]]:
    """Every model rule, in its order."""
    return (yield from _all())


@query
def model_rules_for(account_id: UUID, sender: str) -> Script[list[ModelRuleView]]:
    """The enabled rules of every scope that a message of this sender is in, each once, in their order."""
    sender = sender.lower()
    rows = yield sql("select_enabled_model_rules", str(account_id), sender.rpartition("@")[2], sender)
    return read_rows(ModelRuleView, rows)


def _all() -> Script[list[ModelRuleView]]:
    rows = yield sql("select_model_rules")
    return read_rows(ModelRuleView, rows)


def _with_id(id: UUID) -> Script[ModelRuleView]:
    found = next((view for view in (yield from _all()) if view.id == id), None)
    if found is None:
        raise NotFound(f"there is no model rule {id}; `postroom model-rules list` shows those there are")
    return found


def _check_name(name: str, stored: Sequence[ModelRuleView]) -> None:
    if any(view.name == name for view in stored):
        raise Conflict("name", f"there is a model rule {name!r} already", "choose another name")


def _values(rule: ModelRule) -> tuple[object, ...]:
    return rule.name, rule.scope, rule.scope_ref, rule.position, rule.text, rule.mode, rule.enabled


def _checked(rule: ModelRule) -> ModelRule:
    """With what its scope is about in the form in which that is compared."""
    if not rule.name.strip() or len(rule.name) > LONGEST_NAME or not rule.name.isprintable():
        raise BadInput("name", "is not one line of text", f"give between 1 and {LONGEST_NAME} characters")
    check_words("text", rule.text, LONGEST_RULE)
    if rule.mode == "shadow":
        remedy = "use `postroom shadow begin --model`"
        raise BadInput("mode", "is shadow, but directions and model rules have no shadow", remedy)
    if rule.mode != ACTIVE:
        raise BadInput("mode", f"{rule.mode!r} is unknown", f"leave it out: {ACTIVE} is the only one")
    return replace(rule, scope_ref=checked_place(rule.scope, rule.scope_ref, rule.position, SCOPES))

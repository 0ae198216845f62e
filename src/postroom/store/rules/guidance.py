"""Guidance verbs. Guidance tells the model in words what the user wants: directions apply in general; model rules have
a name and apply to the messages of their scope.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import ClassVar, Literal, NamedTuple
from uuid import UUID

from postroom.core.audited_actions import AuditedAction
from postroom.core.errors import BadInput, Conflict, NotFound
from postroom.core.rules.leaf import BrokenRule
from postroom.core.rules.rule import SCOPES, read_scope
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.reading import read_row, read_rows
from postroom.store.people.audit import Signature, auditing

GuidanceKind = Literal["direction", "model_rule"]

LONGEST_NAME = 200
LONGEST_TEXT = 4_000
MOST: dict[GuidanceKind, int] = {"direction": 200, "model_rule": 1_000}
DIRECTION_SCOPES = ("global", "account")
POSITIONS = range(-1_000_000, 1_000_001)
ACTIVE = "active"


class _Actions(NamedTuple):
    """The changes of guidance, as the audit log names them."""

    add: AuditedAction
    edit: AuditedAction
    remove: AuditedAction


_ACTIONS: Mapping[GuidanceKind, _Actions] = {
    "direction": _Actions("directions.add", "directions.edit", "directions.remove"),
    "model_rule": _Actions("model_rules.add", "model_rules.edit", "model_rules.remove"),
}


@dataclass(frozen=True, slots=True)
class Direction:
    """One instruction in words, for all mail or for that of one account."""

    kind: ClassVar[GuidanceKind] = "direction"

    content: str
    scope: str = "global"
    scope_ref: str | None = None
    position: int = 0
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ModelRule:
    """One rule in words."""

    kind: ClassVar[GuidanceKind] = "model_rule"

    name: str
    text: str
    scope: str = "global"
    scope_ref: str | None = None
    position: int = 0
    mode: str = ACTIVE
    enabled: bool = True


Guidance = Direction | ModelRule


@dataclass(frozen=True, slots=True)
class GuidanceView:
    """Stored guidance. `updated_at` shows whether it was changed meanwhile."""

    id: UUID
    guidance: Guidance
    created_at: datetime
    updated_at: datetime

    @property
    def name(self) -> str | None:
        """The name; directions have none."""
        return self.guidance.name if isinstance(self.guidance, ModelRule) else None

    @property
    def row(self) -> dict[str, object]:
        """All fields under distinct names, for display."""
        times = {"created_at": self.created_at, "updated_at": self.updated_at}
        return {"id": self.id, **asdict(self.guidance), **times}


@transaction
def add_guidance(id: UUID, guidance: Guidance, signed: Signature, now: datetime) -> Script[GuidanceView]:
    guidance, kind = _check(guidance), guidance.kind
    stored = yield from list_guidance.script(kind)
    if len(stored) >= MOST[kind]:
        raise BadInput(f"{words_of(kind)}s", f"there are already {MOST[kind]:,}", "combine or remove some")
    _check_name(guidance, stored)
    yield fill(f"insert_{kind}", guidance, id=id, now=now)
    yield from auditing(signed.under(_ACTIONS[kind].add, kind, str(id), after=asdict(guidance)), now)
    return (yield from _with_id(kind, id))


@transaction
def edit_guidance(before: GuidanceView, after: Guidance, signed: Signature, now: datetime) -> Script[GuidanceView]:
    """Replace the guidance, if it is still as it was seen."""
    after, kind = _check(after), after.kind
    _check_name(after, [each for each in (yield from list_guidance.script(kind)) if each.id != before.id])
    if not (yield fill(f"update_{kind}", after, id=before.id, seen_at=before.updated_at, now=now)):
        yield from _with_id(kind, before.id)
        raise Conflict(words_of(kind), "it was changed meanwhile", f"see {command_to_list(kind)}, and try again")
    documents = {"before": asdict(before.guidance), "after": asdict(after)}
    yield from auditing(signed.under(_ACTIONS[kind].edit, kind, str(before.id), **documents), now)
    return (yield from _with_id(kind, before.id))


@transaction
def remove_guidance(kind: GuidanceKind, id: UUID, signed: Signature, now: datetime) -> Script[None]:
    before = yield from _with_id(kind, id)
    yield sql(f"delete_{kind}", id)
    yield from auditing(signed.under(_ACTIONS[kind].remove, kind, str(id), before=asdict(before.guidance)), now)


@query
def list_guidance(kind: GuidanceKind) -> Script[list[GuidanceView]]:
    """All guidance of one kind, in order."""
    rows = yield sql(f"select_{kind}s")
    form = Direction if kind == "direction" else ModelRule
    return [read_row(GuidanceView, row, guidance=read_row(form, row)) for row in rows.by_name()]


@query
def directions_for(account_id: UUID) -> Script[list[Direction]]:
    """The enabled directions for mail of this account, in order."""
    rows = yield sql("select_enabled_directions", str(account_id))
    return read_rows(Direction, rows)


@query
def model_rules_for(account_id: UUID, sender: str) -> Script[list[ModelRule]]:
    """The enabled rules whose scope includes mail of this sender, each once, in order."""
    sender = sender.lower()
    rows = yield sql("select_enabled_model_rules", str(account_id), sender.rpartition("@")[2], sender)
    return read_rows(ModelRule, rows)


def _with_id(kind: GuidanceKind, id: UUID) -> Script[GuidanceView]:
    found = next((view for view in (yield from list_guidance.script(kind)) if view.id == id), None)
    if found is None:
        raise NotFound(f"there is no {words_of(kind)} {id}; see {command_to_list(kind)}")
    return found


def _check_name(guidance: Guidance, others: Sequence[GuidanceView]) -> None:
    if isinstance(guidance, ModelRule) and any(each.name == guidance.name for each in others):
        raise Conflict("name", f"there is already a model rule {guidance.name!r}", "choose another name")


def _check(guidance: Guidance) -> Guidance:
    """The guidance with its scope value in the form used for comparison."""
    match guidance:
        case Direction():
            _check_text("content", guidance.content)
            return replace(guidance, scope_ref=_checked_place(guidance, DIRECTION_SCOPES))
        case ModelRule():
            _check_rule(guidance)
            return replace(guidance, scope_ref=_checked_place(guidance, SCOPES))


def _check_rule(rule: ModelRule) -> None:
    if not rule.name.strip() or len(rule.name) > LONGEST_NAME or not rule.name.isprintable():
        raise BadInput("name", "is not one line of text", f"give between 1 and {LONGEST_NAME} characters")
    _check_text("text", rule.text)
    if rule.mode == "shadow":
        remedy = "use `postroom shadow begin --model`"
        raise BadInput("mode", "is shadow, but directions and model rules have no shadow", remedy)
    if rule.mode != ACTIVE:
        raise BadInput("mode", f"{rule.mode!r} is unknown", f"leave it out: {ACTIVE} is the only one")


def _check_text(field: str, text: str) -> None:
    """Check text for the model: not empty, not too long, and storable in both databases."""
    storable = "\0" not in text and text.encode("utf-8", "ignore").decode() == text
    if not text.strip() or len(text) > LONGEST_TEXT or not storable:
        raise BadInput(field, "is empty, too long, or not plain text", f"give up to {LONGEST_TEXT:,} characters")


def _checked_place(guidance: Guidance, scopes: Sequence[str]) -> str | None:
    scope, ref = guidance.scope, guidance.scope_ref
    if scope not in scopes:
        raise BadInput("scope", f"{scope!r} is unknown", f"use one of {', '.join(scopes)}")
    if (ref is None) != (scope == "global"):
        problem = "is given although the scope is all mail" if ref else f"is missing for the scope {scope}"
        raise BadInput("scope_ref", problem, "give both a scope and its value, or neither")
    if guidance.position not in POSITIONS:
        remedy = "give a whole number up to 1,000,000; the lowest goes first"
        raise BadInput("position", f"is {guidance.position:,}", remedy)
    try:
        key = read_scope(scope, ref).key
    except BrokenRule as broken:
        raise BadInput(broken.field, broken.problem, broken.remedy) from None
    return None if key is None else key[1]


def words_of(kind: GuidanceKind) -> str:
    return kind.replace("_", " ")


def command_to_list(kind: GuidanceKind) -> str:
    """The command that lists them."""
    return f"`postroom {kind.replace('_', '-')}s list`"

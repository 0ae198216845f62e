"""Outcomes: how the user reacted to decisions, judged by what they then did in the mailbox.

Outcomes are judged, stored and learned from in the transaction that stores the user's changes, in a fixed number of
statements. Our own changes are filtered out first: they are never taken for the user's.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.actions.action import DecidedType
from postroom.core.actions.steps import shown, steps_of
from postroom.core.errors import NotFound
from postroom.core.rules.agreement import (
    SETTLING,
    Judgement,
    OwnerLabelChange,
    PastAction,
    agreement,
    how_reversed,
    is_ours,
)
from postroom.core.rules.learning import (
    WITHIN,
    HandledMessage,
    Origin,
    ReversedDecision,
    RuleSuggestion,
    exception_for,
    owner_changes,
    repeated,
)
from postroom.store.actions.decisions import CHANNEL
from postroom.store.engine.codecs import as_uuid, rows_text
from postroom.store.engine.database import Notify, Rows, Script, query, sql, transaction
from postroom.store.engine.reading import read_row, read_rows
from postroom.store.people.audit import Signature, auditing
from postroom.store.rules.proposals import proposing

# Of each origin, only the newest messages are considered.
MOST_RECENT = 1_000
CALLED_WRONG = "called it wrong"


@dataclass(frozen=True, slots=True)
class _Decided:
    """A decision about a message that the user has just changed."""

    id: UUID
    message_id: UUID
    shadow: bool
    action_type: DecidedType
    parameters: Mapping[str, Any]
    rule_name: str | None
    conditions: Mapping[str, Any] | None
    priority: int | None
    done: PastAction | None


@dataclass(frozen=True, slots=True)
class OutcomeView:
    """How the user reacted to a decision."""

    decision_id: UUID
    agreed: bool
    what: str
    observed_at: datetime


def learning_from(moves: Mapping[UUID, OwnerLabelChange], now: datetime) -> Script[None]:
    """Part of a transaction: learn from the changes of messages of one account in its mailbox."""
    theirs = yield from _not_ours(moves, now)
    if not theirs:
        return
    account_id, origins = _origins((yield sql("select_origins", list(theirs))))
    labels = {id: (name, kind) for id, name, kind, *_ in (yield sql("select_labels", account_id))}
    own = {id: name for id, (name, kind) in labels.items() if kind == "user"}
    ids = {name.casefold(): id for id, (name, _) in labels.items()} | {id: id for id in labels}
    rows = yield sql("select_decided", list(theirs))
    decided = [read_row(_Decided, row, done=_past_action(row)) for row in rows.by_name()]
    reversals = yield from _judging(decided, theirs, origins, ids, own, now)
    found = [exception_for(account_id, each, own) for each in reversals]
    found += yield from _repetitions(account_id, theirs, origins, own, now)
    yield from proposing([each for each in found if each is not None], now)


def _not_ours(moves: Mapping[UUID, OwnerLabelChange], now: datetime) -> Script[dict[UUID, OwnerLabelChange]]:
    hands: defaultdict[UUID, list[PastAction]] = defaultdict(list)
    for row in (yield sql("select_hands_on", list(moves), now - SETTLING)).by_name():
        hands[as_uuid(row["message_id"])].append(read_row(PastAction, row))
    return {id: moved for id, moved in moves.items() if not is_ours(moved, hands[id], now)}


def _origins(rows: Rows) -> tuple[UUID, dict[UUID, Origin]]:
    found = {as_uuid(row["id"]): read_row(Origin, row) for row in rows.by_name()}
    return as_uuid(next(rows.by_name())["account_id"]), found


def _judging(
    decided: Sequence[_Decided],
    moves: Mapping[UUID, OwnerLabelChange],
    origins: Mapping[UUID, Origin],
    label_ids: Mapping[str, str],
    own_labels: Mapping[str, str],
    now: datetime,
) -> Script[list[ReversedDecision]]:
    """Store what the user's changes say about decisions; return the decisions they reversed."""
    rows: list[tuple[object, ...]] = []
    reversals: list[ReversedDecision] = []
    for each in decided:
        moved = moves[each.message_id]
        judgement = _agreement(each, moved, label_ids, own_labels) if each.shadow else _answer(each, moved, now)
        if judgement is not None:
            rows.append((each.id, judgement.agreed, judgement.what))
            if not each.shadow:
                reversals.append(_reversal_of(each, origins[each.message_id], moved, judgement.what))
    if rows:
        yield sql("upsert_outcomes", rows_text(sorted(rows, key=lambda row: str(row[0]))), now)
    return reversals


def _agreement(
    decided: _Decided, moved: OwnerLabelChange, label_ids: Mapping[str, str], own_labels: Mapping[str, str]
) -> Judgement | None:
    """Judge every action that was decided in shadow: one that the user contradicts is enough to disagree."""
    steps = steps_of(decided.action_type, decided.parameters)
    each = [agreement(step.action_type, _label_id(step.parameters, label_ids), moved, own_labels) for step in steps]
    found = [judgement for judgement in each if judgement is not None]
    contrary = next((judgement for judgement in found if not judgement.agreed), None)
    if contrary is not None or not found:
        return contrary
    return Judgement(True, ", ".join(dict.fromkeys(judgement.what for judgement in found)))


def _answer(decided: _Decided, moved: OwnerLabelChange, now: datetime) -> Judgement | None:
    """Only one reaction to a completed action can be recognised: reversing it."""
    what = None if decided.done is None else how_reversed(decided.done, moved, now)
    return None if what is None else Judgement(False, what)


def _repetitions(
    account_id: UUID,
    moves: Mapping[UUID, OwnerLabelChange],
    origins: Mapping[UUID, Origin],
    own_labels: Mapping[str, str],
    now: datetime,
) -> Script[list[RuleSuggestion | None]]:
    changes = {id: done for id, moved in moves.items() if (done := owner_changes(moved, own_labels))}
    if not changes:
        return []
    wanted = [origins[id] for id in changes]
    keys = [sorted({key for each in wanted if (key := each.of(kind))}) for kind in ("sender", "domain", "list")]
    rows = yield sql("select_same_origin", account_id, *keys, now - WITHIN, MOST_RECENT)
    recent = read_rows(HandledMessage, rows)
    found: dict[Origin, RuleSuggestion | None] = {}
    # Once per origin: of a thousand messages archived together, most share an origin.
    for origin, change in dict.fromkeys((origins[id], change) for id, done in changes.items() for change in done):
        # One proposed rule at a time for mail of one origin: a second would never be reached.
        if found.get(origin) is None:
            found[origin] = repeated(account_id, change, origin, recent, own_labels)
    return list(found.values())


def _label_id(parameters: Mapping[str, Any], label_ids: Mapping[str, str]) -> str | None:
    label = str(parameters.get("label", ""))
    return label_ids.get(label) or label_ids.get(label.casefold())


def _reversal_of(each: _Decided, origin: Origin, moved: OwnerLabelChange, what: str) -> ReversedDecision:
    return ReversedDecision(
        each.id,
        each.message_id,
        origin,
        shown(each.action_type, each.parameters),
        what,
        moved,
        each.rule_name,
        each.conditions,
        each.priority,
    )


def _past_action(row: Mapping[str, Any]) -> PastAction | None:
    return None if row["executed_at"] is None else read_row(PastAction, row)


@transaction
def record_mistake(decision_id: UUID, message_id: UUID, signed: Signature, now: datetime) -> Script[str | None]:
    """Record that a person calls a decision wrong, and propose an exception; return the name of the proposed rule.

    Safe to repeat. Raises NotFound if nothing was done because of this decision, or another one holds by now.
    """
    account_id, origins = _origins((yield sql("select_origins", [message_id])))
    rows = yield sql("select_decided", [message_id])
    decided = [read_row(_Decided, row, done=_past_action(row)) for row in rows.by_name()]
    wrong = next((each for each in decided if each.id == decision_id and each.done is not None), None)
    if wrong is None or wrong.done is None:
        raise NotFound(f"there is no action by the decision {decision_id}, or the message was decided again since")
    labels = yield sql("select_labels", account_id)
    own = {id: name for id, name, kind, *_ in labels if kind == "user"}
    back: Mapping[str, list[str]] = wrong.done.hint.get("inverse_parameters", {})
    change = OwnerLabelChange(frozenset(back.get("add_labels", ())), frozenset(back.get("remove_labels", ())))
    yield sql("upsert_outcomes", rows_text([(wrong.id, False, CALLED_WRONG)]), now)
    found = exception_for(account_id, _reversal_of(wrong, origins[message_id], change, CALLED_WRONG), own)
    yield from proposing([] if found is None else [found], now)
    yield from auditing(signed.under("decision.wrong", "decision", str(decision_id)), now)
    yield Notify(CHANNEL, "wrong")
    return None if found is None else found.draft.name


@query
def outcomes_of(message_id: UUID) -> Script[list[OutcomeView]]:
    """The outcomes of the decisions about a message, oldest first."""
    rows = yield sql("select_outcomes", message_id)
    return read_rows(OutcomeView, rows)

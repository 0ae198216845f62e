"""What was decided about a message, by whom and why; and the actions that follow, from a decision or from a wish."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.action import IRREVERSIBLE, Actor, DecidedType
from postroom.core.jobs.job import Job, NewJob
from postroom.core.lifecycle import ActionState
from postroom.core.rules.rule import DecisionSource
from postroom.store.audit import AuditEntry, Signature, auditing
from postroom.store.engine.codecs import json_text
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.jobs import completing_one, enqueue_many
from postroom.store.rollups import Count, adding

CHANNEL = "actions"
DECIDED_ANEW = "decided anew"
DONE_BEFORE = "done before, or on its way, and not done again"


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, by whom and why. A shadow decision is only remembered."""

    id: UUID
    account_id: UUID
    message_id: UUID
    source: DecisionSource
    action_type: DecidedType
    parameters: Mapping[str, Any]
    confidence: float
    rationale: str
    needs_approval: bool = False
    safety: Mapping[str, Any] | None = None
    rule_id: UUID | None = None
    rule_name: str | None = None
    generation: int = 1
    shadow: bool = False
    model: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True)
class NewAction:
    """What follows from a decision, or was asked for. `job_id` is that of the job that carries it out, once it may."""

    id: UUID
    actor: Actor
    state: ActionState
    action_hash: str
    job_id: UUID | None = None
    expires_at: datetime | None = None
    asked_by: str | None = None
    batch_id: UUID | None = None


@transaction
def record_decision(
    job: Job,
    decision: Decision,
    action: NewAction | None,
    follow_up: NewJob | None,
    now: datetime,
    shadows: Sequence[Decision] = (),
) -> Script[None]:
    """The decision, its action, the job that follows and the end of the deciding job: one transaction.

    Deciding anew takes back what earlier decisions wait to be allowed, and repeats nothing that cannot be undone.
    """
    yield from completing_one(job, now)
    if decision.generation > 1:
        yield sql("cancel_waiting", decision.message_id, DECIDED_ANEW, now)
        if action is not None and (yield from _is_done(decision, action)):
            decision = replace(decision, rationale=f"{DONE_BEFORE}: {decision.rationale}", needs_approval=False)
            action = follow_up = None
    for each in (decision, *shadows):
        yield from _insert_decision(each, now)
    if action is not None:
        yield from inserting_action(decision, action, decision.id, now)
    if follow_up is not None:
        yield from enqueue_many.script([follow_up], now)
    rule = str(decision.rule_id) if decision.rule_id is not None else decision.source
    counts = [Count("decision", "email", decision.action_type), Count("rule", "email", rule)]
    yield from adding(counts, now, decision.id.int)
    yield Notify(CHANNEL, "decided")


def _is_done(decision: Decision, action: NewAction) -> Script[bool]:
    """Whether this very thing was done to the message or is on its way, and nothing takes it back."""
    if decision.action_type not in IRREVERSIBLE:
        return False
    return bool((yield sql("select_done_before", decision.message_id, action.action_hash)))


def _insert_decision(decision: Decision, now: datetime) -> Script[None]:
    yield sql(
        "insert_decision",
        decision.id,
        decision.account_id,
        decision.message_id,
        decision.generation,
        decision.source,
        decision.shadow,
        decision.rule_id,
        decision.rule_name,
        decision.action_type,
        json_text(decision.parameters),
        decision.confidence,
        decision.needs_approval,
        decision.rationale,
        json_text(decision.safety or {}),
        decision.model,
        decision.prompt_version,
        now,
    )


def inserting_action(wish: Decision, action: NewAction, decision_id: UUID | None, now: datetime) -> Script[None]:
    """Part of a transaction: the action that `wish` describes, be it a recorded decision or not."""
    yield sql(
        "insert_action",
        action.id,
        wish.account_id,
        wish.message_id,
        decision_id,
        action.actor,
        action.asked_by,
        wish.action_type,
        json_text(wish.parameters),
        action.state,
        action.action_hash,
        wish.rationale,
        json_text(wish.safety or {}),
        action.job_id,
        action.batch_id,
        action.expires_at,
        now,
    )


@transaction
def ask_for_action(
    wish: Decision, action: NewAction, follow_up: NewJob | None, now: datetime, signed: Signature | None = None
) -> Script[None]:
    """An action that a person or an agent asked for; `follow_up` carries it out, or asks for the approval it needs."""
    yield from inserting_action(wish, action, None, now)
    if signed is not None:
        after = {"message_id": str(wish.message_id), "action_type": wish.action_type, "state": action.state}
        yield from auditing(signed.under("action.ask", "action", str(action.id), after=after), now)
    if follow_up is not None:
        yield from enqueue_many.script([follow_up], now)
    yield Notify(CHANNEL, "asked")


@transaction
def enqueue_decisions(jobs: Sequence[NewJob], now: datetime, entry: AuditEntry | None = None) -> Script[int]:
    """Has messages decided about anew; returns about how many that was not asked already.

    `entry` tells of the wish as a whole, and goes with the first of its jobs.
    """
    if entry is not None:
        yield from auditing(entry, now)
    return sum(not each.duplicate for each in (yield from enqueue_many.script(jobs, now)))


@query
def latest_generation(message_id: UUID) -> Script[int]:
    """Of the decisions about a message; 0 when there is none. Deciding again is a new generation."""
    rows = yield sql("select_generation", message_id)
    return rows[0][0]


class Undecided(NamedTuple):
    """A message about which nobody had anything to say, and the generation of that decision."""

    account_id: UUID
    message_id: UUID
    generation: int


@query
def undecided(since: datetime, most: int) -> Script[list[Undecided]]:
    """The newest first."""
    rows = yield sql("select_to_decide_again", since, most)
    return read_rows(Undecided, rows)


@dataclass(frozen=True, slots=True)
class DecisionView:
    """A decision as it is shown."""

    decision: Decision
    created_at: datetime


@query
def decisions_about(message_id: UUID) -> Script[list[DecisionView]]:
    """The newest generation first, what counted before what was only remembered."""
    rows = yield sql("select_decisions", message_id)
    return read_rows(DecisionView, rows)

"""Decisions and actions: what was decided about a message, what came of it, and how it can be undone.

Each verb makes one move of the action's lifecycle; those that end a job do so in the same transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.errors import Fatal
from postroom.core.jobs import Job, NewJob
from postroom.store.codecs import as_uuid, from_json, json_text
from postroom.store.database import Notify, Script, Transaction, query, sql, transaction
from postroom.store.job_steps import fence
from postroom.store.jobs import completing_one, enqueue_many
from postroom.store.rollups import Count, adding

CHANNEL = "actions"

Ending = Transaction[None]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, by whom and why."""

    id: UUID
    account_id: UUID
    message_id: UUID
    source: str
    action_type: str
    parameters: Mapping[str, Any]
    confidence: float
    rationale: str
    needs_approval: bool = False
    safety: Mapping[str, Any] | None = None
    rule_id: UUID | None = None
    rule_name: str | None = None
    generation: int = 1


@dataclass(frozen=True, slots=True)
class NewAction:
    """What follows from a decision."""

    id: UUID
    actor: str
    state: str
    action_hash: str


@transaction
def record_decision(
    job: Job, decision: Decision, action: NewAction | None, follow_up: NewJob | None, now: datetime
) -> Script[None]:
    """The decision, its action, the job that carries it out and the end of the deciding job: one transaction."""
    yield from completing_one(job, now)
    yield sql(
        "insert_decision",
        decision.id,
        decision.account_id,
        decision.message_id,
        decision.generation,
        decision.source,
        decision.rule_id,
        decision.rule_name,
        decision.action_type,
        json_text(decision.parameters),
        decision.confidence,
        decision.needs_approval,
        decision.rationale,
        json_text(decision.safety or {}),
        now,
    )
    if action is not None:
        yield from _insert_action(decision, action, follow_up.id if follow_up is not None else None, now)
    if follow_up is not None:
        yield from enqueue_many.script([follow_up], now)
    rule = str(decision.rule_id) if decision.rule_id is not None else decision.source
    counts = [Count("decision", "email", decision.action_type), Count("rule", "email", rule)]
    yield from adding(counts, now, decision.id.int)
    yield Notify(CHANNEL, "decided")


def _insert_action(decision: Decision, action: NewAction, job_id: UUID | None, now: datetime) -> Script[None]:
    yield sql(
        "insert_action",
        action.id,
        decision.account_id,
        decision.message_id,
        decision.id,
        action.actor,
        decision.action_type,
        json_text(decision.parameters),
        action.state,
        action.action_hash,
        job_id,
        now,
    )


@dataclass(frozen=True, slots=True)
class Action:
    """An action as its executor needs it."""

    id: UUID
    account_id: UUID
    message_id: UUID
    provider_message_id: str
    action_type: str
    parameters: Mapping[str, Any]
    state: str
    pre_labels: frozenset[str] | None


@query
def load_action(id: UUID) -> Script[Action]:
    rows = yield sql("select_action", id)
    if not rows:
        raise Fatal(f"there is no action {id}")
    id, account_id, message_id, provider_id, action_type, parameters, state, pre_image = rows[0]
    return Action(
        as_uuid(id),
        as_uuid(account_id),
        as_uuid(message_id),
        provider_id,
        action_type,
        from_json(parameters),
        state,
        None if pre_image is None else frozenset(from_json(pre_image)["labels"]),
    )


@transaction
def begin_action(job: Job, id: UUID, now: datetime) -> Script[None]:
    """Executing, owned by this job: a retry of the same job may go on, another job may not."""
    yield from fence(job, may_be_canceled=True)
    begun = yield sql("begin_action", id, job.id, now)
    if not begun:
        raise Fatal(f"action {id} is not waiting to be carried out, or belongs to another job")


@transaction
def keep_pre_image(job: Job, id: UUID, labels: frozenset[str], now: datetime) -> Script[None]:
    """What the message was like before, kept once, before anything is changed."""
    yield from fence(job, may_be_canceled=True)
    yield sql("set_pre_image", id, json_text({"labels": sorted(labels)}), now)


@transaction
def complete_action(
    job: Job, id: UUID, labels: frozenset[str], undo_hint: Mapping[str, Any], now: datetime
) -> Script[None]:
    """Done: the action, the labels we know of, and the job end together."""
    yield from completing_one(job, now)
    rows = yield sql("complete_action", id, json_text(undo_hint), now)
    if not rows:
        raise Fatal(f"action {id} was ended while it was carried out; what it changed is in its pre-image")
    yield sql("update_message_labels", as_uuid(rows[0][0]), json_text(sorted(labels)), now)
    yield Notify(CHANNEL, "completed")


@transaction
def fail_action(job: Job, id: UUID, error: str, now: datetime) -> Script[None]:
    """Failed for good; the job ends by itself with the same reason."""
    yield from fence(job, may_be_canceled=False)
    yield sql("fail_action", id, error, now)
    yield Notify(CHANNEL, "failed")


@transaction
def end_orphans(now: datetime) -> Script[int]:
    """Ends the actions whose job has ended without them: canceled in the queue, or given up by the rescuer."""
    ended = yield sql("end_orphaned_actions", now)
    if ended:
        yield Notify(CHANNEL, "ended")
    return len(ended)

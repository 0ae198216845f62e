"""Decisions about messages, with who decided and why; and the actions that follow from a decision or a request."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.action import Actor, DecidedType
from postroom.core.actions.hiding import HOUR, HiddenSoFar, HidingCaps, cap_reached
from postroom.core.actions.safety import Ruling
from postroom.core.actions.steps import is_irreversible, shown
from postroom.core.jobs.job import Job, NewJob
from postroom.core.jobs.types import CATALOGUE
from postroom.core.lifecycle import ActionState
from postroom.core.queue.queues import HISTORY
from postroom.core.rules.rule import DecisionSource
from postroom.core.views import Untrusted
from postroom.store.backfill import backfill_spend
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Notify, Script, query, sql, transaction
from postroom.store.engine.filling import fill
from postroom.store.engine.ids import new_id
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.installation.rollups import Count, adding
from postroom.store.jobs.job_builders import decide_again
from postroom.store.jobs.jobs import completing_one, enqueue_many
from postroom.store.people.audit import AuditEntry, Signature, auditing

CHANNEL = "actions"
DECIDED_AGAIN = "decided again"
BEFORE_ACTING = "before_acting"
"""Why a decision is only in shadow: its account does not act on mail of that time."""
DONE_BEFORE = "already done or in progress, so not done again"


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision: by whom and why. A shadow decision is only recorded."""

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
    alternatives: Sequence[Mapping[str, Any]] | None = None
    """Other actions that the model weighed: `action`, `parameters`, `confidence`. They are only shown."""
    other_rules: tuple[tuple[UUID, str], ...] = ()
    """The ids and names of the rules that added to what the first one does."""


@dataclass(frozen=True, slots=True)
class NewAction:
    """The action that follows from a decision or a request. `job_id` is the job that will carry it out, once it may."""

    id: UUID
    actor: Actor
    state: ActionState
    action_hash: str
    job_id: UUID | None = None
    expires_at: datetime | None = None
    asked_by: str | None = None
    batch_id: UUID | None = None
    hides: bool = False
    """Whether a model or an agent hides the message by itself."""


def refused_decision(decision: Decision, ruling: Ruling) -> Decision:
    """A decision to do nothing, which records what was refused."""
    refused: Mapping[str, Any] = {"action": decision.action_type, "parameters": decision.parameters}
    return replace(
        decision,
        action_type="none",
        parameters={},
        needs_approval=False,
        rationale=f"{shown(decision.action_type, decision.parameters)} is not done: {'; '.join(ruling.reasons)}",
        safety={**ruling.as_json(), "proposed": refused},
    )


@transaction
def record_decision(
    job: Job,
    decision: Decision,
    action: NewAction | None,
    follow_up: NewJob | None,
    now: datetime,
    shadows: Sequence[Decision] = (),
    *,
    is_backfilled: bool = False,
    hiding: HidingCaps | None = None,
) -> Script[None]:
    """Record the decision, its action, the next job and the end of the deciding job in one transaction.

    A new decision withdraws what earlier ones have waiting for approval, and never repeats an action that cannot be
    undone. An action that hides the message is not recorded beyond the caps on that: then the message stays.
    """
    yield from completing_one(job, now)
    if decision.generation > 1:
        yield sql("cancel_waiting", decision.message_id, DECIDED_AGAIN, now)
        if action is not None and (yield from _is_done(decision, action)):
            decision = replace(decision, rationale=f"{DONE_BEFORE}: {decision.rationale}", needs_approval=False)
            action = follow_up = None
    if action is not None and action.hides and hiding is not None:
        reason = yield from why_no_more_hidden(decision.account_id, decision.message_id, hiding, now)
        if reason is not None:
            decision = refused_decision(decision, Ruling("refuse", (reason,)))
            action = follow_up = None
    for each in (decision, *shadows):
        yield from _insert_decision(each, now)
    if action is not None:
        yield from inserting_action(decision, action, decision.id, now)
    if follow_up is not None:
        yield from enqueue_many.script([follow_up], now)
    if any((each.safety or {}).get("shadow") == BEFORE_ACTING for each in shadows):
        yield from _deciding_again_if_acting(decision, now)
    if is_backfilled:
        yield from backfill_spend.deciding(decision.message_id, now)
    rules = [str(decision.rule_id) if decision.rule_id is not None else decision.source]
    rules += [str(id) for id, _ in decision.other_rules]
    tier = yield from _tier_of(decision, is_backfilled)
    counts = [
        Count("decision", "email", decision.action_type),
        Count("outcome", "email", f"{tier} {decision.source} {_ending(decision.action_type, decision.needs_approval)}"),
        *(yield from _former_outcome(decision, tier)),
        *(Count("rule", "email", rule) for rule in rules),
    ]
    yield from adding(counts, now, decision.id.int)
    yield Notify(CHANNEL, "decided")


def _deciding_again_if_acting(decision: Decision, now: datetime) -> Script[None]:
    """Part of a transaction: decide again if the account has begun to act on such mail while this was decided.

    Whoever begins acting asks for new decisions about what is decided by then; this one was not yet.
    """
    if (yield sql("select_acts_by_now", decision.message_id))[0][0]:
        again = decide_again(CATALOGUE, decision.account_id, decision.message_id, decision.generation + 1)
        yield from enqueue_many.script([again], now)


def _tier_of(decision: Decision, is_backfilled: bool) -> Script[str]:
    """Return the tier that the message waited in. Mail of the archive waits behind all other."""
    rows = yield sql("select_policy_tier", decision.message_id)
    return HISTORY if is_backfilled else rows[0][0]


def _former_outcome(decision: Decision, tier: str) -> Script[list[Count]]:
    """Return what takes the outcome of the decision before this one off the counts: a message has one outcome."""
    if decision.generation == 1:
        return []
    rows = yield sql("select_decided_before", decision.message_id, decision.generation)
    return [
        Count("outcome", "email", f"{tier} {source} {_ending(action_type, bool(needs_approval))}", times=-1)
        for source, action_type, needs_approval in rows
    ]


def _ending(action_type: str, needs_approval: bool) -> str:
    return "ask" if needs_approval else action_type


def _is_done(decision: Decision, action: NewAction) -> Script[bool]:
    """Return whether this action was done to the message or is in progress, and has not been undone."""
    if not is_irreversible(decision.action_type, decision.parameters):
        return False
    return bool((yield sql("select_done_before", decision.message_id, action.action_hash)))


def _insert_decision(decision: Decision, now: datetime) -> Script[None]:
    more = {"safety": decision.safety or {}, "alternatives": decision.alternatives or None}
    yield fill("insert_decision", decision, **more, now=now)
    for id, name in decision.other_rules:
        yield sql("insert_decision_rule", decision.id, id, name)


def why_no_more_hidden(account_id: UUID, message_id: UUID, caps: HidingCaps, now: datetime) -> Script[str | None]:
    """Part of a transaction: why automation hides no more of this sender now; None if it may.

    One check at a time per account, so that of several at once only one is the last allowed.
    """
    yield sql("lock_account", account_id)
    day, hour = caps.day_began, now - HOUR
    rows = yield sql("count_hidden", account_id, message_id, min(day, hour), day, hour)
    hidden = read_first(HiddenSoFar, rows) or HiddenSoFar(0, 0, 0)
    return cap_reached(hidden, caps.limits)


def inserting_action(request: Decision, action: NewAction, decision_id: UUID | None, now: datetime) -> Script[None]:
    """Part of a transaction: insert the action that `request` describes, recorded as a decision or not."""
    irreversible = action.actor != "undo" and is_irreversible(request.action_type, request.parameters)
    more = {"decision_id": decision_id, "safety": request.safety or {}, "irreversible": irreversible}
    yield fill("insert_action", action, request, **more, now=now)
    if action.hides:
        after = {"message_id": str(request.message_id), "action_type": request.action_type}
        signed = Signature(new_id(), action.asked_by or action.actor, action.actor)
        yield from auditing(signed.under("mail.hide", "action", str(action.id), after=after), now)


@transaction
def ask_for_action(
    request: Decision, action: NewAction, follow_up: NewJob | None, now: datetime, signed: Signature | None = None
) -> Script[None]:
    """Record an action that a person or an agent requested; `follow_up` executes it, or asks for its approval."""
    yield from inserting_action(request, action, None, now)
    if signed is not None:
        after = {"message_id": str(request.message_id), "action_type": request.action_type, "state": action.state}
        yield from auditing(signed.under("action.ask", "action", str(action.id), after=after), now)
    if follow_up is not None:
        yield from enqueue_many.script([follow_up], now)
    yield Notify(CHANNEL, "asked")


@transaction
def enqueue_decisions(jobs: Sequence[NewJob], now: datetime, entry: AuditEntry | None = None) -> Script[int]:
    """Enqueue new decisions about messages; return how many were not enqueued already.

    `entry` describes the request as a whole, and is written with the first of its jobs.
    """
    if entry is not None:
        yield from auditing(entry, now)
    return sum(not each.duplicate for each in (yield from enqueue_many.script(jobs, now)))


@query
def latest_generation(message_id: UUID) -> Script[int]:
    """The latest generation of decisions about a message; 0 if there is none. Deciding again starts a new one."""
    rows = yield sql("select_generation", message_id)
    return rows[0][0]


class Undecided(NamedTuple):
    """A message on which no rule or model decided, and the generation of that decision."""

    account_id: UUID
    message_id: UUID
    generation: int


@query
def undecided(since: datetime, most: int) -> Script[list[Undecided]]:
    """Undecided messages, newest first."""
    rows = yield sql("select_to_decide_again", since, most)
    return read_rows(Undecided, rows)


class UntouchedMessage(NamedTuple):
    """A message that nothing was done with, and the action that was decided in shadow before acting began, if any."""

    account_id: UUID
    message_id: UUID
    generation: int
    would: DecidedType | None


@query
def waiting_to_act(account_id: UUID, since: datetime, most: int) -> Script[list[UntouchedMessage]]:
    """The messages of an account since a time that nothing was done with, newest first."""
    rows = yield sql("select_waiting_to_act", account_id, since, most)
    return read_rows(UntouchedMessage, rows)


@dataclass(frozen=True, slots=True)
class DecidingRule:
    """A rule that decided about some messages, and about how many."""

    rule: Untrusted[str]
    messages: int


@query
def deciding_rules(ids: Sequence[UUID], most: int) -> Script[list[DecidingRule]]:
    """The rules that decided about these messages last, those that decided about the most first."""
    return read_rows(DecidingRule, (yield sql("select_deciding_rules", ids, most)))


@dataclass(frozen=True, slots=True)
class DecisionView:
    """A decision as it is shown."""

    decision: Decision
    created_at: datetime


@query
def decisions_about(message_id: UUID) -> Script[list[DecisionView]]:
    """Decisions about a message: newest generation first, those that counted before shadow decisions."""
    others: defaultdict[UUID, list[tuple[UUID, str]]] = defaultdict(list)
    for decision_id, rule_id, name in (yield sql("select_decision_rules", message_id)):
        others[as_uuid(decision_id)].append((as_uuid(rule_id), name))
    views = read_rows(DecisionView, (yield sql("select_decisions", message_id)))
    return [
        replace(view, decision=replace(view.decision, other_rules=tuple(others[view.decision.id]))) for view in views
    ]

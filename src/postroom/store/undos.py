"""Undo verbs: for one action, or all of a rule, a batch or a period. An action is undone once; a failed undo may be
tried again under the same link.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.action import INVERSES, Actor, RecordedType, known_action
from postroom.core.actions.steps import shown
from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import Fatal, IllegalMove, NotFound, SafetyRefused
from postroom.core.jobs.job import Job, NewJob
from postroom.core.lifecycle import ActionState
from postroom.store.actions import FAR_AHEAD, HOUR, Action, DoneChange, completing_action, loading
from postroom.store.audit import AuditEntry, Signature, auditing
from postroom.store.decisions import Decision, NewAction, inserting_action
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.job_steps import fence
from postroom.store.jobs import cancel_job, completing_one, enqueue_many
from postroom.store.pauses import unless_paused

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
# The undo of a snooze, or of several actions, puts the message back; as an action, that is adding its labels.
_KINDS = {**INVERSES, "snooze": "apply_label", "several": "apply_label"}


class Undoable(NamedTuple):
    """An action that can be undone now."""

    id: UUID
    account_id: UUID
    message_id: UUID


@dataclass(frozen=True, slots=True)
class Undo:
    """An undo in progress: its own record, and the action that it reverses. An earlier attempt of one that
    `is_repeated` may have changed something.
    """

    id: UUID
    original: Action
    is_repeated: bool = False


@query
def undoable(
    most: int,
    *,
    rule_name: str | None = None,
    account_id: UUID | None = None,
    batch_id: UUID | None = None,
    since: datetime = LONG_AGO,
    until: datetime = FAR_AHEAD,
) -> Script[list[Undoable]]:
    """Actions that match all criteria, newest first. A rule has the name it had when it decided."""
    texts = [None if id is None else str(id) for id in (account_id, batch_id)]
    rows = yield sql("select_undoable", rule_name, *texts, since, until, most)
    return read_rows(Undoable, rows)


@query
def has_decided(rule_name: str) -> Script[bool]:
    """Return whether a rule of this name has ever decided anything, even if it is gone."""
    return bool((yield sql("select_rule_decided", rule_name)))


@transaction
def begin_undo(job: Job, original_id: UUID, account_id: UUID, undo_id: UUID, now: datetime) -> Script[Undo]:
    """Create the record of the undo and its link to the original, before anything is changed; a retry finds both.

    `undo_id` is the id for a new record. Raises Fatal, with the reason, if the action cannot be undone.
    """
    yield from fence(job, may_be_canceled=True)
    if not (yield sql("lock_action", original_id)):
        raise Fatal(f"there is no action {original_id}")
    original = yield from loading(original_id)
    if original.account_id != account_id:
        raise Fatal(f"action {original_id} belongs to another account than the job says")
    yield from unless_paused(account_id)
    if (reason := why_not_undoable(original.action_type, original.state, original.undo_hint)) is not None:
        raise Fatal(f"action {original_id} cannot be undone: {reason}")
    for found, state, _ in (yield sql("select_undo_of", original_id)):
        if not (yield sql("take_undo_over", as_uuid(found), job.id, now)):
            raise Fatal(f"action {original_id} is undone already" if state == "completed" else "another undo runs")
        return Undo(as_uuid(found), original, is_repeated=True)
    yield from _new_undo(job, original, undo_id, now)
    return Undo(undo_id, original)


def _new_undo(job: Job, original: Action, undo_id: UUID, now: datetime) -> Script[None]:
    request = Decision(
        original.id,
        original.account_id,
        original.message_id,
        "none",
        known_action(_KINDS[original.action_type]),
        {"undo_of": str(original.id)},
        1.0,
        f"undo of {shown(original.action_type, original.parameters)}",
    )
    action = NewAction(undo_id, "undo", "executing", f"undo:{original.id}", job.id)
    yield from inserting_action(request, action, None, now)
    yield sql("insert_action_link", new_id(), undo_id, original.id, "undo_of", now)


def _cancel_wake(job_id: UUID, now: datetime) -> Script[None]:
    """Cancel the waking of the message. One that was woken, or whose job is gone, needs no canceling."""
    with contextlib.suppress(IllegalMove, NotFound):
        yield from cancel_job.script(job_id, now)


@transaction
def complete_undo(
    job: Job,
    undo: UUID,
    labels: frozenset[str] | None,
    hint: dict[str, object],
    next_undo: NewJob | None,
    now: datetime,
    wake: UUID | None = None,
    moved_to: str | None = None,
) -> Script[None]:
    """End the undo and the job and update the message together; then an older action of the message follows.

    `wake` is the job that was to wake the message. It is locked before the message, as that job itself does, so that
    there is no deadlock. `moved_to` is as in `DoneChange`.
    """
    yield from completing_one(job, now)
    if wake is not None:
        yield from _cancel_wake(wake, now)
    yield from completing_action(undo, DoneChange(labels, hint, moved_to), now)
    if next_undo is not None:
        yield from enqueue_many.script([next_undo], now)


class UndoCandidate(NamedTuple):
    """An action that somebody wants to undo. `undone` is the state of its undo, if there was one.

    `asked_by` and `approved_by` name who requested and who approved it, if anybody did.
    """

    account_id: UUID
    message_id: UUID
    actor: Actor
    action_type: RecordedType
    state: ActionState
    hint: Mapping[str, Any] | None
    undone: ActionState | None
    asked_by: str | None
    approved_by: str | None


@query
def undo_candidate(id: UUID) -> Script[UndoCandidate | None]:
    return read_first(UndoCandidate, (yield sql("select_undo_candidate", id)))


@transaction
def enqueue_undo(
    job: NewJob, action_id: UUID, signed: Signature, now: datetime, hourly_cap: int | None = None
) -> Script[bool]:
    """Begin the undo of one action, with an entry in the audit log. False if the same job existed before.

    Raises SafetyRefused if the signer has already undone as many actions within the hour as the cap allows.
    """
    if hourly_cap is not None:
        yield sql("lock_asker", signed.actor)
        if (yield sql("count_undone_by", signed.actor, now - HOUR))[0][0] >= hourly_cap:
            raise SafetyRefused(f"this agent has undone {hourly_cap} actions within the hour, which is the cap")
    (accepted,) = yield from enqueue_many.script([job], now)
    yield from auditing(signed.under("action.undo", "action", str(action_id)), now)
    return not accepted.duplicate


@transaction
def enqueue_undos(jobs: list[NewJob], now: datetime, entry: AuditEntry | None = None) -> Script[int]:
    """Enqueue undos; return how many were new. `entry` describes the whole request, and is written with the first."""
    if entry is not None:
        yield from auditing(entry, now)
    return sum(not each.duplicate for each in (yield from enqueue_many.script(jobs, now)))

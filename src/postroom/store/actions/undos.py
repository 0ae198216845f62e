"""Undo verbs: for one action, or all of a rule, a batch or a period.

An action is undone once. While its undo is live, or once it is completed, everyone who asks for it gets that one. After
it failed or was canceled, the next request starts a new job under the same key and the same link.
"""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from postroom.core.actions.action import Actor, RecordedType, undo_type
from postroom.core.actions.steps import shown
from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import Fatal, IllegalMove, NotFound, Parked, SafetyRefused
from postroom.core.jobs.job import Job, NewJob
from postroom.core.jobs.types import Catalogue
from postroom.core.lifecycle import ActionState
from postroom.core.moments import LONG_AGO
from postroom.store.actions.actions import FAR_AHEAD, HOUR, Action, DoneChange, completing_action, load_action
from postroom.store.actions.decisions import Decision, NewAction, inserting_action
from postroom.store.actions.pauses import check_paused
from postroom.store.actions.token_work import refuse_revoked
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Script, query, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.jobs.job_builders import ASKED_PRIORITY, undo_job, undo_key
from postroom.store.jobs.job_steps import fence
from postroom.store.jobs.jobs import cancel_job, completing_one, enqueue_many, unpark
from postroom.store.people.audit import AuditEntry, Signature, auditing

# The undo of a snooze, or of several actions, puts the message back; as an action, that is adding its labels.


# How many later actions on a message are looked at, and how long an undo waits for theirs before it looks again.
_MOST_LATER = 100
_LOOK_AGAIN = timedelta(minutes=1)


class Undoable(NamedTuple):
    """An action that can be undone now."""

    id: UUID
    account_id: UUID
    message_id: UUID


@dataclass(frozen=True, slots=True)
class DoneAlike:
    """Actions that did the same to as many messages. `left_inbox` if these were in the inbox, and left it."""

    action_type: str
    parameters: Mapping[str, Any]
    left_inbox: bool
    count: int


@dataclass(frozen=True, slots=True)
class UndoChain:
    """Undos of actions on one message, the newest action first. Each begins when the one before has ended."""

    catalogue: Catalogue
    account_id: UUID
    action_ids: tuple[UUID, ...]
    priority: int = ASKED_PRIORITY

    def job(self) -> NewJob:
        """Return the job of the first; it starts the next."""
        return undo_job(self.catalogue, self.account_id, self.action_ids, self.priority)

    def rest(self) -> "UndoChain | None":
        return replace(self, action_ids=self.action_ids[1:]) if self.action_ids[1:] else None


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
    askers: Collection[str] | None = None,
    since: datetime = LONG_AGO,
    until: datetime = FAR_AHEAD,
    only_hiding: bool = False,
) -> Script[list[Undoable]]:
    """Actions that match all criteria, newest first. A rule has the name it had when it decided. `only_hiding`: those
    by which automation has hidden a message by itself. `askers` are those who asked for an action, as the audit log
    names them, or `model`.
    """
    texts = [None if id is None else str(id) for id in (account_id, batch_id)]
    named = None if askers is None else "".join(f"|{each}|" for each in askers)
    rows = yield sql("select_undoable", rule_name, *texts, only_hiding, named, since, until, most)
    return read_rows(Undoable, rows)


@query
def count_done(since: datetime, most: int) -> Script[list[DoneAlike]]:
    """Count the newest of the actions done since then that can be undone, by what they did."""
    rows = yield sql("count_done_since", since, most)
    return [DoneAlike(action, orjson.loads(parameters), bool(left), count) for action, parameters, left, count in rows]


@query
def has_decided(rule_name: str) -> Script[bool]:
    """Return whether a rule of this name has ever decided anything, even if it is gone."""
    return bool((yield sql("select_rule_decided", rule_name)))


@transaction
def begin_undo(job: Job, original_id: UUID, account_id: UUID, undo_id: UUID, now: datetime) -> Script[Undo | None]:
    """Create the record of the undo and its link to the original, before anything is changed; a retry finds both.

    `undo_id` is the id for a new record. None if the action is undone already. Raises Fatal, with the reason, if it
    cannot be undone, and Parked while a later change to the message is still to be undone.
    """
    yield from fence(job, may_be_canceled=True)
    if not (yield sql("lock_action", original_id)):
        raise Fatal(f"there is no action {original_id}")
    original = yield from load_action.script(original_id)
    if original.account_id != account_id:
        raise Fatal(f"action {original_id} belongs to another account than the job says")
    yield from check_paused.script(account_id)
    if (reason := why_not_undoable(original.action_type, original.state, original.undo_hint)) is not None:
        raise Fatal(f"action {original_id} cannot be undone: {reason}")
    undo = yield from _undo_of(original_id)
    if undo is not None and undo.state == "completed":
        return None
    yield from _wait_for_later_undos(original)
    if undo is not None:
        if not (yield sql("take_undo_over", undo.id, job.id, now)):
            raise Fatal("another undo runs")
        return Undo(undo.id, original, is_repeated=True)
    yield from _new_undo(job, original, undo_id, now)
    return Undo(undo_id, original)


class _UndoOf(NamedTuple):
    id: UUID
    state: ActionState
    job_id: UUID


def _undo_of(original_id: UUID) -> Script[_UndoOf | None]:
    return read_first(_UndoOf, (yield sql("select_undo_of", original_id)))


def _wait_for_later_undos(original: Action) -> Script[None]:
    """Raise Parked while the undo of a later action on the message is live: in another order the message would not be
    restored.
    """
    later = yield sql("select_done_after", original.id, _MOST_LATER)
    keys = [undo_key(original.account_id, as_uuid(id)) for (id,) in later]
    if keys and (yield sql("select_keys", keys)):
        raise Parked(_waiting(original.message_id), "a later change to this message is undone first", _LOOK_AGAIN)


def _waiting(message_id: UUID) -> str:
    """Return the key under which undos wait for one of a later action on the same message."""
    return f"undo:{message_id}"


def _new_undo(job: Job, original: Action, undo_id: UUID, now: datetime) -> Script[None]:
    request = Decision(
        original.id,
        original.account_id,
        original.message_id,
        "none",
        undo_type(original.action_type),
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
    next_undo: UndoChain | None,
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
    yield from continue_undos.script(undo, next_undo, now)


@transaction
def continue_undos(original: UUID, next_undo: UndoChain | None, now: datetime) -> Script[None]:
    """Go on with the other undos of a message, after the one of `original` has failed or was done before."""
    if next_undo is not None:
        yield from _enqueue_chains([next_undo], now)
    for (message_id,) in (yield sql("select_message_of_action", original)):
        yield from unpark.script(_waiting(as_uuid(message_id)), now)


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


class RequestedUndo(NamedTuple):
    """The undo that a request gets: its job, and its state, which is queued, executing or completed."""

    job_id: UUID
    state: ActionState


@transaction
def request_undo(
    chain: UndoChain, signed: Signature, now: datetime, hourly_cap: int | None = None
) -> Script[RequestedUndo]:
    """Begin the undo of one action, with an entry in the audit log, or return the one that was begun before.

    Raises Refused for a token that was revoked, and SafetyRefused if the signer has already undone as many actions
    within the hour as the cap allows.
    """
    (action_id,) = chain.action_ids
    if signed.is_token:
        yield sql("lock_asker", signed.actor)
        yield from refuse_revoked(signed)
    undo = yield from _undo_of(action_id)
    if undo is not None and undo.state == "completed":
        return RequestedUndo(undo.job_id, "completed")
    (accepted,) = yield from enqueue_many.script([chain.job()], now)
    if accepted.duplicate:
        return RequestedUndo(accepted.id, "executing" if undo is not None and undo.state == "executing" else "queued")
    if hourly_cap is not None and (yield sql("count_undone_by", signed.actor, now - HOUR))[0][0] >= hourly_cap:
        raise SafetyRefused(f"this agent has undone {hourly_cap} actions within the hour, which is the cap")
    yield from auditing(signed.under("action.undo", "action", str(action_id)), now)
    return RequestedUndo(accepted.id, "queued")


@transaction
def enqueue_undos(chains: Sequence[UndoChain], now: datetime, entry: AuditEntry | None = None) -> Script[int]:
    """Enqueue undos; return how many jobs were new. `entry` describes the whole request."""
    if entry is not None:
        yield from auditing(entry, now)
    return (yield from _enqueue_chains(chains, now))


def _enqueue_chains(chains: Sequence[UndoChain], now: datetime) -> Script[int]:
    """Enqueue them. Where the first undo of one was asked for before, the rest is enqueued by itself, and waits for it
    (`_wait_for_later_undos`).
    """
    new = 0
    open_chains: list[UndoChain] = list(chains)
    while open_chains:
        answers = yield from enqueue_many.script([chain.job() for chain in open_chains], now)
        new += sum(not each.duplicate for each in answers)
        rests: list[UndoChain | None] = [
            chain.rest() for chain, each in zip(open_chains, answers, strict=True) if each.duplicate
        ]
        open_chains = [rest for rest in rests if rest is not None]
    return new

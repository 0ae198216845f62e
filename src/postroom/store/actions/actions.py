"""Actions in progress: begun, their pre-image stored, completed with their job, or ended otherwise.

begin_action ──► keep_pre_image ──► (the mailbox is changed) ──► complete_action
     │                                                    └────► hand_over_action, when another job completes it
     ├── canceled if the message is protected by now: its job has ended
     └── parked during a pause, or when the hourly cap of irreversible actions is reached: the job waits
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from postroom.core.actions.action import Actor, RecordedType, action_hash
from postroom.core.actions.steps import is_irreversible
from postroom.core.actions.undo import ENDED_HALFWAY
from postroom.core.errors import Fatal, IllegalMove, NotFound, Parked
from postroom.core.jobs.job import Job, NewJob
from postroom.core.lifecycle import ActionState
from postroom.core.mail.mail_head import MailHead
from postroom.core.rules.rule import DecisionSource
from postroom.core.views import Internal, Untrusted
from postroom.store.actions.decisions import CHANNEL
from postroom.store.actions.pauses import check_paused
from postroom.store.actions.protection import protected_now
from postroom.store.engine.codecs import as_time, as_uuid, from_json, json_text
from postroom.store.engine.database import Notify, Rows, Script, Transaction, query, sql, transaction
from postroom.store.engine.reading import read_first, read_rows
from postroom.store.jobs.job_steps import fence
from postroom.store.jobs.jobs import completing_one, enqueue_many, retry_job, show_job, unpark
from postroom.store.mail.mail import sender_and_labels
from postroom.store.mail.unknown_labels import noticing_labels
from postroom.store.people.audit import TOKENS

HOUR = timedelta(hours=1)
FAR_AHEAD = datetime.fromisoformat("9000-01-01T00:00:00+00:00")
_CAP = "cap:"
_NO_ID = UUID(int=0)

Ending = Transaction[None]


@dataclass(frozen=True, slots=True)
class Action:
    """An action, as the executor needs it."""

    id: UUID
    account_id: UUID
    message_id: UUID
    provider_message_id: str
    action_type: RecordedType
    parameters: Mapping[str, Any]
    state: ActionState
    pre_image: Mapping[str, Any] | None
    undo_hint: Mapping[str, Any] | None
    actor: Actor
    asked_at: datetime | None = None
    """When a person last asked for it: an approval, a request, or the last change of the rule. None if nobody did."""


@query
def load_action(id: UUID) -> Script[Action]:
    action = read_first(Action, (yield sql("select_action", id)))
    if action is None:
        raise Fatal(f"there is no action {id}")
    return action


class LockedAction(NamedTuple):
    """An action that nobody else can change before the transaction ends."""

    account_id: UUID
    message_id: UUID
    actor: Actor
    action_type: RecordedType
    parameters: Mapping[str, Any]
    state: ActionState
    action_hash: str
    approved_by: str | None
    asked_by: str | None
    started_at: datetime | None
    undo_hint: Mapping[str, Any] | None
    error: str | None
    expires_at: datetime | None
    updated_at: datetime

    @property
    def stands(self) -> str:
        """The fingerprint of the action as it is now."""
        return action_hash(self.message_id, self.action_type, self.parameters)


def locking(id: UUID) -> Script[LockedAction | None]:
    """Part of a transaction."""
    return read_first(LockedAction, (yield sql("lock_action", id)))


@transaction
def begin_action(job: Job, id: UUID, hourly_cap: int, now: datetime) -> Script[str | None]:
    """Mark the action as executing, owned by this job. A retry of the same job may continue; another job may not.

    If the message has been protected since the decision, or the token that asked for it was revoked, the action is
    canceled, the job has ended, and the reason is returned. Raises Parked during a pause, or when the hourly cap of
    irreversible actions is reached.
    """
    yield from fence(job, may_be_canceled=True)
    action = yield from locking(id)
    if action is not None:
        if action.approved_by is not None and action.action_hash != action.stands:
            raise Fatal(f"action {id} is not what was approved: it was changed afterwards")
        yield from check_paused.script(action.account_id)
        if action.state in ENDED_HALFWAY:
            yield from _unless_undone(id)
        reason = (yield from withdrawn(action)) or (yield from _why_protected(action.account_id, action.message_id))
        if reason is not None:
            yield from _refuse(job, id, reason, now)
            return reason
        if action.started_at is None and is_irreversible(action.action_type, action.parameters):
            yield from _within_cap(action.account_id, hourly_cap, now)
    _require_own(id, (yield sql("begin_action", id, job.id, now)))
    return None


def _unless_undone(id: UUID) -> Script[None]:
    """Raise Fatal if the part that was done has been undone, or is being undone: an action is undone only once."""
    for _, state, _ in (yield sql("select_undo_of", id)):
        if state not in ENDED_HALFWAY:
            raise Fatal(f"action {id} was undone, and is not begun again; ask for it anew with `postroom do`")


def _require_own(id: UUID, rows: Rows) -> None:
    if not rows:
        raise Fatal(f"action {id} is not waiting to be executed, or belongs to another job")


def withdrawn(action: LockedAction) -> Script[str | None]:
    """Part of a transaction: why it must not go on: it was withdrawn with the token that asked for it, and no person
    approved it."""
    asker = action.asked_by or ""
    if action.approved_by is not None or not asker.startswith(TOKENS):
        return None
    revoked = yield sql("select_revoked_token", asker.removeprefix(TOKENS))
    return "the token that asked for it was revoked" if revoked else None


def _why_protected(account_id: UUID, message_id: UUID) -> Script[str | None]:
    """Why the stored message must not be touched; None if it may be."""
    protected = yield from protected_now(account_id)
    if not (protected.senders or protected.domains or protected.labels):
        return None
    sender, labels = yield from sender_and_labels(message_id)
    return protected.reason(sender, labels)


def _refuse(job: Job, id: UUID, reason: str, now: datetime, done: Mapping[str, Any] | None = None) -> Script[None]:
    """End the job and cancel the action with the reason. This is not a failure."""
    _require_own(id, (yield sql("refuse_action", id, job.id, reason, None if done is None else json_text(done), now)))
    yield from completing_one(job, now)
    yield Notify(CHANNEL, "canceled")


@transaction
def refuse_action(
    job: Job, id: UUID, reason: str, now: datetime, done: Mapping[str, Any] | None = None
) -> Script[None]:
    """Cancel an action whose request the gate refused because the mail is now protected. `done` is as in `fail_action`.

    An earlier attempt may already have hidden the message. If so, the job that brings it back runs now; a message that
    was snoozed before stays snoozed.
    """
    yield from fence(job, may_be_canceled=False)
    image = (yield from load_action.script(id)).pre_image or {}
    wake = image.get("unsnooze_job_id")
    if wake is not None and image.get("snooze_label_id") not in image["labels"]:
        with contextlib.suppress(IllegalMove, NotFound):
            yield from retry_job.script(UUID(wake), now)
    yield from _refuse(job, id, reason, now, done)


def _within_cap(account_id: UUID, hourly_cap: int, now: datetime) -> Script[None]:
    """Check the hourly cap. One check at a time per account, so that two actions are not both the last one allowed."""
    yield sql("lock_account", account_id)
    begun = yield sql("count_irreversible", account_id, now - HOUR)
    if begun[0][0] >= hourly_cap:
        reason = f"{hourly_cap} irreversible actions were begun within the hour; this one waits"
        raise Parked(f"{_CAP}{account_id}", reason)


@transaction
def release_capped(hourly_cap: int, now: datetime) -> Script[int]:
    """Resume the actions that waited for the hour to pass."""
    released = 0
    for (key,) in (yield sql("select_parking_keys", f"{_CAP}%")):
        begun = yield sql("count_irreversible", UUID(key.removeprefix(_CAP)), now - HOUR)
        if begun[0][0] < hourly_cap:
            released += yield from unpark.script(key, now)
    return released


@transaction
def keep_pre_image(
    job: Job,
    id: UUID,
    image: Mapping[str, Any],
    now: datetime,
    follow_ups: Sequence[NewJob] = (),
    planned: Mapping[str, Any] | None = None,
) -> Script[Mapping[str, Any]]:
    """Store what the message was before the action, and what the first attempt settled; stored once. Return it.

    `follow_ups` must run whatever becomes of the action, and are enqueued with it: hidden mail is brought back.
    `planned` is the undo hint for an action that may be done in part only.
    """
    yield from fence(job, may_be_canceled=True)
    action = yield from load_action.script(id)
    yield from check_paused.script(action.account_id)
    if action.pre_image is not None:
        return action.pre_image
    hint = None if planned is None else json_text(planned)
    if (yield sql("set_pre_image", id, json_text(image), hint, now)) and follow_ups:
        yield from enqueue_many.script(follow_ups, now)
    return image


class DoneChange(NamedTuple):
    """The change that an action has made: the labels of the message now, or None if it is gone for good; how to undo
    it; and its id in the mailbox, if the change gave it a new one.
    """

    labels: frozenset[str] | None
    undo_hint: Mapping[str, Any]
    moved_to: str | None = None


@transaction
def complete_action(job: Job, id: UUID, done: DoneChange, now: datetime) -> Script[None]:
    """Complete the action and its job, and update the message."""
    yield from completing_one(job, now)
    yield from completing_action(id, done, now)


def completing_action(id: UUID, done: DoneChange, now: datetime) -> Script[None]:
    """Part of a transaction."""
    yield from _storing_change(id, done, (yield sql("complete_action", id, json_text(done.undo_hint), now)), now)
    yield Notify(CHANNEL, "completed")


def _storing_change(id: UUID, done: DoneChange, rows: Rows, now: datetime) -> Script[None]:
    """Update the message of an action whose row has just been updated."""
    if not rows:
        raise Fatal(f"action {id} was ended while it ran; what it changed is in its pre-image")
    message_id, account_id = map(as_uuid, rows[0])
    yield from _now_placed(message_id, done.labels, done.moved_to, now)
    if done.labels is not None:
        yield from noticing_labels(account_id, done.labels, now)


def _now_placed(id: UUID, labels: frozenset[str] | None, moved_to: str | None, now: datetime) -> Script[None]:
    """Update the message from the mailbox's answer; without labels it is gone."""
    if labels is None:
        yield sql("mark_message_deleted", id, now)
    else:
        yield sql("update_message_labels", id, json_text(sorted(labels)), now)
    if moved_to is not None:
        yield sql("move_message", id, moved_to, now)


@query
def is_snoozed_again(id: UUID, now: datetime) -> Script[bool]:
    """Return whether the message of this snooze was snoozed again, until a time in the future."""
    rows = yield sql("select_snoozes_after", id)
    return any(datetime.fromisoformat(until) > now for (until,) in rows)


@query
def last_place(message_id: UUID) -> Script[str | None]:
    """Return where the last action on the message, or its undo, has left it; None if the mailbox has no copies."""
    rows = yield sql("select_last_place", message_id)
    return str(rows[0][0]) if rows else None


@query
def woke_during(id: UUID, now: datetime) -> Script[bool]:
    """Return whether the message was snoozed, and woke after this action had begun."""
    for image, began in (yield sql("select_snooze_before", id)):
        snooze = from_json(image)
        waking = yield from show_job.script(UUID(snooze["unsnooze_job_id"]))
        if waking is None:  # ended long ago, and already pruned
            return as_time(began) < datetime.fromisoformat(snooze["snooze_until"]) <= now
        return waking.finished_at is not None and waking.finished_at > as_time(began)
    return False


@transaction
def end_woken(
    job: Job, message_id: UUID | None, labels: frozenset[str] | None, now: datetime, moved_to: str | None = None
) -> Script[None]:
    """Update a woken message and end the job that woke it. Without labels, the message is gone.

    `message_id` is None if the message is not stored.
    """
    yield from completing_one(job, now)
    if message_id is None:
        return
    yield from _now_placed(message_id, labels, moved_to, now)
    yield Notify(CHANNEL, "awakened")


@transaction
def hand_over_action(
    job: Job, id: UUID, next_job: NewJob, now: datetime, done: DoneChange | None = None
) -> Script[None]:
    """End this job and pass the action to `next_job`, which is enqueued and owns it from now on.

    `done` is the part of the action that is done: it can be undone, whatever becomes of the rest.
    """
    yield from completing_one(job, now)
    if done is not None:
        rows = yield sql("keep_done_part", id, json_text(done.undo_hint), now)
        yield from _storing_change(id, done, rows, now)
    if not (yield sql("hand_action_over", id, job.id, next_job.id, now)):
        raise Fatal(f"action {id} was ended while it ran")
    yield from enqueue_many.script([next_job], now)


@transaction
def fail_action(job: Job, id: UUID, error: str, now: datetime, done: Mapping[str, Any] | None = None) -> Script[None]:
    """Mark the action as failed for good; the job ends by itself with the same reason. `done` is the undo hint for the
    part that was done, if it is known.
    """
    yield from fence(job, may_be_canceled=False)
    yield sql("fail_action", id, error, None if done is None else json_text(done), now)
    yield Notify(CHANNEL, "failed")


@transaction
def end_orphans(now: datetime) -> Script[int]:
    """End the actions whose job ended without them: canceled in the queue, or given up by the rescuer."""
    ended = yield sql("end_orphaned_actions", now)
    if ended:
        yield Notify(CHANNEL, "ended")
    return len(ended)


@dataclass(frozen=True, slots=True)
class ShownAction(MailHead):
    """An action as it is shown, with the head of its message."""

    id: UUID
    account_id: Internal[UUID]
    message_id: UUID
    actor: Actor
    asked_by: str | None
    agent: Annotated[str | None, "The name of the token that asked for it, if a token did and has one."]
    action_type: RecordedType
    parameters: Untrusted[Mapping[str, Any]]
    state: ActionState
    action_hash: str
    rationale: Untrusted[str]
    error: Internal[str | None]
    approved_by: str | None
    expires_at: datetime | None
    created_at: datetime
    rule_name: Untrusted[str | None]
    confidence: float | None


@dataclass(frozen=True, slots=True)
class ActionView(ShownAction):
    """An action in a list of actions. `undone` is the state of its undo, if there was one."""

    decision_id: UUID | None
    safety: Mapping[str, Any]
    undo_hint: Mapping[str, Any] | None
    executed_at: datetime | None
    source: DecisionSource | None
    undone: ActionState | None


@query
def list_actions(
    most: int,
    *,
    account_id: UUID | None = None,
    state: str | None = None,
    message_id: UUID | None = None,
    before: datetime = FAR_AHEAD,
    before_id: UUID = _NO_ID,
) -> Script[list[ActionView]]:
    """List actions, newest first; with `before_id`, also those of the same time with smaller ids."""
    account, place = None if account_id is None else str(account_id), (before, before_id, most)
    if message_id is None:
        rows = yield sql("select_actions", account, state, *place)
    else:
        rows = yield sql("select_actions_on", account, state, message_id, *place)
    return read_rows(ActionView, rows)

"""Actions that wait for approval: answered once, for exactly what was shown, and only while they still make sense.

approved_pending ──► queued     approved: the hash is the one that was shown, and that of the current row
                 ├─► rejected   by a person, who may take it back for some seconds: then it waits again
                 ├─► expired    nobody answered in time
                 └─► canceled   approved too late: the message or the account is gone, or is protected by now
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, cast
from uuid import UUID

from postroom.core.actions.action import Actor, RecordedType
from postroom.core.actions.safety import Policy, Proposed, Source, safety_ruling
from postroom.core.audited_actions import AuditedAction
from postroom.core.errors import Conflict, IllegalMove, NotFound, Refused
from postroom.core.jobs.job import NewJob
from postroom.core.lifecycle import ActionState
from postroom.core.mail.auto_reply import answer_goes_to
from postroom.core.queue.envelope import PolicyTier
from postroom.core.views import Internal, Untrusted
from postroom.store.actions.actions import LockedAction, ShownAction, locking, withdrawn
from postroom.store.actions.decisions import CHANNEL
from postroom.store.actions.protection import HOUR, restraints, safety_facts
from postroom.store.engine.codecs import as_time, as_uuid, from_json
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Notify, Rows, Script, query, sql, transaction
from postroom.store.engine.reading import read_row, read_rows
from postroom.store.jobs.job_builders import notices_job
from postroom.store.jobs.jobs import enqueue_many
from postroom.store.mail.mail import load_message
from postroom.store.people.audit import Signature, auditing

WAITING = "approved_pending"
# Only a person may answer. An agent asks, and can never answer itself.
APPROVERS = frozenset({"admin", "operator", "dashboard", "approver"})
LONGEST_REASON = 300
_NOBODY = "it was not approved in time"
MOST_COUNTED = 1_000
_MOST_CLOSINGS = 200
GRACE = timedelta(seconds=10)
"""How long a rejection can be taken back. Until then nothing follows from it."""
_SLACK = timedelta(seconds=5)
"""How far apart the clocks of two processes may be. After that, none of them takes the rejection back."""


@dataclass(frozen=True, slots=True)
class Approval(ShownAction):
    """An action that waits for an answer, or had one, with all that a person needs to decide."""

    account: str
    reasons: tuple[str, ...]
    answer_to: Internal[str]
    """Where a reply to the message would go: not always to its sender."""
    model: str | None
    policy_tier: PolicyTier | None = None
    snippet: Untrusted[str] = ""
    updated_at: Internal[datetime | None] = None

    @property
    def is_waiting(self) -> bool:
        return self.state == WAITING

    def may_be_taken_back(self, now: datetime) -> bool:
        """Whether it was rejected so lately that it may wait again."""
        return self._was_rejected_within(GRACE, now)

    def is_settled(self, now: datetime) -> bool:
        """Whether its answer is final, by the clock of every process."""
        return not self.is_waiting and not self._was_rejected_within(GRACE + _SLACK, now)

    def _was_rejected_within(self, span: timedelta, now: datetime) -> bool:
        at: datetime | None = self.updated_at
        return self.state == "rejected" and at is not None and _is_within(span, at, now)


class AnsweredApproval(NamedTuple):
    """The state of an action after an answer, and why, if that is not what was answered."""

    state: ActionState
    reason: str | None = None


class Notice(NamedTuple):
    """Where people were asked: the channel, and the channel's reference to the notice."""

    channel: str
    reference: str
    is_open: bool


@query
def list_waiting(most: int) -> Script[list[Approval]]:
    """List waiting approvals; those that expire first come first."""
    return _approvals((yield sql("select_waiting", most)))


@query
def list_waiting_after(place: Cursor, most: int) -> Script[list[Approval]]:
    """List the waiting approvals that expire after the one at this place."""
    return _approvals((yield sql("select_waiting_after", *place, most)))


@query
def list_answered(since: datetime, most: int) -> Script[list[Approval]]:
    """List the approvals that were answered or expired since then, newest first."""
    return _approvals((yield sql("select_answered_approvals", since, most)))


@query
def count_waiting() -> Script[int]:
    """Count the waiting approvals, up to MOST_COUNTED."""
    return (yield sql("count_asking", MOST_COUNTED))[0][0]


@query
def show_approval(id: UUID) -> Script[Approval]:
    rows = yield sql("select_approval", id)
    if not rows:
        raise NotFound(f"there is no action {id}; see `postroom approvals list`")
    return _approvals(rows)[0]


@transaction
def approve_action(
    id: UUID, expected_hash: str, job: NewJob, signed: Signature, now: datetime
) -> Script[AnsweredApproval]:
    """Queue the action with the job that executes it, or cancel it if it no longer makes sense.

    Raises Refused if the actor may not answer, IllegalMove if the action is not waiting, Conflict if it was changed.
    """
    action = yield from _lock_pending(id, signed)
    if _is_over(action, now):
        return (yield from ending_approval(id, "expired", _NOBODY, signed, now))
    _check_hash(action, expected_hash)
    reason = yield from _why_no_longer(action, now)
    if reason is not None:
        return (yield from ending_approval(id, "canceled", f"approved too late: {reason}", signed, now))
    yield sql("approve_action", id, job.id, signed.actor, now)
    yield from enqueue_many.script([job], now)
    after = {"state": "queued", "action_type": action.action_type, "action_hash": action.action_hash}
    entry = signed.under("approval.approve", "action", str(id), before={"state": WAITING}, after=after)
    yield from auditing(entry, now)
    yield Notify(CHANNEL, "approved")
    return AnsweredApproval("queued")


@transaction
def reject_action(id: UUID, signed: Signature, now: datetime) -> Script[AnsweredApproval]:
    """Reject the action. Raises Refused if the actor may not answer, IllegalMove if the action is not waiting."""
    action = yield from _lock_pending(id, signed)
    if _is_over(action, now):
        return (yield from ending_approval(id, "expired", _NOBODY, signed, now))
    reason = f": {signed.reason[:LONGEST_REASON]}" if signed.reason else ""
    return (yield from ending_approval(id, "rejected", f"rejected by {signed.actor}{reason}", signed, now))


@transaction
def take_back_rejection(id: UUID, signed: Signature, now: datetime) -> Script[None]:
    """Let a rejected action wait for an answer again, until GRACE after the rejection. Safe to repeat.

    Raises Refused if the actor may not answer, and IllegalMove if it is too late or makes no sense any more.
    """
    action = yield from _lock_for(signed, id)
    if action.state == WAITING:
        return
    reason = yield from _why_stays_rejected(action, now)
    if reason is not None:
        raise IllegalMove(f"the rejection cannot be taken back: {reason}; nothing was changed")
    yield sql("take_back_rejection", id, now)
    # While it was rejected, nobody was asked who had not been asked before.
    yield from enqueue_many.script([notices_job(signed.entry_id, action.account_id, id)], now)
    entry = signed.under(
        "approval.take_back", "action", str(id), before={"state": "rejected"}, after={"state": WAITING}
    )
    yield from auditing(entry, now)
    yield Notify(CHANNEL, "asked")


@transaction
def expire_approvals(now: datetime) -> Script[int]:
    """Expire approvals that nobody answered in time; they count as rejected."""
    ended = yield sql("expire_approvals", _NOBODY, now)
    if ended:
        yield Notify(CHANNEL, "expired")
    return len(ended)


@transaction
def take_slot(action_id: UUID, most: int, digest: NewJob, now: datetime) -> Script[bool]:
    """Return whether this action gets a notice of its own. At most `most` notices are sent per hour; beyond that the
    digest, which says how many wait, is enqueued.
    """
    yield sql("lock_asker", "approvals")
    yield sql("delete_old_slots", now - HOUR)
    yield sql("insert_slot", action_id, most, now)
    if (yield sql("select_slot", action_id)):
        return True
    yield from enqueue_many.script([digest], now)
    return False


class WaitingCount(NamedTuple):
    """How many actions of one type and one cause wait for an answer, and about mail of how many senders."""

    action_type: RecordedType
    actor: Actor
    agent: str | None
    number: int
    senders: int


@query
def count_without_notice() -> Script[list[WaitingCount]]:
    """Count the actions that wait for an answer without a notice, by type and cause; the most come first."""
    return read_rows(WaitingCount, (yield sql("count_without_notice")))


@transaction
def keep_notice(action_id: UUID, channel: str, reference: str, now: datetime) -> Script[bool]:
    """Record that people were asked in this channel. False if that was recorded already."""
    return bool((yield sql("insert_notice", action_id, channel, reference, now)))


@query
def notices_of(action_id: UUID) -> Script[list[Notice]]:
    rows = yield sql("select_notices", action_id)
    return read_rows(Notice, rows)


@transaction
def close_notice(action_id: UUID, channel: str, now: datetime) -> Script[bool]:
    """Mark the notice as closed: it shows the answer, or can no longer be reached. False if it was closed before."""
    return bool((yield sql("close_notice", action_id, channel, now)))


@transaction
def ask_to_close(seed: UUID, now: datetime) -> Script[int]:
    """Enqueue a job for each answered action with an open notice; no action has two such jobs at once. After a
    rejection it waits until nobody can take that back.

    The ids of new jobs derive from `seed`, a new id each time.
    """
    rows = yield sql("select_answered", _MOST_CLOSINGS)
    if not rows:
        return 0
    jobs = [
        notices_job(seed, as_uuid(account_id), as_uuid(id), _settled_at(state, min(as_time(at), now)))
        for id, account_id, state, at in rows
    ]
    enqueued = yield from enqueue_many.script(jobs, now)
    return sum(not each.duplicate for each in enqueued)


def _lock_pending(id: UUID, signed: Signature) -> Script[LockedAction]:
    """Part of a transaction: lock and return the action, if the signer may answer and the action waits for it."""
    action = yield from _lock_for(signed, id)
    if action.state != WAITING:
        approver, error = action.approved_by, action.error
        by = f"approved by {approver}" if approver is not None else error or "it needed no approval"
        raise IllegalMove(f"the action is not waiting for an answer any more: {by}; nothing was changed")
    return action


def _lock_for(signed: Signature, id: UUID) -> Script[LockedAction]:
    """Part of a transaction: lock and return the action, if the signer may answer."""
    signed.require_person("answer an approval")
    if signed.role not in APPROVERS:
        raise Refused(f"{signed.actor} is not a person; only people approve or reject actions")
    action = yield from locking(id)
    if action is None:
        raise NotFound(f"there is no action {id}; see `postroom approvals list`")
    return action


def _settled_at(state: ActionState, answered_at: datetime) -> datetime | None:
    """When nobody can take the answer back any more; None if at once."""
    return answered_at + GRACE + _SLACK if state == "rejected" else None


def _is_within(span: timedelta, rejected_at: datetime, now: datetime) -> bool:
    """Whether a rejection of this time is no older. One in the future was written by a wrong clock, and is."""
    return rejected_at - _SLACK <= now < rejected_at + span


def _why_stays_rejected(action: LockedAction, now: datetime) -> Script[str | None]:
    """Part of a transaction: why the action is not waiting again; None if it may."""
    if action.state != "rejected":
        return "the action is not rejected any more"
    if not _is_within(GRACE, action.updated_at, now):
        return f"that is possible for {GRACE.seconds} seconds only"
    if _is_over(action, now):
        return "it has expired meanwhile"
    if (yield sql("select_asked_since", action.message_id, action.action_hash, action.updated_at)):
        return "it was asked for again, or the message was decided about again"
    return (yield from withdrawn(action))


def _is_over(action: LockedAction, now: datetime) -> bool:
    return action.expires_at is not None and action.expires_at <= now


def _check_hash(action: LockedAction, expected_hash: str) -> None:
    if action.stands != action.action_hash:
        raise Conflict("action", "was changed after it was decided on", "reject it; it cannot be approved as it is")
    if expected_hash != action.action_hash:
        raise Conflict("action", "is not the one that was shown", "look at it again before you approve it")


def _why_no_longer(action: LockedAction, now: datetime) -> Script[str | None]:
    """Part of a transaction: why the action no longer makes sense; None if it does."""
    rows = yield sql("select_account_state", action.account_id)
    if not rows or rows[0][0] == "removed":
        return "the account was removed"
    message = yield from load_message.script(action.message_id)
    if message.is_gone:
        return "the message was deleted"
    found = yield from restraints.script(action.account_id, now)
    proposed = Proposed(action.action_type, action.parameters, 1.0, cast("Source", action.actor))
    ruling = safety_ruling(proposed, safety_facts(message, found), Policy())
    return "; ".join(ruling.reasons) if ruling.verdict == "refuse" else None


def ending_approval(
    id: UUID, state: ActionState, reason: str, signed: Signature, now: datetime
) -> Script[AnsweredApproval]:
    """Part of a transaction: end a waiting action without doing it, with its entry in the audit log."""
    yield sql("end_approval", id, state, reason, now)
    names: Mapping[str, AuditedAction] = {
        "rejected": "approval.reject",
        "expired": "approval.expire",
        "canceled": "approval.cancel",
    }
    entry = signed.under(names[state], "action", str(id), before={"state": WAITING}, after={"state": state})
    yield from auditing(entry, now)
    yield Notify(CHANNEL, state)
    return AnsweredApproval(state, reason)


def _approvals(rows: Rows) -> list[Approval]:
    """Read approvals. The reasons come from the safety result, the reply address from the headers."""
    return [
        read_row(
            Approval,
            row,
            reasons=tuple(from_json(row["safety_json"]).get("reasons", ())),
            answer_to=answer_goes_to(row["sender"], tuple(map(tuple, from_json(row["headers_json"])))),
        )
        for row in rows.by_name()
    ]

"""Unfinished requests of a token, withdrawn when the token is revoked.

A proposal that waits for approval ends as canceled, and so does an action that waits for its turn, with its job. One
that is being done at this moment is asked to stop: it ends at its next step, or has happened by then. The same holds
for undos that it asked for, but for those of its own actions: they take back what it did.
"""

import contextlib
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from postroom.core.counted import counted
from postroom.core.errors import IllegalMove, NotFound, Refused
from postroom.core.lifecycle import ActionState
from postroom.store.actions.approvals import ending_approval
from postroom.store.actions.decisions import CHANNEL
from postroom.store.engine.codecs import as_uuid
from postroom.store.engine.database import Notify, Script, sql
from postroom.store.engine.ids import new_id
from postroom.store.engine.reading import read_rows
from postroom.store.jobs.job_builders import undo_key
from postroom.store.jobs.jobs import cancel_job
from postroom.store.outbound.outbound_answers import cancel_mail
from postroom.store.people.audit import TOKENS, Signature


class WithdrawnWork(NamedTuple):
    """How many proposals no longer wait for approval, how many queued actions are canceled, and how many that had begun
    stop at their next step."""

    withdrawn: int = 0
    canceled: int = 0
    stopping: int = 0

    def in_words(self) -> str:
        """Say it in a sentence; an empty text if there was nothing."""
        parts = [
            f"{counted(self.withdrawn, 'waiting approval')} withdrawn",
            f"{counted(self.canceled, 'queued action')} canceled",
            f"{counted(self.stopping, 'action')} had begun and may still be done",
        ]
        return ", ".join(part for part, count in zip(parts, self, strict=True) if count)


class OpenAction(NamedTuple):
    """An action that has not ended."""

    id: UUID
    account_id: UUID
    state: ActionState
    job_id: UUID | None


def actor_of(token_id: UUID) -> str:
    """The name of a token's holder in actions and in the audit log."""
    return f"{TOKENS}{token_id}"


def refuse_revoked(signed: Signature) -> Script[None]:
    """Part of a transaction that has locked the requester: raise Refused if its token was revoked meanwhile."""
    if signed.is_token and (yield sql("select_revoked_token", signed.actor.removeprefix(TOKENS))):
        raise Refused("this token was revoked")


def withdrawing(token_id: UUID, reason: str, signed: Signature, now: datetime) -> Script[WithdrawnWork]:
    """Part of a transaction: withdraw everything that the holder of the token asked for and that is not done."""
    actor = actor_of(token_id)
    yield sql("lock_asker", actor)
    withdrawn = canceled = stopping = 0
    for action in read_rows(OpenAction, (yield sql("select_open_actions_of", actor))):
        if action.state == "approved_pending":
            own = signed._replace(entry_id=new_id())
            yield from ending_approval(action.id, "canceled", reason, own, now)
            withdrawn += 1
        elif (yield from canceling(action, reason, signed, now)):
            canceled += 1
        else:
            stopping += 1
    for outcome in (yield from _cancel_undos(actor, reason, now)):
        canceled += outcome == "canceled"
        stopping += outcome != "canceled"
    if withdrawn or canceled:
        yield Notify(CHANNEL, "canceled")
    return WithdrawnWork(withdrawn, canceled, stopping)


def _cancel_undos(actor: str, reason: str, now: datetime) -> Script[list[str]]:
    """Part of a transaction: cancel the undos that this one asked for and that have not ended. Undos of its own actions
    go on: they take back what it did."""
    asked = {
        undo_key(as_uuid(account_id), as_uuid(action_id)): undo_id
        for account_id, action_id, undo_id in (yield sql("select_undos_asked_by", actor))
    }
    outcomes: list[str] = []
    for key, job_id in (yield sql("select_keys", list(asked))) if asked else ():
        with contextlib.suppress(IllegalMove, NotFound):
            outcomes.append((yield from cancel_job.script(as_uuid(job_id), now)))
            if outcomes[-1] == "canceled" and asked[key] is not None:
                yield sql("cancel_action", as_uuid(asked[key]), reason, now)
    return outcomes


def canceling(action: OpenAction, reason: str, signed: Signature, now: datetime) -> Script[bool]:
    """Part of a transaction: cancel an action that waits for its turn. False if it has begun and was asked to stop."""
    for (mail_id,) in (yield sql("select_open_mail_of_action", action.account_id, action.id)):
        own = signed._replace(entry_id=new_id(), reason=reason)
        return (yield from cancel_mail.script(as_uuid(mail_id), own, now)) == "canceled"
    outcome = "canceled"
    if action.job_id is not None:
        with contextlib.suppress(IllegalMove, NotFound):
            outcome = yield from cancel_job.script(action.job_id, now)
    if outcome == "canceled":
        yield sql("cancel_action", action.id, reason, now)
    return outcome == "canceled"

"""Requested actions that have not ended: each once, and only a limited number at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.hiding import HidingCaps
from postroom.core.actions.steps import shown
from postroom.core.errors import BadInput, SafetyRefused
from postroom.core.jobs.job import NewJob
from postroom.core.lifecycle import ActionState
from postroom.store.actions.decisions import Decision, NewAction, ask_for_action, why_no_more_hidden
from postroom.store.actions.protection import HOUR
from postroom.store.actions.token_work import refuse_revoked
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.engine.reading import read_rows
from postroom.store.people.audit import Signature


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """An action that waits for approval or for its turn. `safety` says why."""

    id: UUID
    state: ActionState
    action_hash: str
    safety: Mapping[str, Any]


class Recorded(NamedTuple):
    """A decision, its action, and the job that carries it out or notifies people that it waits."""

    request: Decision
    action: NewAction
    follow_up: NewJob


class AgentCap(NamedTuple):
    """How many actions one requester may have done within an hour, and the same request for approval beyond that."""

    most: int
    beyond: Recorded


@transaction
def ask_once(
    wanted: Recorded,
    most: int,
    signed: Signature,
    now: datetime,
    cap: AgentCap | None = None,
    hiding: HidingCaps | None = None,
) -> Script[OpenRequest | None]:
    """Request the action. If the requester already has the same one open, return that; else None.

    The requests of one requester are recorded one after another, so that of several at the same time only one is the
    first, or the last one allowed. Raises BadInput if `most` are open. Beyond the cap the action is recorded for
    approval, and returned. Raises SafetyRefused if it would hide more than the caps on hiding allow.
    """
    request, action, follow_up = wanted
    yield sql("lock_asker", action.asked_by)
    yield from refuse_revoked(signed)
    opened = read_rows(OpenRequest, (yield sql("select_open_wishes", action.asked_by, most)))
    for each in opened:
        if each.action_hash == action.action_hash:
            return each
    if len(opened) >= most:
        problem = f"there are {most} of your proposals still open"
        raise BadInput("mail.propose_action", problem, "wait until some have ended; actions.list shows them")
    if cap is not None and (yield sql("count_done_for", action.asked_by, now - HOUR))[0][0] >= cap.most:
        request, action, follow_up = cap.beyond
        yield from ask_for_action.script(request, action, follow_up, now, signed)
        return OpenRequest(action.id, action.state, action.action_hash, request.safety or {})
    if action.hides and hiding is not None:
        reason = yield from why_no_more_hidden(request.account_id, request.message_id, hiding, now)
        if reason is not None:
            done = shown(request.action_type, request.parameters)
            raise SafetyRefused(f"{done} is not done: {reason}", (reason,))
    yield from ask_for_action.script(request, action, follow_up, now, signed)
    return None

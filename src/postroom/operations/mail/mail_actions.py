"""Actions that a person takes on stored mail: request them, and wait for their outcome."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.actions.steps import Step, combined, is_irreversible, read_steps
from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import NotFound
from postroom.core.jobs.types import CATALOGUE
from postroom.core.lifecycle import ACTION, ActionState
from postroom.core.short_ids import short_id
from postroom.core.views import Internal, Untrusted
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_ids import find_message
from postroom.store.actions.actions import ActionView, list_actions
from postroom.store.actions.decisions import CHANNEL
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.triage.act.action_requests import ActionRequests
from postroom.words import actions as action_words

PATIENCE = timedelta(seconds=30)
LOOK_S = 0.5
WHY = "requested by a person"
MOST_ACTIONS = 100
_SPAN = re.compile(r"snooze (\d{1,5}) ?(m|h|d|w|minutes?|hours?|days?|weeks?)")
_UNITS = {"m": ("minutes", 1), "h": ("hours", 1), "d": ("days", 1), "w": ("days", 7)}


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """How far a requested action has got, in words; `undo_id` names it to `postroom undo`, if it can be undone."""

    action_id: UUID
    message_id: UUID
    state: ActionState
    what: Untrusted[str]
    undo_id: Internal[str | None]


def read_actions(texts: Sequence[str]) -> tuple[Step, ...]:
    """Read actions as people type them: `archive`, `apply_label Receipts`, `snooze 3d`. Raise BadInput."""
    return read_steps([_item(text) for text in texts])


def cannot_be_undone(steps: Sequence[Step]) -> bool:
    return is_irreversible(*combined(steps))


def in_words(steps: Sequence[Step]) -> str:
    return action_words.asked(*combined(steps))


async def request_action(by: Caller, message: str, steps: Sequence[Step], policy: Policy) -> ActionOutcome:
    """Request the actions, as one, on the message with this id of any kind.

    Raise NotFound, BadInput, or SafetyRefused with the reasons.
    """
    message_id = await find_message(by.database, message, "--message")
    requests = ActionRequests(by.database, CATALOGUE, policy, by.clock)
    action_type, parameters = combined(steps)
    asked = await requests.ask(
        message_id, action_type, parameters, source="user", asked_by=by.signature.actor, why=WHY, signed=by.signature
    )
    return _outcome(await _load(by.database, message_id, asked.action_id))


async def wait_for_outcome(
    database: Database, requested: ActionOutcome, patience: timedelta = PATIENCE
) -> ActionOutcome:
    """Wait until the action has ended, at most this long; return how far it has got."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()
    deadline = loop.time() + patience.total_seconds()
    subscription = database.subscribe(CHANNEL, lambda _message: changed.set())
    try:
        while True:
            changed.clear()
            view = await _load(database, requested.message_id, requested.action_id)
            left = deadline - loop.time()
            if view.state in ACTION.terminal or view.state == "failed" or left <= 0:
                return _outcome(view)
            await signalled(changed, min(left, LOOK_S))
    finally:
        subscription.close()


async def _load(database: Database, message_id: UUID, action_id: UUID) -> ActionView:
    for view in await database.run(list_actions(MOST_ACTIONS, message_id=message_id)):
        if view.id == action_id:
            return view
    raise NotFound(f"there is no action {action_id}")


def _outcome(view: ActionView) -> ActionOutcome:
    can_be_undone = why_not_undoable(view.action_type, view.state, view.undo_hint) is None
    undo_id = short_id(view.id) if can_be_undone else None
    return ActionOutcome(view.id, view.message_id, view.state, _what(view), undo_id)


def _what(view: ActionView) -> str:
    done = action_words.done(view.action_type, view.parameters)
    match view.state:
        case "completed" if (view.undo_hint or {}).get("no_op"):
            return f"nothing had to be changed: it was {done} already"
        case "completed":
            return done
        case "queued" | "executing":
            return f"queued: it will be {done}"
        case "failed":
            return f"not {done}: {view.error}"
        case state:
            return f"not {done}: {view.error or state}"


def _item(text: str) -> Any:
    """The action as rules have it; a snooze gets its time from the text."""
    text = " ".join(text.split())
    if span := _SPAN.fullmatch(text):
        units, times = _UNITS[span[2][0]]
        return {"snooze": {"amount": int(span[1]) * times, "units": units}}
    name, _, until = text.partition(" ")
    return {"snooze": {"until": until}} if name == "snooze" and until else text

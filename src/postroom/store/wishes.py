"""What somebody has asked for and nobody has ended yet: once each, and only so much of it at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.jobs import NewJob
from postroom.store.audit import Signature
from postroom.store.codecs import as_uuid, from_json
from postroom.store.database import Script, sql, transaction
from postroom.store.decisions import Decision, NewAction, ask_for_action


@dataclass(frozen=True, slots=True)
class OpenWish:
    """An action that waits for a yes, or for its turn. `safety` says why."""

    id: UUID
    state: str
    action_hash: str
    safety: Mapping[str, Any]


@transaction
def ask_once(
    wish: Decision, action: NewAction, follow_up: NewJob | None, most: int, signed: Signature, now: datetime
) -> Script[OpenWish | None]:
    """Asks for the action unless the same asker has it open already: then that one is returned, else None.

    The wishes of one asker are recorded one after another, so that of several at once only one is the first, or the
    last one allowed. Raises BadInput when `most` are open.
    """
    yield sql("lock_asker", action.asked_by)
    opened = yield sql("select_open_wishes", action.asked_by, most)
    for id, state, hashed, safety in opened:
        if hashed == action.action_hash:
            return OpenWish(as_uuid(id), state, hashed, from_json(safety))
    if len(opened) >= most:
        problem = f"there are {most} of your proposals that nobody has answered or carried out yet"
        raise BadInput("mail.propose_action", problem, "wait until some are; actions.list shows them")
    yield from ask_for_action.script(wish, action, follow_up, now, signed)
    return None

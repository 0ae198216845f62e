"""A person calls a decision wrong: what it did is taken back, and a rule that would have prevented it is proposed."""

from dataclasses import dataclass
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.views import Untrusted
from postroom.operations.actions.undo import check_action, undo_action
from postroom.operations.mail.mail_ids import find_message
from postroom.operations.people.audit import Signature, next_entry
from postroom.store.actions.actions import list_actions
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.rules.outcomes import record_mistake

MOST_ACTIONS = 100


@dataclass(frozen=True, slots=True)
class Correction:
    """The action that is taken back, and the name of the proposed rule, if one could be made."""

    action_id: UUID
    proposed: Untrusted[str | None]


async def undo_and_learn(
    database: Database, action_id: UUID, signed: Signature, clock: Clock = wall_clock
) -> Correction:
    """Take the action back, and learn from it. Raise NotFound, or BadInput with the reason why that cannot be done.

    After a crash between the two, it may be asked for again: what was learned is not learned twice.
    """
    await check_action(database, action_id)
    message_id = await find_message(database, str(action_id))
    done = await database.run(list_actions(MOST_ACTIONS, message_id=message_id))
    decision_id = next((each.decision_id for each in done if each.id == action_id), None)
    if decision_id is None:
        raise BadInput("action", "was asked for, not decided, so there is nothing to learn", "undo it instead")
    proposed = await database.run(record_mistake(decision_id, message_id, signed, clock()))
    await undo_action(database, action_id, next_entry(signed), clock)
    return Correction(action_id, proposed)

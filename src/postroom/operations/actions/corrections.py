"""A person calls a decision wrong: what it did is taken back, and a rule that would have prevented it is proposed."""

from dataclasses import dataclass
from uuid import UUID

from postroom.core.errors import BadInput
from postroom.core.views import Untrusted
from postroom.operations.actions.undo import check_action, undo_action
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_ids import find_message
from postroom.store.actions.actions import list_actions
from postroom.store.rules.outcomes import record_mistake

MOST_ACTIONS = 100


@dataclass(frozen=True, slots=True)
class Correction:
    """The action that is taken back, and the name of the proposed rule, if one could be made."""

    action_id: UUID
    proposed: Untrusted[str | None]


async def undo_and_learn(by: Caller, action_id: UUID) -> Correction:
    """Take the action back, and learn from it. Raise NotFound, or BadInput with the reason why that cannot be done.

    After a crash between the two, it may be asked for again: what was learned is not learned twice.
    """
    await check_action(by.database, action_id)
    message_id = await find_message(by.database, str(action_id))
    done = await by.run(list_actions(MOST_ACTIONS, message_id=message_id))
    decision_id = next((each.decision_id for each in done if each.id == action_id), None)
    if decision_id is None:
        raise BadInput("action", "was asked for, not decided, so there is nothing to learn", "undo it instead")
    proposed = await by.run(record_mistake(decision_id, message_id, by.signature, by.clock()))
    await undo_action(by.again(), action_id)
    return Correction(action_id, proposed)

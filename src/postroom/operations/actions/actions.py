"""Actions that are done, waiting or failed, and why each was decided."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated
from uuid import UUID

from postroom.core.access import READ
from postroom.core.lifecycle import ActionState
from postroom.operations.mail.mail_ids import message_typed_as
from postroom.operations.nouns import MAIL
from postroom.operations.operation import Argument, Limit, command
from postroom.store.actions import actions as store
from postroom.store.actions.actions import ActionView as ActionView
from postroom.store.actions.decisions import DecisionView, decisions_about
from postroom.store.engine.database import Database
from postroom.store.rules.outcomes import OutcomeView, outcomes_of
from postroom.words.states import state_of

MOST_EXPLAINED = 100
COLUMNS = ("id", "action_type", "became", "actor", "rule_name", "sender", "subject", "created_at", "error")


@dataclass(frozen=True, slots=True)
class ExplainedDecision:
    """A decision, and what the user did about the message in the mailbox, if anything."""

    view: DecisionView
    answer: OutcomeView | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A decision about a message, and the action that followed."""

    decisions: Sequence[ExplainedDecision]
    actions: Sequence[ActionView]


def _row(view: ActionView) -> Mapping[str, object]:
    return {**asdict(view), "became": state_of(view.state, view.undone)[0]}


@MAIL.operation(READ, command("actions list", *COLUMNS, row=_row))
async def list_actions(
    database: Database,
    /,
    state: Annotated[ActionState | None, Argument("Only actions in this state, such as failed.")] = None,
    limit: Limit = 50,
) -> list[ActionView]:
    """List actions, newest first."""
    return await database.run(store.list_actions(limit, state=state))


@MAIL.operation(READ, command("actions explain {message}"))
async def explain(
    database: Database, /, message: Annotated[UUID, Argument("The id of the message."), message_typed_as("MESSAGE")]
) -> Explanation:
    """Explain a message: what was decided, by whom and why, what was done, and what you did yourself in the mailbox."""
    decided = await database.run(decisions_about(message))
    done = await database.run(store.list_actions(MOST_EXPLAINED, message_id=message))
    answers = {each.decision_id: each for each in await database.run(outcomes_of(message))}
    return Explanation([ExplainedDecision(each, answers.get(each.decision.id)) for each in decided], done)

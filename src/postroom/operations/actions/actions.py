"""Actions that are done, waiting or failed, and why each was decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from postroom.store.actions import actions as store
from postroom.store.actions.actions import ActionView
from postroom.store.actions.decisions import DecisionView, decisions_about
from postroom.store.engine.database import Database
from postroom.store.rules.outcomes import OutcomeView, outcomes_of

__all__ = ["ActionView", "ExplainedDecision", "Explanation", "explain", "list_actions"]

MOST_EXPLAINED = 100


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


async def list_actions(database: Database, limit: int, state: str | None = None) -> list[ActionView]:
    """List the actions in one state, or all of them, newest first."""
    return await database.run(store.list_actions(limit, state=state))


async def explain(database: Database, message_id: UUID) -> Explanation:
    decided = await database.run(decisions_about(message_id))
    done = await database.run(store.list_actions(MOST_EXPLAINED, message_id=message_id))
    answers = {each.decision_id: each for each in await database.run(outcomes_of(message_id))}
    return Explanation([ExplainedDecision(each, answers.get(each.decision.id)) for each in decided], done)

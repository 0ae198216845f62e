"""Rules that Postroom proposes from what the user does by hand: list, accept or dismiss them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple
from uuid import UUID

from postroom.core.access import OPERATE, READ
from postroom.core.lifecycle import ProposalState
from postroom.core.rules.in_words import conditions_in_words
from postroom.core.views import Done, Untrusted
from postroom.operations.caller import Caller
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, command, flow, get, post
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules import proposals as store
from postroom.store.rules.proposals import ProposalView as ProposalView
from postroom.words.actions import rule_does

MOST_SHOWN = 20
ProposalId = Annotated[UUID, Argument("The id of the proposal.")]


class AcceptedProposal(NamedTuple):
    """The proposal, and the name of the rule created from it."""

    proposal: ProposalView
    rule: str


@dataclass(frozen=True, slots=True)
class ProposalLine:
    """A proposed rule in words, and why it is proposed."""

    id: UUID
    name: Untrusted[str]
    account: str
    when: Untrusted[str]
    does: Untrusted[str]
    because: str
    at: datetime


@RULES.operation(READ, get("/rules/proposals"))
async def read_proposals(database: Database, /) -> list[ProposalLine]:
    """The newest rules that Postroom proposes from what the owner did by hand."""
    return [
        ProposalLine(
            each.id,
            each.draft.name,
            each.account,
            conditions_in_words(each.draft.conditions),
            rule_does(each.draft.action_type, each.draft.parameters),
            _because(each.evidence),
            each.updated_at,
        )
        for each in await list_proposals(database, "open", MOST_SHOWN)
    ]


def _because(evidence: Mapping[str, Any]) -> str:
    count = int(evidence.get("count", 0))
    times = "once" if count == 1 else f"{count:,} times"
    return f"you took it back {times}" if evidence.get("kind") == "taken_back" else f"you did it by hand {times}"


async def list_proposals(database: Database, state: ProposalState | None, limit: int) -> list[ProposalView]:
    """List the proposals in one state, or all of them, newest first."""
    return await database.run(store.list_proposals(state, limit))


async def load_proposal(database: Database, id: UUID) -> ProposalView:
    return await database.run(store.load_proposal(id))


async def accept(by: Caller, id: UUID, *, active: bool) -> AcceptedProposal:
    """Create the rule, in shadow unless `active`."""
    return AcceptedProposal(*await by.run(store.accept_proposal(id, new_id(), not active, by.signature, by.clock())))


@RULES.operation(OPERATE, post("/rules/proposals/{proposal}/accept"), flow("/rules/proposals/{proposal}/accept"))
async def accept_proposal(
    by: Caller,
    /,
    proposal: ProposalId,
    active: Annotated[bool, Argument("Let it act at once; otherwise it begins in shadow.")] = False,
) -> Done:
    """Make a rule of a proposal, in shadow unless `active`."""
    await accept(by, proposal, active=active)
    return Done("The proposal is a rule now." if active else "The proposal is a rule now, in shadow.")


@RULES.operation(
    OPERATE,
    post("/rules/proposals/{proposal}/dismiss"),
    flow("/rules/proposals/{proposal}/dismiss"),
    command("proposals dismiss {proposal}"),
    signs=True,
)
async def dismiss_proposal(by: Caller, /, proposal: ProposalId) -> Done:
    """Dismiss a proposal: it is not made again."""
    await by.run(store.dismiss_proposal(proposal, by.signature, by.clock()))
    return Done("Dismissed; this rule is not proposed again.")

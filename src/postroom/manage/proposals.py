"""Rules that Postroom proposes from what the user does by hand: list, accept or dismiss them."""

from typing import NamedTuple
from uuid import UUID

from postroom.core.lifecycle import ProposalState
from postroom.store import proposals as store
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.proposals import ProposalView

__all__ = ["AcceptedProposal", "ProposalState", "ProposalView", "accept", "dismiss", "list_proposals", "load_proposal"]


class AcceptedProposal(NamedTuple):
    """The proposal, and the name of the rule created from it."""

    proposal: ProposalView
    rule: str


async def list_proposals(database: Database, state: ProposalState | None, limit: int) -> list[ProposalView]:
    """List the proposals in one state, or all of them, newest first."""
    return await database.run(store.list_proposals(state, limit))


async def load_proposal(database: Database, id: UUID) -> ProposalView:
    return await database.run(store.load_proposal(id))


async def accept(
    database: Database, id: UUID, signed: Signature, *, active: bool, clock: Clock = wall_clock
) -> AcceptedProposal:
    """Create the rule, in shadow unless `active`."""
    return AcceptedProposal(*await database.run(store.accept_proposal(id, new_id(), not active, signed, clock())))


async def dismiss(database: Database, id: UUID, signed: Signature, clock: Clock = wall_clock) -> ProposalView:
    """Dismiss a proposal for good."""
    return await database.run(store.dismiss_proposal(id, signed, clock()))

"""Actions that wait for approval, and the answers to them."""

from uuid import UUID

from postroom.act.approval_notice import notice_of
from postroom.act.approvals import Approvals, in_words
from postroom.core.errors import IllegalMove
from postroom.core.jobs.types import CATALOGUE
from postroom.store import approvals as store
from postroom.store.approvals import AnsweredApproval, Approval
from postroom.store.audit import Signature
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database

__all__ = ["AnsweredApproval", "Approval", "approve", "in_words", "list_waiting", "notice_of", "reject", "show"]


async def list_waiting(database: Database, limit: int) -> list[Approval]:
    """List actions that wait for approval, those that expire first at the top."""
    return await database.run(store.list_waiting(limit))


async def show(database: Database, id: UUID) -> Approval:
    return await database.run(store.show_approval(id))


async def approve(
    database: Database, shown: Approval, signed: Signature, clock: Clock = wall_clock
) -> AnsweredApproval:
    """Approve the action as it was shown. Raise IllegalMove if the answer comes too late."""
    answered = await Approvals(database, CATALOGUE, clock).approve(shown.id, shown.action_hash, signed)
    return _counted(shown.id, answered)


async def reject(database: Database, id: UUID, signed: Signature, clock: Clock = wall_clock) -> AnsweredApproval:
    """End the action without doing it. Raise IllegalMove if the answer comes too late."""
    return _counted(id, await database.run(store.reject_action(id, signed, clock())))


def _counted(id: UUID, answered: AnsweredApproval) -> AnsweredApproval:
    """Raise for an answer that came too late: it failed for the person who gave it, though the action has ended."""
    if answered.state not in ("queued", "rejected"):
        raise IllegalMove(f"action {id}: {in_words(answered)}")
    return answered

"""What waits for the user's yes, and the answers."""

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
    """What expires first stands first."""
    return await database.run(store.list_waiting(limit))


async def show(database: Database, id: UUID) -> Approval:
    return await database.run(store.show_approval(id))


async def approve(
    database: Database, shown: Approval, signed: Signature, clock: Clock = wall_clock
) -> AnsweredApproval:
    """Has the action done that was shown. Raises IllegalMove when the answer could not count any more."""
    answered = await Approvals(database, CATALOGUE, clock).approve(shown.id, shown.action_hash, signed)
    return _counted(shown.id, answered)


async def reject(database: Database, id: UUID, signed: Signature, clock: Clock = wall_clock) -> AnsweredApproval:
    """Ends the action without doing it. Raises IllegalMove when the answer could not count any more."""
    return _counted(id, await database.run(store.reject_action(id, signed, clock())))


def _counted(id: UUID, answered: AnsweredApproval) -> AnsweredApproval:
    """An answer that came too late is a failure for whoever gave it, though it has ended the action."""
    if answered.state not in ("queued", "rejected"):
        raise IllegalMove(f"action {id}: {in_words(answered)}")
    return answered

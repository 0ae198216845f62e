"""Answers to actions that wait for a person's yes, and the channels by which people are asked."""

from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from postroom.core.errors import Conflict, IllegalMove
from postroom.core.jobs.types import Catalogue
from postroom.store import approvals as store
from postroom.store.approvals import AnsweredApproval, Approval, ChannelName
from postroom.store.audit import AuditEntry, Signature, record_audit
from postroom.store.engine.clock import Clock
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.job_builders import action_job

Verdict = Literal["approve", "reject"]
# The role of those who answer through a channel, as the audit log names it.
APPROVER = "approver"
SHORTEST_HASH = 16


class Channel(Protocol):
    """A way to ask people. What fails raises a JobError: Retryable, or Fatal for what no retry mends."""

    @property
    def name(self) -> ChannelName: ...

    async def post(self, approval: Approval, *, again: bool) -> str:
        """Asks, and says what the channel calls the notice. `again`: an earlier attempt may have got through."""
        ...

    async def post_digest(self, id: UUID, text: str) -> None:
        """Tells how many actions wait beyond those that were asked about one by one. The same id is the same digest."""
        ...

    async def close(self, approval: Approval, reference: str) -> None:
        """The notice shows the answer and asks no more. One that is gone needs no closing."""
        ...


@dataclass(frozen=True, slots=True)
class Approvals:
    """Takes answers. Whoever signs must be a person: the store refuses agents."""

    database: Database
    catalogue: Catalogue
    clock: Clock

    async def show(self, id: UUID) -> Approval:
        return await self.database.run(store.show_approval(id))

    async def approve(self, id: UUID, shown_hash: str, signed: Signature) -> AnsweredApproval:
        """`shown_hash` is the hash of the action that the person saw, or its beginning. Raises Conflict when it is not
        the action's, IllegalMove when it does not wait any more, NotFound when there is none.
        """
        approval = await self.show(id)
        if len(shown_hash) < SHORTEST_HASH or not approval.action_hash.startswith(shown_hash):
            raise Conflict("action", "is not the one that was shown", "look at it again before you approve it")
        job = action_job(self.catalogue, approval.account_id, approval.id)
        return await self.database.run(store.approve_action(id, approval.action_hash, job, signed, self.clock()))

    async def reject(self, id: UUID, signed: Signature) -> AnsweredApproval:
        return await self.database.run(store.reject_action(id, signed, self.clock()))

    async def answer(self, verdict: Verdict, id: UUID, shown_hash: str, signed: Signature) -> AnsweredApproval:
        """An answer that came through a channel; one that does not count is written down before the error is raised."""
        try:
            match verdict:
                case "approve":
                    return await self.approve(id, shown_hash, signed)
                case "reject":
                    return await self.reject(id, signed)
        except (Conflict, IllegalMove) as error:
            await self.note_refusal(signed.actor, str(id), str(error))
            raise

    async def note_refusal(self, actor: str, id: str, reason: str) -> None:
        """Somebody tried to answer and may not, or not with this."""
        entry = AuditEntry(new_id(), actor, "none", "approval.refused", "action", id, reason=reason)
        await self.database.run(record_audit(entry, self.clock()))


def in_words(answered: AnsweredApproval) -> str:
    """The outcome for whoever answered."""
    match answered.state:
        case "queued":
            return "Approved: it is being done."
        case "rejected":
            return "Rejected: it is not done."
        case "expired":
            return "Too late: it has expired, and is not done."
        case state:
            return f"Not done: {answered.reason or state}."

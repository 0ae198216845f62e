"""Answers to actions that wait for approval, and the channels through which people are asked."""

from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from postroom.core.errors import Conflict, IllegalMove
from postroom.core.jobs.types import Catalogue
from postroom.store.actions import approvals as store
from postroom.store.actions.approvals import AnsweredApproval, Approval
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.jobs.job_builders import action_job
from postroom.store.people.audit import AuditEntry, Signature, record_audit
from postroom.system.wall_clock import Clock

Verdict = Literal["approve", "reject"]
# The role of people who answer through a channel, in the audit log.
APPROVER = "approver"
SHORTEST_HASH = 16


class Channel(Protocol):
    """A way to ask people. A failure raises a JobError: Retryable, or Fatal if no retry helps."""

    @property
    def name(self) -> str: ...

    async def post(self, approval: Approval, *, again: bool) -> str:
        """Ask, and return the channel's id of the notice. `again`: an earlier attempt may have got through."""
        ...

    async def post_digest(self, id: UUID, text: str) -> None:
        """Say how many actions wait without a notice of their own. The same id is the same digest."""
        ...

    async def close(self, approval: Approval, reference: str) -> None:
        """Show the answer in the notice, which then asks no more. A deleted notice needs no closing."""
        ...


@dataclass(frozen=True, slots=True)
class Approvals:
    """Accept answers. The signer must be a person: the store refuses agents."""

    database: Database
    catalogue: Catalogue
    clock: Clock

    async def show(self, id: UUID) -> Approval:
        return await self.database.run(store.show_approval(id))

    async def approve(self, id: UUID, shown_hash: str, signed: Signature) -> AnsweredApproval:
        """Approve. `shown_hash` is the hash of the action that the person saw, or its beginning. Raise Conflict if the
        action has another hash, IllegalMove if it no longer waits, NotFound if there is none.
        """
        approval = await self.show(id)
        if len(shown_hash) < SHORTEST_HASH or not approval.action_hash.startswith(shown_hash):
            raise Conflict("action", "has changed since it was shown", "look at it again before you approve it")
        job = action_job(self.catalogue, approval.account_id, approval.id)
        return await self.database.run(store.approve_action(id, approval.action_hash, job, signed, self.clock()))

    async def reject(self, id: UUID, signed: Signature) -> AnsweredApproval:
        return await self.database.run(store.reject_action(id, signed, self.clock()))

    async def answer(self, verdict: Verdict, id: UUID, shown_hash: str, signed: Signature) -> AnsweredApproval:
        """Accept an answer from a channel; one that does not count is audited before the error is raised."""
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
        """Audit an answer by someone who may not answer, or not in this way."""
        entry = AuditEntry(new_id(), actor, "none", "approval.refused", "action", id, reason=reason)
        await self.database.run(record_audit(entry, self.clock()))


def in_words(answered: AnsweredApproval) -> str:
    """Describe the outcome to the person who answered."""
    match answered.state:
        case "queued":
            return "Approved: it is being done."
        case "rejected":
            return "Rejected: it is not done."
        case "expired":
            return "Too late: it has expired and is not done."
        case state:
            return f"Not done: {answered.reason or state}."

"""An action that waits, the job that asks for its approval, and both channels, on one database and one clock."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from postroom.core.jobs.job import Job
from postroom.core.jobs.types import CATALOGUE
from postroom.jobs.run import JobRun
from postroom.store.actions import approvals
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.people.audit import Signature, list_audit
from postroom.triage.act.approvals import Approvals, Channel
from postroom.triage.handlers.approval_notify import HOURLY, ApprovalNotify
from support.gates import LASTING
from support.store.fault_cases_approvals import pending
from support.store.job_setup import JobSetup

__all__ = ["ApprovalSetup", "pending"]


class ApprovalSetup(JobSetup):
    """A setup with short names for what approvals need."""

    @property
    def answers(self) -> Approvals:
        return Approvals(self.database, CATALOGUE, self.clock)

    async def shown(self, id: UUID) -> approvals.Approval:
        return await self.database.run(approvals.show_approval(id))

    async def state(self, id: UUID) -> str:
        return (await self.shown(id)).state

    async def reject(self, id: UUID) -> None:
        """Reject the action for good: the time to take that back is over."""
        await self.answers.reject(id, Signature(new_id(), "cli:ada", "admin"))
        self.clock.forward(15)

    async def notify(
        self, id: UUID, channels: Sequence[Channel], *, attempts: int = 1, most: int = 5, hourly: int = HOURLY
    ) -> None:
        """The job runs, once, as if it were that attempt. Raises what it raised."""
        payload = {"account_id": str((await self.shown(id)).account_id), "action_id": str(id)}
        job = new_job(CATALOGUE, "approval.notify", payload, max_attempts=most)
        await self.database.run(jobs.enqueue_many([job], self.clock()))
        claimed = next(each for each in await self.claim() if each.id == job.id)
        await self.run_notify(claimed._replace(attempts=attempts), channels, hourly)

    async def run_notify(self, job: Job, channels: Sequence[Channel], hourly: int = HOURLY) -> None:
        run = JobRun(job, self.database, self.clock, LASTING)
        await ApprovalNotify(self.database, channels, self.clock, hourly)(run)

    async def notices(self, id: UUID) -> list[approvals.Notice]:
        return await self.database.run(approvals.notices_of(id))

    async def refused(self) -> list[tuple[str, str, str | None]]:
        """Who tried to answer what, and why it did not count."""
        entries = await self.database.run(list_audit(20, action="approval.refused"))
        return [(entry.actor, entry.object_id, entry.reason) for entry in entries]


class Broken:
    """A channel that always fails in the same way."""

    def __init__(self, error: Exception) -> None:
        self.name: Any = "webhook"
        self._error = error

    async def post(self, approval: approvals.Approval, *, again: bool) -> str:
        raise self._error

    async def post_digest(self, id: UUID, text: str) -> None:
        raise self._error

    async def close(self, approval: approvals.Approval, reference: str) -> None:
        raise self._error

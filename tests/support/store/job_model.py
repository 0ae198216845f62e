"""What the job engine is to do, as simply as it can be said: plain objects in memory, no database, no races.

The property tests run the same moves on this and on a real database and compare.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from postroom.core.jobs.job import Job, JobView, NewJob
from postroom.core.lifecycle import JOB


@dataclass
class ModelJob:
    """One job."""

    order: int
    asked: NewJob
    not_before: datetime | None
    ready: bool
    state: str = "queued"
    attempts: int = 0
    owner: UUID | None = None
    cancel_requested: bool = False
    parked_by: str | None = None
    finished_at: datetime | None = None

    @property
    def is_live(self) -> bool:
        return self.state not in JOB.terminal

    def agrees_with(self, shown: JobView) -> bool:
        return (
            self.state,
            self.attempts,
            self.cancel_requested,
            self.parked_by,
            self.not_before,
            self.finished_at,
        ) == (
            shown.state,
            shown.attempts,
            shown.cancel_requested,
            shown.parked_by,
            shown.not_before,
            shown.finished_at,
        )

    def has_ended_before(self, moment: datetime) -> bool:
        return self.finished_at is not None and self.finished_at < moment

    def is_owned_by(self, claim: Job) -> bool:
        return self.state == "running" and (self.owner, self.attempts) == (claim.token, claim.attempts)


@dataclass
class Model:
    """All jobs, keys and leases."""

    jobs: dict[UUID, ModelJob] = field(default_factory=dict[UUID, ModelJob])
    keys: dict[str, UUID] = field(default_factory=dict[str, UUID])
    leases: dict[UUID, datetime] = field(default_factory=dict[UUID, datetime])
    accepted: int = 0

    def enqueue(self, asked: NewJob, now: datetime) -> tuple[UUID, bool]:
        if asked.key is not None:
            if asked.key in self.keys:
                return self.keys[asked.key], True
            self.keys[asked.key] = asked.id
        ready = asked.not_before is None or asked.not_before <= now
        self.accepted += 1
        self.jobs[asked.id] = ModelJob(self.accepted, asked, asked.not_before, ready)
        return asked.id, False

    def claim(self, token: UUID, most: int) -> list[ModelJob]:
        if token not in self.leases:
            return []
        waiting = [job for job in self.jobs.values() if job.state == "queued" and job.ready]
        taken = sorted(waiting, key=lambda job: (-job.asked.priority, job.order))[:most]
        for job in taken:
            job.state, job.owner, job.attempts = "running", token, job.attempts + 1
        return taken

    def end(self, job: ModelJob, state: str, now: datetime) -> None:
        job.state, job.owner, job.finished_at = state, None, now
        job.cancel_requested, job.parked_by = False, None
        asked = job.asked
        if asked.releases_key and asked.key is not None and self.keys.get(asked.key) == asked.id:
            del self.keys[asked.key]

    def requeue(self, job: ModelJob, now: datetime, *, ready: bool, used: bool = True) -> None:
        """Back in the queue; one that was to be canceled while it ran ends there."""
        job.state, job.owner, job.ready = "queued", None, ready
        job.attempts -= 0 if used else 1
        if job.cancel_requested:
            self.end(job, "canceled", now)

    def wake(self, now: datetime) -> int:
        due = [
            job
            for job in self.jobs.values()
            if job.state == "queued" and not job.ready and job.not_before is not None and job.not_before <= now
        ]
        for job in due:
            job.ready = True
        return len(due)

    def take_over(self, token: UUID, now: datetime) -> tuple[int, int]:
        """Requeued and ended, as a rescue counts them."""
        del self.leases[token]
        held = [job for job in self.jobs.values() if job.owner == token]
        ended = [job for job in held if job.cancel_requested or job.attempts >= job.asked.max_attempts]
        for job in held:
            if job in ended:
                self.end(job, "canceled" if job.cancel_requested else "failed", now)
            else:
                self.requeue(job, now, ready=True)
        return len(held) - len(ended), len(ended)

    def hasten(self, job: ModelJob) -> None:
        if not job.ready:
            job.ready, job.not_before, job.parked_by = True, None, None

    def revive(self, job: ModelJob) -> bool:
        """False when another live job holds its key."""
        asked = job.asked
        if asked.releases_key and asked.key is not None:
            if asked.key in self.keys:
                return False
            self.keys[asked.key] = asked.id
        job.state, job.ready, job.attempts = "queued", True, 0
        job.not_before, job.cancel_requested, job.finished_at = None, False, None
        return True

    def live_holders(self) -> Iterator[str]:
        """The key of each live job that has one."""
        return (job.asked.key for job in self.jobs.values() if job.is_live and job.asked.key is not None)

"""Jobs as the queue, its workers and its handlers see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.lifecycle import JobState
from postroom.core.views import Internal, Untrusted


class NewJob(NamedTuple):
    """A checked job that is about to be enqueued; its fields are in the order of the columns."""

    id: UUID
    type: str
    payload_json: str
    priority: int
    max_attempts: int
    key: str | None
    releases_key: bool
    traceparent: str | None
    not_before: datetime | None


class Enqueued(NamedTuple):
    """The answer to an enqueue: the id of the job, and whether it existed before."""

    id: UUID
    duplicate: bool


class Claim(NamedTuple):
    """Proof that a job is ours: every change to claimed work names all three."""

    seq: int
    attempts: int
    token: UUID


class Job(NamedTuple):
    """A claimed job, as a handler gets it."""

    seq: int
    id: UUID
    type: str
    payload: Mapping[str, Any]
    priority: int
    attempts: int
    max_attempts: int
    releases_key: bool
    traceparent: str | None
    token: UUID

    @property
    def claim(self) -> Claim:
        return Claim(self.seq, self.attempts, self.token)

    @property
    def is_last_attempt(self) -> bool:
        return self.attempts >= self.max_attempts


@dataclass(frozen=True, slots=True)
class StepView:
    """One recorded step of a job, or an event in its life, such as a rescue."""

    name: str
    attempt: int
    started_at: datetime
    finished_at: datetime | None
    result_json: str | None
    kind: str = "step"


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as it is shown."""

    id: UUID
    type: str
    state: JobState
    priority: Internal[int]
    attempts: int
    max_attempts: int
    payload_json: Internal[str]
    idempotency_key: Internal[str | None]
    not_before: datetime | None
    last_error: Untrusted[str | None]
    heartbeat_at: Internal[datetime | None]
    created_at: datetime
    updated_at: Internal[datetime]
    finished_at: datetime | None
    cancel_requested: bool
    parked_by: str | None
    steps: Internal[Sequence[StepView]] = ()

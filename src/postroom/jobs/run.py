"""One attempt at one job, as its handler sees it."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

from postroom.core.actions.permits import HeldLease, Permit
from postroom.core.errors import Canceled
from postroom.core.jobs.job import Job, StepView
from postroom.store.engine.codecs import from_json
from postroom.store.engine.database import Database, Transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs.job_steps import begin_step, finish_step, steps_of
from postroom.system.wall_clock import Clock

T = TypeVar("T")


class JobRun:
    """The job, its steps, and the way to end it together with its effects."""

    __slots__ = ("_clock", "_database", "_steps", "cancel_requested", "ended", "job", "lease")

    def __init__(self, job: Job, database: Database, clock: Clock, lease: HeldLease) -> None:
        self.job = job
        self.lease = lease
        self.ended = False
        self.cancel_requested = False
        self._database = database
        self._clock = clock
        self._steps: list[StepView] | None = None

    def permit(self, account_id: UUID, action_id: UUID | None = None, *, gives_back: bool = False) -> Permit:
        """The permit under which this attempt may change a mailbox."""
        return Permit(account_id, self.lease, self.job.claim, None, action_id, gives_back)

    async def step(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do the work once, however often the job is tried: a step that has finished gives its recorded result.

        Raises Canceled when the user asked for that, LeaseLost when another worker has taken over.
        """
        for step in await self._recorded_steps():
            if step.name == name and step.finished_at is not None:
                return from_json(step.result_json or "null")
        self.check_canceled()
        id = new_id()
        await self._database.run(begin_step(self.job, id, name, self._clock()))
        result = await work()
        await self._database.run(finish_step(self.job, id, result, self._clock()))
        return result

    async def was_interrupted(self, name: str) -> bool:
        """Whether an earlier attempt began this step and never finished it: its effect may or may not be there."""
        return any(step.name == name and step.finished_at is None for step in await self._recorded_steps())

    async def complete(self, transaction: Transaction[T]) -> T:
        """Run the handler's last transaction, which also completes the job (`completing_one`)."""
        result = await self._database.run(transaction)
        self.ended = True
        return result

    def check_canceled(self) -> None:
        if self.cancel_requested:
            raise Canceled(f"job {self.job.id} was canceled on request")

    async def _recorded_steps(self) -> list[StepView]:
        """The steps that earlier attempts recorded."""
        if self._steps is None:
            recorded = await self._database.run(steps_of(self.job.id))
            self._steps = [step for step in recorded if step.kind == "step"]
        return self._steps


Handler = Callable[[JobRun], Awaitable[None]]

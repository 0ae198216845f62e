"""Apply moves to a database and to the model; answers and visible states must agree."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

from postroom.core.errors import Canceled, IllegalMove, LeaseLost, NotFound
from postroom.core.jobs.job import Job, NewJob
from postroom.core.lifecycle import JOB
from postroom.jobs.rescue import Rescuer
from postroom.store.engine.ids import new_id
from postroom.store.jobs import job_steps
from postroom.store.jobs import jobs as store
from support.store.job_model import Model, ModelJob
from support.store.job_setup import LEASE, JobSetup

T = TypeVar("T")

# How often each move is made, about. The first is the simplest.
WEIGHTS = {
    "pass_time": 3,
    "enqueue": 8,
    "claim": 8,
    "finish": 6,
    "end": 7,
    "retry_later": 6,
    "park": 2,
    "release": 4,
    "begin_step": 2,
    "heartbeat": 3,
    "crash": 2,
    "rescue": 3,
    "wake": 5,
    "cancel": 3,
    "retry": 3,
    "unpark": 2,
    "leave": 1,
    "prune": 1,
}
MOVES = [name for name, weight in WEIGHTS.items() for _ in range(weight)]
PRIORITIES = (0, 0, -1, 7)
DELAYS = (None, None, None, -5, 5, 40)
KEYS = (None, None, "a", "b", "c")


def _choose(options: Sequence[T], number: int) -> T:
    return options[number % len(options)]


class Interpreter:
    """One program under way."""

    def __init__(self, setup: JobSetup) -> None:
        self.setup = setup
        self.model = Model()
        self.trace: list[str] = []
        self._leases: list[UUID] = []
        self._claims: list[Job] = []
        self._ids: list[UUID] = []

    async def do(self, move: str, a: int, b: int) -> None:
        """Makes the move, unless there is nothing to make it with, and looks at everything."""
        if len(self._leases) < 2:
            await self._open_lease()
        self.trace.append(f"{move} {a} {b}")
        await getattr(self, f"_{move}")(a, b)
        await self._check()

    async def drain(self) -> None:
        """Everything that was accepted comes to one end."""
        self.trace.append("drain")
        self.setup.clock.forward(100)
        await Rescuer(self.setup.database, self.setup.clock).tick()
        for key in ("x", "y"):
            await self.setup.unpark(key)
        await self.setup.wake_due(10_000)
        token = await self.setup.open_lease()
        while jobs := await self.setup.claim(1000, token):
            assert await self.setup.finish(*jobs) == {job.seq for job in jobs}
        shown = await self.setup.database.run(store.list_jobs(limit=10_000))
        assert {job.id for job in shown} == set(self.model.jobs)
        assert len(shown) == len(self.model.jobs)
        assert all(job.state in JOB.terminal for job in shown)

    # what producers do

    async def _enqueue(self, a: int, b: int) -> None:
        asked = [self._new(a + 7 * n, b + 11 * n) for n in range(1 + a % 3)]
        answers = await self.setup.accept(*asked)
        assert answers == [self.model.enqueue(job, self.setup.clock()) for job in asked]
        self._ids += [answer.id for answer in answers]

    def _new(self, a: int, b: int) -> NewJob:
        delay = _choose(DELAYS, b // 5)
        return self.setup.new(
            _choose(("plain", "sync"), b),
            key=_choose(KEYS, a // 3),
            priority=_choose(PRIORITIES, b // 2),
            not_before=None if delay is None else self.setup.clock() + timedelta(seconds=delay),
            max_attempts=1 + a % 4,
        )

    # what workers do

    async def _open_lease(self) -> UUID:
        token = await self.setup.open_lease()
        self.model.leases[token] = self.setup.clock() + LEASE
        self._leases.append(token)
        return token

    async def _claim(self, a: int, b: int) -> None:
        await self._claim_under(_choose(self._leases, a), 1 + b % 4)

    async def _claim_under(self, token: UUID, most: int) -> None:
        claimed = await self.setup.claim(most, token)
        expected = self.model.claim(token, most)
        assert [job.id for job in claimed] == [job.asked.id for job in expected]
        assert [(job.attempts, job.token) for job in claimed] == [(job.attempts, token) for job in expected]
        assert all(job.not_before is None or job.not_before <= self.setup.clock() for job in expected)
        self._claims += claimed

    async def _heartbeat(self, a: int, b: int) -> None:
        token, now = _choose(self._leases, a), self.setup.clock()
        held = {claim.id: claim.seq for claim in self._claims if claim.token == token and self._is_ours(claim)}
        pulse = await self.setup.database.run(store.heartbeat(token, now, now + LEASE, list(held.values())))
        assert pulse.alive == (token in self.model.leases)
        if pulse.alive:
            self.model.leases[token] = now + LEASE
        assert pulse.canceled == {seq for id, seq in held.items() if self.model.jobs[id].cancel_requested}

    async def _leave(self, a: int, b: int) -> None:
        token = _choose(self._leases, a)
        await self.setup.database.run(store.close_lease(token, self.setup.clock()))
        if token in self.model.leases:
            self.model.take_over(token, self.setup.clock())
        self._leases.remove(token)

    async def _crash(self, a: int, b: int) -> None:
        """All workers are silent for too long; new ones take over. The old ones do not know it yet."""
        self.setup.clock.forward(61)
        await self._rescue(a, b)
        self._leases.clear()
        await self._claim_under(await self._open_lease(), 1 + b % 4)

    async def _finish(self, a: int, b: int) -> None:
        claims = list({claim.claim: claim for claim in (self._pick(a), self._pick(b)) if claim is not None}.values())
        ours = [claim for claim in claims if self._is_ours(claim)]
        assert await self.setup.finish(*claims) == {claim.seq for claim in ours}
        for claim in ours:
            self.model.end(self.model.jobs[claim.id], "completed", self.setup.clock())

    async def _end(self, a: int, b: int) -> None:
        if (claim := self._pick(a)) is None:
            return
        state = _choose(("failed", "canceled"), b)
        ended = await (self.setup.fail(claim) if state == "failed" else self.setup.cancel_claimed(claim))
        if job := self._if_ours(claim, ended):
            self.model.end(job, state, self.setup.clock())

    async def _retry_later(self, a: int, b: int) -> None:
        """Back after a failed attempt, and often claimed again at once by the same worker."""
        claim = self._pick(a)
        if claim is None or claim.is_last_attempt:
            return  # at the last attempt, a worker fails the job
        seconds = _choose((0, 0, 0, 5, 40), b)
        if job := self._if_ours(claim, await self.setup.retry_later(claim, seconds)):
            job.not_before = self.setup.clock() + timedelta(seconds=seconds)
            self.model.requeue(job, self.setup.clock(), ready=False)
        if seconds == 0:
            await self._wake(a, b)
            await self._claim_under(claim.token, 4)

    async def _park(self, a: int, b: int) -> None:
        if (claim := self._pick(a)) is None:
            return
        key = _choose(("x", "y"), b)
        if job := self._if_ours(claim, await self.setup.park(claim, key)):
            job.not_before, job.parked_by = None, key
            self.model.requeue(job, self.setup.clock(), ready=False, used=False)

    async def _release(self, a: int, b: int) -> None:
        """Given back, and often claimed by another at once."""
        if (claim := self._pick(a)) is None:
            return
        if job := self._if_ours(claim, bool(await self.setup.release(claim))):
            self.model.requeue(job, self.setup.clock(), ready=True, used=False)
        if b % 2:
            await self._claim(b, b)

    async def _begin_step(self, a: int, b: int) -> None:
        if (claim := self._pick(a)) is None:
            return
        try:
            await self.setup.database.run(job_steps.begin_step(claim, new_id(), "step", self.setup.clock()))
            answer = "begun"
        except LeaseLost:
            answer = "lost"
        except Canceled:
            answer = "canceled"
        if not self._is_ours(claim):
            assert answer == "lost"
        else:
            assert answer == ("canceled" if self.model.jobs[claim.id].cancel_requested else "begun")

    # what people do

    async def _cancel(self, a: int, b: int) -> None:
        if not self._ids:
            return
        id = _choose(self._ids, a)
        job = self.model.jobs.get(id)
        try:
            answer = await self.setup.cancel(id)
        except (IllegalMove, NotFound) as refusal:
            answer = type(refusal).__name__
        if job is None:
            assert answer == "NotFound"
        elif not job.is_live:
            assert answer == "IllegalMove"
        elif job.state == "running":
            assert answer == "requested"
            job.cancel_requested = True
        else:
            assert answer == "canceled"
            self.model.end(job, "canceled", self.setup.clock())

    async def _retry(self, a: int, b: int) -> None:
        if not self._ids:
            return
        id = _choose(self._ids, a)
        job = self.model.jobs.get(id)
        try:
            await self.setup.retry(id)
            answer = "done"
        except (IllegalMove, NotFound) as refusal:
            answer = type(refusal).__name__
        if job is None:
            assert answer == "NotFound"
        elif job.state == "queued":
            assert answer == "done"
            self.model.hasten(job)
        elif job.state in ("running", "completed"):
            assert answer == "IllegalMove"
        else:
            assert (answer == "done") == self.model.revive(job)

    async def _unpark(self, a: int, b: int) -> None:
        key = _choose(("x", "y"), a)
        parked = [job for job in self.model.jobs.values() if job.parked_by == key]
        assert await self.setup.unpark(key) == len(parked)
        for job in parked:
            job.ready, job.parked_by = True, None

    # what time and the leader do

    async def _pass_time(self, a: int, b: int) -> None:
        self.setup.clock.forward(_choose((1, 5, 20, 61), a))

    async def _rescue(self, a: int, b: int) -> None:
        now = self.setup.clock()
        dead = [token for token, until in self.model.leases.items() if until < now]
        outcomes = [self.model.take_over(token, now) for token in dead]
        expected = (len(dead), sum(back for back, _ in outcomes), sum(over for _, over in outcomes))
        assert await Rescuer(self.setup.database, self.setup.clock).tick() == expected

    async def _wake(self, a: int, b: int) -> None:
        assert await self.setup.wake_due() == self.model.wake(self.setup.clock())

    async def _prune(self, a: int, b: int) -> None:
        state, now = _choose(sorted(JOB.terminal), a), self.setup.clock()
        old = [id for id, job in self.model.jobs.items() if job.state == state and job.has_ended_before(now)]
        assert await self.setup.database.run(store.prune(state, now, 1000)) == len(old)
        for id in old:
            del self.model.jobs[id]

    # what holds at all times

    async def _check(self) -> None:
        shown = await self.setup.database.run(store.list_jobs(limit=10_000))
        in_order = sorted(self.model.jobs.values(), key=lambda job: -job.order)
        assert [job.id for job in shown] == [job.asked.id for job in in_order]
        for ours, theirs in zip(shown, in_order, strict=True):
            assert theirs.agrees_with(ours), f"{ours} is not {theirs}"
            assert 0 <= ours.attempts <= ours.max_attempts
            assert (ours.heartbeat_at is not None) == (ours.state == "running"), "an owner is a live lease"
        holders = list(self.model.live_holders())
        assert len(holders) == len(set(holders)), "a key has two live jobs"

    def _pick(self, number: int) -> Job | None:
        """One of the latest claims, whether it still is the owner's or not."""
        return _choose(self._claims[-6:], number) if self._claims else None

    def _is_ours(self, claim: Job) -> bool:
        job = self.model.jobs.get(claim.id)
        return job is not None and job.is_owned_by(claim)

    def _if_ours(self, claim: Job, answer: bool) -> ModelJob | None:
        """The database accepts a claim exactly if it still is the owner's; then the model has to follow."""
        assert answer == self._is_ours(claim)
        return self.model.jobs[claim.id] if answer else None

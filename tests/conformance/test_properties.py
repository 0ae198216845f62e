"""Random interleavings of everything that can happen to jobs, on both databases, against a model in memory.

They keep: a job is owned by at most one live lease; a stale owner changes nothing; every accepted job ends in exactly
one terminal state; attempts never exceed the maximum; nothing is claimed before its time; claims come in order; a key
admits no second live job.
"""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from conformance.desk import LEASE, Desk
from conformance.dump import clear
from conformance.model import Model, ModelJob
from conftest import ManualClock
from postroom.core.errors import Canceled, IllegalMove, LeaseLost, NotFound
from postroom.core.jobs import Job
from postroom.core.lifecycle import JOB
from postroom.store import job_steps
from postroom.store import jobs as store
from postroom.store.ids import new_id
from postroom.store.opening import open_database

STEPS = 60


class Engine(RuleBasedStateMachine):
    """Every move on the database and on the model; the answers and what is then visible must agree."""

    runner: ClassVar[asyncio.Runner]
    desk: ClassVar[Desk]

    leases = Bundle[UUID]("leases")
    claims = Bundle[Job]("claims")
    jobs = Bundle[UUID]("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.desk.clock.now = ManualClock().now
        self.wait(clear(self.desk.database))

    @property
    def now(self) -> Any:
        return self.desk.clock()

    def wait(self, answer: Any) -> Any:
        return self.runner.run(answer)

    def do(self, transaction: Any) -> Any:
        return self.runner.run(self.desk.database.run(transaction))

    # what producers do

    @rule(
        target=jobs,
        type=st.sampled_from(["plain", "sync"]),
        key=st.sampled_from([None, None, "a", "b", "c"]),
        priority=st.sampled_from([-1, 0, 0, 7]),
        delay=st.sampled_from([None, None, -5, 5, 40]),
        attempts=st.integers(1, 3),
    )
    def enqueue(self, type: str, key: str | None, priority: int, delay: int | None, attempts: int) -> UUID:
        not_before = None if delay is None else self.now + timedelta(seconds=delay)
        asked = self.desk.new(type, key=key, priority=priority, not_before=not_before, max_attempts=attempts)
        (answer,) = self.do(store.enqueue_many([asked], self.now))
        assert answer == self.model.enqueue(asked, self.now)
        return answer.id

    # what workers do

    @rule(target=leases)
    def open_lease(self) -> UUID:
        return self._open_lease()

    def _open_lease(self) -> UUID:
        token = self.wait(self.desk.open_lease())
        self.model.leases[token] = self.now + LEASE
        return token

    @rule(target=claims, token=leases, most=st.integers(1, 4))
    def claim(self, token: UUID, most: int) -> Any:
        return multiple(*self._claim(token, most))

    def _claim(self, token: UUID, most: int) -> list[Job]:
        claimed: list[Job] = self.wait(self.desk.claim(most, token))
        expected = self.model.claim(token, most)
        assert [job.id for job in claimed] == [job.asked.id for job in expected]
        assert [(job.attempts, job.token) for job in claimed] == [(job.attempts, token) for job in expected]
        assert all(job.not_before is None or job.not_before <= self.now for job in expected)
        return claimed

    @rule(target=claims, first=leases, second=leases)
    def hand_over(self, first: UUID, second: UUID) -> Any:
        """Claimed, given back, and claimed by the other: the attempt is the same, only the lease differs."""
        claimed = self._claim(first, 2)
        for claim in claimed:
            self.release(claim)
        return multiple(*claimed, *self._claim(second, 2))

    @rule(target=claims, token=leases)
    def try_twice(self, token: UUID) -> Any:
        """Claimed, failed, woken and claimed again by the same: the lease is the same, only the attempt differs."""
        claimed = self._claim(token, 2)
        for claim in claimed:
            self.retry_later(claim, 0)
        self.wake()
        return multiple(*claimed, *self._claim(token, 2))

    @rule(target=claims, token=leases, most=st.integers(1, 4))
    def crash(self, token: UUID, most: int) -> Any:
        """Claimed by a worker that is then silent for too long, and claimed by a new one."""
        claimed = self._claim(token, most)
        self.time_passes(61)
        self.rescue()
        return multiple(*claimed, *self._claim(self._open_lease(), most))

    @rule(token=leases)
    def heartbeat(self, token: UUID) -> None:
        held = {job.id: job.seq for job in self._held_by(token)}
        pulse = self.do(store.heartbeat(token, self.now, self.now + LEASE, list(held.values())))
        assert pulse.alive == (token in self.model.leases)
        if pulse.alive:
            self.model.leases[token] = self.now + LEASE
        asked_to_stop = {job.asked.id for job in self.model.jobs.values() if job.cancel_requested}
        assert pulse.canceled == {seq for id, seq in held.items() if id in asked_to_stop}

    @rule(token=leases)
    def leave(self, token: UUID) -> None:
        self.do(store.close_lease(token, self.now))
        if token in self.model.leases:
            self.model.take_over(token, self.now)

    @rule(claims=st.lists(claims, min_size=1, max_size=3, unique_by=lambda each: each.claim))
    def finish(self, claims: list[Job]) -> None:
        ours = [claim for claim in claims if self._is_ours(claim)]
        assert self.wait(self.desk.finish(*claims)) == {claim.seq for claim in ours}
        for claim in ours:
            self.model.end(self.model.jobs[claim.id], "completed", self.now)

    @rule(claim=claims, state=st.sampled_from(["failed", "canceled"]))
    def end(self, claim: Job, state: str) -> None:
        ending = self.desk.fail(claim) if state == "failed" else self.desk.cancel_claimed(claim)
        if self._owner_agrees(claim, self.wait(ending)):
            self.model.end(self.model.jobs[claim.id], state, self.now)

    @rule(claim=claims, seconds=st.sampled_from([0, 5, 40]))
    def retry_later(self, claim: Job, seconds: int) -> None:
        if claim.is_last_attempt:
            return  # a worker fails the job then
        if self._owner_agrees(claim, self.wait(self.desk.retry_later(claim, seconds))):
            job = self.model.jobs[claim.id]
            self.model.requeue(job, ready=False)
            job.not_before = self.now + timedelta(seconds=seconds)

    @rule(claim=claims, key=st.sampled_from(["x", "y"]))
    def park(self, claim: Job, key: str) -> None:
        if self._owner_agrees(claim, self.wait(self.desk.park(claim, key))):
            job = self.model.jobs[claim.id]
            self.model.requeue(job, ready=False, used=False)
            job.not_before, job.parked_by = None, key

    @rule(claim=claims)
    def release(self, claim: Job) -> None:
        if self._owner_agrees(claim, bool(self.wait(self.desk.release(claim)))):
            self.model.requeue(self.model.jobs[claim.id], ready=True, used=False)

    @rule(claim=claims)
    def begin_step(self, claim: Job) -> None:
        try:
            self.do(job_steps.begin_step(claim, new_id(), "step", self.now))
        except LeaseLost:
            assert not self._is_ours(claim)
        except Canceled:
            assert self._is_ours(claim)
            assert self.model.jobs[claim.id].cancel_requested
        else:
            assert self._is_ours(claim)
            assert not self.model.jobs[claim.id].cancel_requested

    # what people do

    @rule(id=jobs)
    def cancel(self, id: UUID) -> None:
        job = self.model.jobs.get(id)
        try:
            answer = self.wait(self.desk.cancel(id))
        except NotFound:
            assert job is None
            return
        except IllegalMove:
            assert job is not None
            assert not job.is_live
            return
        assert job is not None
        assert answer == {"queued": "canceled", "running": "requested"}[job.state]
        if job.state == "running":
            job.cancel_requested = True
        else:
            self.model.end(job, "canceled", self.now)

    @rule(id=jobs)
    def retry(self, id: UUID) -> None:
        job = self.model.jobs.get(id)
        try:
            self.wait(self.desk.retry(id))
        except NotFound:
            assert job is None
        except IllegalMove:
            assert job is not None
            assert job.state in ("running", "completed") or not self.model.revive(job)
        else:
            assert job is not None
            if job.state == "queued":
                self.model.hasten(job)
            else:
                assert job.state in ("failed", "canceled")
                assert self.model.revive(job)

    @rule(key=st.sampled_from(["x", "y"]))
    def unpark(self, key: str) -> None:
        parked = [job for job in self.model.jobs.values() if job.parked_by == key]
        assert self.wait(self.desk.unpark(key)) == len(parked)
        for job in parked:
            job.ready, job.parked_by = True, None

    # what time and the leader do

    @rule(seconds=st.sampled_from([1, 20, 61]))
    def time_passes(self, seconds: int) -> None:
        self.desk.clock.forward(seconds)

    @rule()
    def rescue(self) -> None:
        dead = [token for token, until in self.model.leases.items() if until < self.now]
        outcomes = [self.model.take_over(token, self.now) for token in dead]
        expected = (len(dead), sum(back for back, _ in outcomes), sum(over for _, over in outcomes))
        assert self.do(store.rescue(self.now)) == expected

    @rule()
    def wake(self) -> None:
        assert self.wait(self.desk.wake_due()) == self.model.wake(self.now)

    @rule(state=st.sampled_from(sorted(JOB.terminal)))
    def prune(self, state: str) -> None:
        old = [
            id
            for id, job in self.model.jobs.items()
            if job.state == state and job.finished_at is not None and job.finished_at < self.now
        ]
        assert self.do(store.prune(state, self.now, 1000)) == len(old)
        for id in old:
            del self.model.jobs[id]

    # what holds at all times

    @invariant()
    def what_is_visible_is_what_the_model_says(self) -> None:
        shown = self.do(store.list_jobs(limit=10_000))
        assert [job.id for job in shown] == [
            job.asked.id for job in sorted(self.model.jobs.values(), key=lambda job: -job.order)
        ]
        for job in shown:
            ours = (
                job.state,
                job.attempts,
                job.cancel_requested,
                job.parked_by,
                job.not_before,
                job.finished_at,
            )
            assert ours == self.model.jobs[job.id].visible
            assert 0 <= job.attempts <= job.max_attempts
            assert (job.heartbeat_at is not None) == (job.state == "running"), "an owner is a live lease"

    @invariant()
    def no_key_has_two_live_jobs(self) -> None:
        holders = list(self.model.live_holders())
        assert len(holders) == len(set(holders))

    def teardown(self) -> None:
        """Everything that was accepted comes to one end."""
        self.desk.clock.forward(100)
        self.do(store.rescue(self.now))
        for key in ("x", "y"):
            self.do(store.unpark(key, self.now))
        token = self.wait(self.desk.open_lease())
        self.do(store.wake_due(self.now, 10_000))
        while jobs := self.wait(self.desk.claim(1000, token)):
            done = self.wait(self.desk.finish(*jobs))
            assert done == {job.seq for job in jobs}
        shown = self.do(store.list_jobs(limit=10_000))
        assert {job.id for job in shown} == set(self.model.jobs)
        assert all(job.state in JOB.terminal for job in shown)

    def _held_by(self, token: UUID) -> list[Job]:
        return [claim for claim in self._all_claims() if claim.token == token and self._is_ours(claim)]

    def _all_claims(self) -> list[Job]:
        return [value for value in self.names_to_values.values() if isinstance(value, Job)]

    def _is_ours(self, claim: Job) -> bool:
        job: ModelJob | None = self.model.jobs.get(claim.id)
        return job is not None and job.is_owned_by(claim)

    def _owner_agrees(self, claim: Job, answer: bool) -> bool:
        """The database accepted the claim exactly if it still is the owner's."""
        assert answer == self._is_ours(claim)
        return answer


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[type[Engine]]:
    """The machine on one database, which is emptied between examples."""
    url = request.getfixturevalue("lasting_postgres_url") if request.param == "postgres" else None
    with asyncio.Runner() as runner:
        database = runner.run(open_database(tmp_path, url))
        yield type("Engine", (Engine,), {"runner": runner, "desk": Desk(database, ManualClock())})
        runner.run(clear(database))
        runner.run(database.close())


def test_random_interleavings_keep_the_promises_of_the_engine(engine: type[Engine]) -> None:
    run_state_machine_as_test(engine, settings=hypothesis.settings(stateful_step_count=STEPS))

"""Simulations beside the server: with progress, one at a time, canceled at once, and kept under their request."""

import asyncio
import multiprocessing

import pytest

from postroom.core.errors import BadInput, Refused
from postroom.store.engine.database import Database
from postroom.system.wall_clock import wall_clock
from postroom_simulator.runs import KEPT, STEPS, SimulationRequest, SimulationRun, SimulationRuns
from support.outgoing_traffic import KETTLE, Outgoing
from support.patience import PATIENCE_S

SMALL = SimulationRequest("flood", flood=50)
LONG = SimulationRequest("flood", flood=50_000)


async def ended(runs: SimulationRuns, request: SimulationRequest) -> SimulationRun:
    async with asyncio.timeout(PATIENCE_S):
        async for _ in runs.changes():
            found = runs.find(request)
            assert found is not None
            if found.state != "running":
                return found
    raise AssertionError


async def test_a_run_ends_with_results_of_every_order_and_is_kept(sqlite: Database) -> None:
    runs = SimulationRuns(sqlite)
    await runs.start(SMALL)
    run = await ended(runs, SMALL)
    assert (run.state, run.problem) == ("done", "")
    assert [each.discipline for each in run.result or ()] == list(STEPS)
    await runs.start(SMALL)
    kept = runs.find(SMALL)
    assert kept is not None
    assert kept.result is run.result, "it is not run again"


async def test_one_runs_at_a_time_and_is_canceled_at_once(sqlite: Database) -> None:
    runs = SimulationRuns(sqlite)
    await runs.start(LONG)
    with pytest.raises(Refused):
        await runs.start(SMALL)
    assert await runs.cancel(LONG)
    assert (await ended(runs, LONG)).state == "canceled"
    assert not await runs.cancel(LONG)
    assert not await runs.cancel(SMALL)


async def test_mail_that_was_really_sent_is_simulated(sqlite: Database) -> None:
    runs, request = SimulationRuns(sqlite), SimulationRequest("history", flood=5)
    with pytest.raises(BadInput):
        await runs.start(request)
    for number in range(4):
        await Outgoing(sqlite, wall_clock()).put(KETTLE, f"r{number}@x.example")
    await runs.start(request)
    assert (await ended(runs, request)).state == "done"


async def test_a_run_that_takes_too_long_or_dies_fails_with_words(sqlite: Database) -> None:
    runs = SimulationRuns(sqlite, longest_s=0.01)
    await runs.start(LONG)
    assert "use less mail" in (await ended(runs, LONG)).problem
    runs = SimulationRuns(sqlite)
    await runs.start(LONG)
    async with asyncio.timeout(PATIENCE_S):
        async for _ in runs.changes():
            for process in multiprocessing.active_children():
                process.kill()
            if (found := runs.find(LONG)) is not None and (found.about.begun or found.state != "running"):
                break
    found = await ended(runs, LONG)
    assert (found.state, found.problem) == ("failed", "it ended early; start it again")


async def test_a_run_ends_with_the_server(sqlite: Database) -> None:
    runs = SimulationRuns(sqlite)
    await runs.start(LONG)
    runs.close()
    assert (await ended(runs, LONG)).state == "canceled"


@pytest.mark.parametrize(
    "request_",
    [
        SimulationRequest("other"),
        SimulationRequest(flood=-1),
        SimulationRequest(flood=50_001),
        SimulationRequest(slots=1_001),
        SimulationRequest(seed=10**9),
    ],
    ids=str,
)
def test_nonsense_is_refused(request_: SimulationRequest) -> None:
    with pytest.raises(BadInput):
        request_.check()


async def test_only_the_last_results_are_kept(sqlite: Database) -> None:
    runs = SimulationRuns(sqlite)
    for seed in range(KEPT + 1):
        await runs.start(SimulationRequest(seed=seed))
        await runs.cancel(SimulationRequest(seed=seed))
    assert runs.find(SimulationRequest(seed=0)) is None
    assert runs.find(SimulationRequest(seed=KEPT)) is not None

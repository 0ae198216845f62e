"""Simulations of the outbound queue that people follow on a page: in a process of its own, with progress and an end.

A simulation keeps a core busy for seconds, so it runs beside the server at a low priority, one at a time. The same
request gives the same result, so a result is kept under its request, and found again by whoever asks the same.
"""

import asyncio
import multiprocessing
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Literal, NamedTuple

from postroom.core.errors import BadInput, Refused
from postroom.core.outbound.simulation.disciplines import DISCIPLINES, DisciplineName
from postroom.core.outbound.simulation.presets import PRESETS
from postroom.core.outbound.simulation.scenario import Destination
from postroom.core.outbound.simulation.simulator import ALONE, Result, Workload, compare
from postroom.operations.outbound.outbound_simulation import (
    changed_scenario,
    history_workload,
    load_history,
    scenario_workload,
)
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.database import Database

HISTORY = "history"
SOURCES = (*PRESETS, HISTORY)
MOST_FLOOD = 50_000
MOST_SLOTS = 1_000
MOST_SEED = 1_000_000
MOST_HISTORY = 50_000
HISTORY_DAYS = 30
USUAL_SLOTS = 100
KEPT = 8
LONGEST_S = 300.0
NICENESS = 10
STEPS = (ALONE, *DISCIPLINES)

RunState = Literal["running", "done", "canceled", "failed"]


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """A preset, or the mail of the last days; with a flood added, and other slots or another seed where given."""

    source: str = "flood"
    flood: int = 0
    slots: int | None = None
    seed: int = 1

    def check(self) -> None:
        """Raises BadInput."""
        if self.source not in SOURCES:
            raise BadInput("source", f"{self.source[:40]!r} is unknown", f"use one of {', '.join(SOURCES)}")
        limits = (("flood", self.flood, 0, MOST_FLOOD), ("seed", self.seed, 0, MOST_SEED))
        for name, value, least, most in (*limits, ("slots", self.slots or 1, 1, MOST_SLOTS)):
            if not least <= value <= most:
                raise BadInput(name, f"{value:,} is out of range", f"use {least} to {most:,}")


@dataclass(frozen=True, slots=True)
class SimulationRun:
    """How far a simulation has come, and its results in the order of STEPS."""

    request: SimulationRequest
    state: RunState
    started_at: datetime
    step: str = ALONE
    begun: int = 0
    """Mails whose delivery has begun in this step."""
    slots: int = 0
    results: tuple[Result, ...] = ()
    error: str = ""

    @property
    def steps_done(self) -> int:
        return len(STEPS) if self.state == "done" else STEPS.index(self.step)


class SimulationRuns:
    """The runs of one server. They are not stored: after a restart, the same request is run again."""

    def __init__(self, database: Database, clock: Clock = wall_clock, longest_s: float = LONGEST_S) -> None:
        self._database = database
        self._clock = clock
        self._longest_s = longest_s
        self._runs: dict[SimulationRequest, SimulationRun] = {}
        self._task: asyncio.Task[None] | None = None
        self._process: BaseProcess | None = None
        self._changed = asyncio.Event()

    def find(self, request: SimulationRequest) -> SimulationRun | None:
        return self._runs.get(request)

    async def start(self, request: SimulationRequest) -> None:
        """Begin a run, unless there is a result of it. Raises BadInput, and Refused while another runs."""
        request.check()
        found = self._runs.get(request)
        if found is not None and found.state in ("running", "done"):
            return
        work = await self._workload(request)
        if any(each.state == "running" for each in self._runs.values()):
            raise Refused("another simulation is running: wait for it, or cancel it")
        self._keep(SimulationRun(request, "running", self._clock(), slots=work.slots))
        self._task = asyncio.create_task(self._follow(request, work), name="outbound-simulation")
        await asyncio.sleep(0)  # it has begun, so that it hears of its end

    async def cancel(self, request: SimulationRequest) -> bool:
        """End a run. False if it had ended before."""
        found = self._runs.get(request)
        if found is None or found.state != "running" or self._task is None:
            return False
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        return True

    async def changes(self) -> AsyncIterator[None]:
        """Yield at once, and then after each change of a run."""
        while True:
            changed = self._changed
            yield
            await changed.wait()

    def close(self) -> None:
        """End what runs, with the server."""
        if self._process is not None and self._process.is_alive():
            self._process.kill()

    async def _workload(self, request: SimulationRequest) -> Workload:
        if request.source != HISTORY:
            return scenario_workload(
                changed_scenario(PRESETS[request.source], request.flood, request.slots, request.seed)
            )
        since = self._clock() - timedelta(days=HISTORY_DAYS)
        history = await load_history(self._database, since, MOST_HISTORY)
        if not len(history):
            problem = f"no outgoing mail was accepted in the last {HISTORY_DAYS} days"
            raise BadInput("source", problem, "choose one of the examples")
        return history_workload(history, request.slots or USUAL_SLOTS, Destination(), request.seed, request.flood)

    async def _follow(self, request: SimulationRequest, work: Workload) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_simulate, args=(theirs, work, DISCIPLINES), daemon=True)
        self._process = process
        started = asyncio.ensure_future(asyncio.to_thread(process.start))
        try:
            await asyncio.shield(started)
            theirs.close()
            async with asyncio.timeout(self._longest_s):
                await self._receive(request, ours)
        except asyncio.CancelledError:
            self._change(request, state="canceled")
            raise
        except TimeoutError:
            self._change(request, state="failed", error=f"it took more than {self._longest_s:.0f} s; use less mail")
        except Exception as error:
            self._change(request, state="failed", error=f"it ended early ({type(error).__name__})")
        finally:
            await asyncio.wait({started})
            theirs.close()
            if process.pid is not None:
                process.kill()
                await asyncio.to_thread(process.join)
            ours.close()
            if self._process is process:
                self._process = None

    async def _receive(self, request: SimulationRequest, connection: Connection) -> None:
        while True:
            heard: Heard = await asyncio.to_thread(connection.recv)
            if isinstance(heard, _Progress):
                self._change(request, step=heard.step, begun=heard.begun)
            else:
                self._change(request, state="done", results=tuple(heard))
                return

    def _change(self, request: SimulationRequest, **changes: object) -> None:
        self._keep(replace(self._runs[request], **changes))  # type: ignore[arg-type]

    def _keep(self, run: SimulationRun) -> None:
        self._runs.pop(run.request, None)
        self._runs[run.request] = run
        while len(self._runs) > KEPT:
            self._runs.pop(next(iter(self._runs)))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class _Progress(NamedTuple):
    step: str
    begun: int


Heard = _Progress | list[Result]


def _simulate(connection: Connection, work: Workload, names: Sequence[DisciplineName]) -> None:
    """In a process of its own: run everything, and send progress and results."""
    os.nice(NICENESS)
    connection.send(compare(work, names, lambda step, begun: connection.send(_Progress(step, begun))))

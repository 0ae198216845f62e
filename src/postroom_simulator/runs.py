"""Simulations of the outbound queue that people follow on a page: in a process of its own, with progress and an end.

A simulation keeps a core busy for seconds, so it runs beside the server at a low priority, one at a time. The same
request gives the same result, so a result is kept under its request, and found again by whoever asks the same.
"""

import asyncio
import multiprocessing
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection
from typing import NamedTuple, cast

from postroom.core.errors import BadInput, Refused
from postroom.operations.installation.long_tasks import LongTask, LongTasks, Report
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock, wall_clock
from postroom_simulator.disciplines import DISCIPLINES, DisciplineName
from postroom_simulator.history import HistoryWorkload, load_history
from postroom_simulator.presets import PRESETS
from postroom_simulator.scenario import Destination
from postroom_simulator.simulator import ALONE, Result, ScenarioWorkload, Workload, compare

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


@dataclass(slots=True)
class Simulating:
    """What is simulated, and how many mails have begun to be delivered in the step that runs."""

    request: SimulationRequest
    slots: int
    begun: int = 0


Results = tuple[Result, ...]
SimulationRun = LongTask[Simulating, Results]
"""A simulation: how many of STEPS are done, and in the end the results in their order."""


class SimulationRuns:
    """The runs of one server. They are not stored: after a restart, the same request is run again."""

    def __init__(self, database: Database, clock: Clock = wall_clock, longest_s: float = LONGEST_S) -> None:
        self._database = database
        self._clock = clock
        self._longest_s = longest_s
        self._tasks = LongTasks[Simulating, Results](most_running=1, unwatched_s=None, most_remembered=KEPT, now=clock)

    def find(self, request: SimulationRequest) -> SimulationRun | None:
        return self._tasks.find(str(request))

    async def start(self, request: SimulationRequest) -> None:
        """Begin a run, unless there is a result of it. Raises BadInput, and Refused while another runs."""
        request.check()
        found = self.find(request)
        if found is not None and found.state in ("running", "done"):
            return
        work = await self._workload(request)
        about = Simulating(request, work.slots)
        self._tasks.start(about, partial(self._simulate, about, work), str(request))

    async def cancel(self, request: SimulationRequest) -> bool:
        """End a run. False if it had ended before."""
        return await self._tasks.cancel(str(request))

    def changes(self) -> AsyncIterator[None]:
        return self._tasks.changes()

    def close(self) -> None:
        """End what runs, with the server."""
        self._tasks.close()

    async def _workload(self, request: SimulationRequest) -> Workload:
        if request.source != HISTORY:
            return ScenarioWorkload(PRESETS[request.source].changed(request.flood, request.slots, request.seed))
        since = self._clock() - timedelta(days=HISTORY_DAYS)
        history = await load_history(self._database, since, MOST_HISTORY)
        if not len(history):
            problem = f"no outgoing mail was accepted in the last {HISTORY_DAYS} days"
            raise BadInput("source", problem, "choose one of the examples")
        return HistoryWorkload(history, request.slots or USUAL_SLOTS, Destination(), request.seed, request.flood)

    async def _simulate(self, about: Simulating, work: Workload, report: Report) -> Results:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_simulate, args=(theirs, work, DISCIPLINES), daemon=True)
        started = asyncio.ensure_future(asyncio.to_thread(process.start))
        try:
            await asyncio.shield(started)
            theirs.close()
            async with asyncio.timeout(self._longest_s):
                return await self._receive(about, ours, report)
        except TimeoutError:
            raise Refused(f"it took more than {self._longest_s:.0f} s; use less mail") from None
        except EOFError:
            raise Refused("it ended early; start it again") from None
        finally:
            await asyncio.wait({started})
            theirs.close()
            if process.pid is not None:
                process.kill()
                await asyncio.to_thread(process.join)
            ours.close()

    async def _receive(self, about: Simulating, connection: Connection, report: Report) -> Results:
        while isinstance(heard := cast(Heard, await asyncio.to_thread(connection.recv)), _Progress):
            about.begun = heard.begun
            report(STEPS.index(heard.step), len(STEPS))
        return tuple(heard)


class _Progress(NamedTuple):
    step: str
    begun: int


Heard = _Progress | list[Result]


def _simulate(connection: Connection, work: Workload, names: Sequence[DisciplineName]) -> None:
    """In a process of its own: run everything, and send progress and results."""
    os.nice(NICENESS)
    connection.send(compare(work, names, lambda step, begun: connection.send(_Progress(step, begun))))

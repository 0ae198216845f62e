"""Random interleavings of everything that can happen to jobs, on both databases, against a model in memory.

They keep: a job is owned by at most one live lease; a stale owner changes nothing; every accepted job ends in exactly
one terminal state; attempts never exceed the maximum; nothing is claimed before its time; claims come in order; a key
admits no second live job.

A program is a list of moves with two numbers each, which choose among what there is at that moment. Hypothesis makes
the programs and prints the one that failed; the trace says what it did.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from postroom.store.engine.opening import open_database
from support.clocks import ManualClock
from support.scale import scale
from support.store.dump import clear
from support.store.job_interpreter import MOVES, Interpreter
from support.store.job_setup import JobSetup

Program = list[tuple[str, int, int]]
programs = st.lists(
    st.tuples(st.sampled_from(MOVES), st.integers(0, 1000), st.integers(0, 1000)), min_size=60, max_size=140
)


class SharedDatabase:
    """One database for all programs, emptied between them, and the loop that it lives on."""

    def __init__(self, runner: asyncio.Runner, setup: JobSetup) -> None:
        self.runner = runner
        self.setup = setup

    def run(self, program: Program) -> None:
        self.runner.run(self._run(program))

    async def _run(self, program: Program) -> None:
        self.setup.clock.now = ManualClock().now
        await clear(self.setup.database)
        interpreter = Interpreter(self.setup)
        try:
            for move in program:
                await interpreter.do(*move)
            await interpreter.drain()
        except BaseException:
            note("\n".join(interpreter.trace))
            raise


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SharedDatabase]:
    url = request.getfixturevalue("lasting_postgres_url") if request.param == "postgres" else None
    with asyncio.Runner() as runner:
        database = runner.run(open_database(tmp_path, url))
        yield SharedDatabase(runner, JobSetup(database, ManualClock()))
        runner.run(clear(database))
        runner.run(database.close())


@settings(
    max_examples=scale(12, 2_000),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(programs)
def test_random_interleavings_keep_the_promises_of_the_engine(shared: SharedDatabase, program: Program) -> None:
    shared.run(program)

"""SIGKILL between any two statements of acceptance, lease, ack, nack and sweep: nothing is lost or duplicated."""

import asyncio
import time
from collections.abc import Sequence
from random import Random

import pytest

from support.crash.evidence import Place
from support.crash.gaps import ANSWER, COMMIT, Gap
from support.crash.halting_disk import Spot
from support.crash.switchboard_setup import CONSUMER, INTAKE, SwitchboardSetup, switchboard_setup, tour
from support.processes import ProcessGroup
from support.scale import scale

VERBS = {"accept_many", "lease", "ack", "nack", "return_expired", "sweep"}
FORMS = ("single", "batch")
FIRST_USE = "insert_queue_state"
LANES = 3
LATEST_KILL_S = 0.4


async def test_a_process_killed_between_any_two_statements_breaks_nothing(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    seen = await tour(place.folder / "tour")
    gaps = seen.on("postgres" if place.url else "sqlite")
    assert {gap.verb for gap in gaps} == VERBS
    assert {Gap(verb, end) for verb in VERBS for end in (COMMIT, ANSWER)} <= set(gaps)
    assert {Gap(verb, "end_inbox") for verb in VERBS - {"accept_many", "ack"}} <= set(gaps)
    deaths = [
        (gap, form)
        for gap in gaps * scale(1, 4)
        if gap.before != FIRST_USE
        for form in (FORMS if gap.verb == "accept_many" else ("",))
    ]
    rng.shuffle(deaths)
    started = time.monotonic()
    async with switchboard_setup(place, children, rng) as scene:
        for gap in (Gap("sweep", FIRST_USE), Gap("lease", FIRST_USE)):
            await scene.kill_in(gap, "")
        async with scene.fed():
            await kill_in_each(deaths, scene, rng)
            await scene.kill_in(Gap("lease", ANSWER), "")
        outcome = await scene.recover()
    print(f"{len(deaths) + 3} kills in {len(gaps)} gaps, {outcome}, {time.monotonic() - started:.1f} s")


async def kill_in_each(deaths: Sequence[tuple[Gap, str]], scene: SwitchboardSetup, rng: Random) -> None:
    """A few at a time, so that the dying work beside the living."""
    waiting = list(deaths)

    async def lane() -> None:
        while waiting:
            gap, form = waiting.pop()
            await scene.kill_in(gap, form, rng.randint(1, 3))

    async with asyncio.TaskGroup() as lanes:
        for _ in range(LANES):
            lanes.create_task(lane())


async def test_producers_and_consumers_killed_at_random_moments_break_nothing(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    kinds = ((INTAKE, "--form", "single"), (CONSUMER,), (INTAKE, "--form", "batch"), (CONSUMER,))
    kills = scale(8, 200)
    started = time.monotonic()
    async with switchboard_setup(place, children, rng) as scene:
        # On a busy machine a producer may be killed before it has handed in anything.
        for number in range(5):
            await scene.ingest("before", number)
        living = [await scene.start(*kind) for kind in kinds]
        for number in range(kills):
            position = number % len(kinds)
            await living[position].hear("ready")
            await asyncio.sleep(rng.uniform(0, LATEST_KILL_S))
            await living[position].kill()
            living[position] = await scene.start(*kinds[position])
        for child in living:
            await child.kill()
        await scene.kill_in(Gap("lease", ANSWER), "")
        outcome = await scene.recover()
    print(f"{kills + len(living)} kills at random moments, {outcome}, {time.monotonic() - started:.1f} s")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_process_killed_in_the_middle_of_a_commit_or_checkpoint_breaks_nothing(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    kinds = ((INTAKE, "--form", "batch"), (CONSUMER,))
    spots = [(file, act) for file in ("wal", "database") for act in ("write", "sync")] * scale(1, 12)
    started = time.monotonic()
    async with switchboard_setup(place, children, rng) as scene:
        async with scene.fed():
            for file, act in spots:
                for kind in kinds:
                    spot = Spot(file, act, rng.randint(1, 60) if (file, act) != ("database", "sync") else 1)
                    child = await scene.start(*kind, "--halt-disk", str(spot))
                    await child.hear("halt")
                    await child.kill()
            await scene.kill_in(Gap("lease", ANSWER), "")
        outcome = await scene.recover()
    print(f"{len(spots) * 2 + 1} kills in commits and checkpoints, {outcome}, {time.monotonic() - started:.1f} s")

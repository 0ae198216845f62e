"""Whatever the clock does, and whoever is killed: nothing is late by more than a lease, and nothing is lost."""

import os
from random import Random

from support.scale import scale
from support.store.job_setup import JobSetup
from support.store.jumping_world import JumpingWorld

STEPS = 25
# On each of the two databases.
SEQUENCES = scale(test=25, soak=250)


async def test_nothing_is_late_or_lost_when_the_clock_jumps_at_any_moment(setup: JobSetup) -> None:
    """Jumps of an hour and a day, forward and back, over mail in and out, snoozes, retries, backfill and approvals."""
    seed = int(os.environ.get("POSTROOM_TEST_SEED") or Random().randrange(2**32))
    done = 0
    for number in range(seed, seed + SEQUENCES):
        print(f"seed {number}")
        world = JumpingWorld(setup, Random(number))
        await world.begin()
        for _ in range(STEPS):
            await world.step()
        await world.finish()
        done += world.done
    assert done > SEQUENCES

"""SIGKILL at every step of deciding, acting, snoozing, waking and undoing: nothing is done twice, nothing is lost."""

import re
import time
from random import Random

from support.crash.action_cases import KINDS
from support.crash.action_setup import crash_setup
from support.crash.evidence import Place
from support.processes import ProcessGroup
from support.scale import scale

# One in so many; a process on PostgreSQL takes several times as long.
ONE_IN = {"sqlite": scale(10, 1), "postgres": scale(40, 1)}
SEVERAL = ("several", "several, into the trash")
VERBS = {
    "archive": {"record_decision", "begin_action", "keep_pre_image", "complete_action", "begin_undo", "complete_undo"},
    "snooze, undone": {"keep_pre_image", "complete_undo"},
    "snooze, woken": {"wake_due", "end_woken"},
    "star, on request": {"ask_for_action"},
}


async def test_a_worker_killed_at_any_step_of_an_action_does_nothing_twice_and_loses_nothing(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    started = time.monotonic()
    async with crash_setup(place, children, rng) as setup:
        steps = [(name, step) for name in KINDS for step in await setup.undisturbed(name)]
        for name, verbs in VERBS.items():
            assert verbs <= {step.what.split(" ")[0] for each, step in steps if each == name}
        chosen = rng.sample(steps, len(steps) // ONE_IN["postgres" if place.url else "sqlite"])
        for name, step in chosen:
            await setup.strike(name, step)
        await setup.finish()
        # How often a worker asks in vain, or asks for labels again, is a matter of time: not every step comes again.
        assert setup.deaths >= len(chosen) // 4
        ends = await setup.check()
    took = time.monotonic() - started
    print(f"{len(steps)} steps, {len(chosen)} struck, {setup.deaths} deaths, {dict(ends)}, {took:.1f} s")


async def test_a_worker_frozen_in_the_middle_of_several_actions_changes_nothing_more_when_it_wakes(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    async with crash_setup(place, children, rng) as setup:
        steps = [(name, step) for name in SEVERAL for step in await setup.undisturbed(name)]
        # Between the last look at its claim and the call itself nothing can stop a process: it is not frozen there.
        calls = [each for each in steps if re.match(r"(GET|POST) .* (unanswered|answered)", each[1].what)]
        chosen = rng.sample(calls, min(scale(3, 100), len(calls)))
        for name, step in chosen:
            await setup.freeze(name, step)
        await setup.finish()
        await setup.check()
    print(f"{len(calls)} calls of the mailbox, frozen at {[str(step) for _, step in chosen]}")

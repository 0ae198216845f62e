"""The Gmail connector killed again and again, at a Gmail that fails in every way: each message arrives exactly once.

Time runs a hundred times faster for the quota, the emulator and its outages, so that a minute's quota and five minutes
of 503 are felt. The emulator counts and does not limit: keeping within the quota is the connector's doing.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

from chaos.gmail_scene import Bill, Scene, bill, scene
from conftest import scale
from postroom_sandbox.faults import Fault
from support.processes import Child, Family

PER_MINUTE = 6_000
LATEST_KILL_S = 0.05


class Undisturbed:
    """Nothing happens to the connector. What is delivered, and when, is the same in every run."""

    def __init__(self, stage: Scene, moments: Sequence[int]) -> None:
        self.stage = stage
        self.moments = moments

    def begin(self) -> None:
        """Before the connector starts."""

    async def at_moment(self, number: int, connector: Child) -> Child:
        """So many messages have arrived as this moment says."""
        if number == len(self.moments) // 3:
            self.stage.deliver(20)
        return connector


class Disturbed(Undisturbed):
    """At every moment the connector is killed, and Gmail fails throughout."""

    def begin(self) -> None:
        faults = self.stage.emulator.faults
        faults.order(Fault(429, "rateLimitExceeded", share=0.3))
        faults.order(Fault(kind="reset", path="/gmail/", share=0.01))
        faults.order(Fault(kind="drop_reply", path="/gmail/", share=0.005))

    async def at_moment(self, number: int, connector: Child) -> Child:
        stage, count = self.stage, len(self.moments)
        await asyncio.sleep(stage.rng.uniform(0, LATEST_KILL_S))
        await connector.kill()
        await super().at_moment(number, connector)
        # Looking back would find again what was lost before, so most of the kills come afterwards.
        if number == count // 3:
            stage.emulator.mailbox.expire_history()
        if number == count // 2:
            stage.emulator.faults.order(Fault(503, seconds=300))
        return await stage.start()


async def live_through(stage: Scene, fate: Undisturbed) -> Bill:
    """All mail is delivered while the connector takes it in; afterwards everything has arrived, and only once."""
    stage.deliver(stage.mails // 5, age=timedelta(days=6))
    fate.begin()
    feeding = asyncio.create_task(stage.keep_delivering(stage.mails))
    connector = await stage.start()
    for number, moment in enumerate(fate.moments):
        await stage.intake.until(moment)
        connector = await fate.at_moment(number, connector)
    await feeding
    await stage.intake.until(len(stage.delivered))
    await connector.kill()
    arrived = await stage.arrived()
    assert sorted(arrived) == sorted(stage.delivered), "something is missing, or came twice"
    return bill(stage, arrived)


async def test_a_connector_killed_at_a_failing_gmail_hands_every_message_in_exactly_once(
    tmp_path: Path, children: Family, rng: Random
) -> None:
    kills, mails = scale(3, 20), scale(1_000, 10_000)
    moments = [int(mails * (0.1 + 0.8 * (number + rng.random()) / kills)) for number in range(kills)]
    seed = rng.randrange(2**32)
    async with scene(tmp_path / "undisturbed", children, Random(seed), mails) as stage:
        usual = await live_through(stage, Undisturbed(stage, moments))
        print(f"undisturbed: {usual}")
    async with scene(tmp_path / "disturbed", children, Random(seed), mails) as stage:
        cost = await live_through(stage, Disturbed(stage, moments))
        print(f"{kills} kills: {cost}; {cost.total / usual.total:.3f} times the calls")
        struck = set(stage.emulator.faults.struck)
    assert {"refuse", "reset", "drop_reply"} <= struck
    assert cost.answers[429] >= 0.29 * cost.total
    assert cost.answers[503] > 0
    assert cost.answers[404] > 0
    assert max(usual.most_in_a_minute, cost.most_in_a_minute) <= PER_MINUTE
    assert cost.total <= 1.5 * usual.total

"""The Gmail connector killed again and again, at a Gmail that fails in every way: each message arrives exactly once.

Time runs a hundred times faster for the quota, the emulator and its outages, so that a minute's quota and five minutes
of 503 are felt. The emulator counts and does not limit: keeping within the quota is the connector's doing.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

from postroom_sandbox.faults import Fault
from support.crash.gmail_setup import GmailCrashSetup, Usage, gmail_crash_setup, usage
from support.processes import Child, ProcessGroup
from support.scale import scale

PER_MINUTE = 6_000
LATEST_KILL_S = 0.05


class Undisturbed:
    """Nothing happens to the connector. What is delivered, and when, is the same in every run."""

    def __init__(self, setup: GmailCrashSetup, moments: Sequence[int]) -> None:
        self.setup = setup
        self.moments = moments

    def begin(self) -> None:
        """Before the connector starts."""

    async def at_moment(self, number: int, connector: Child) -> Child:
        """So many messages have arrived as this moment says."""
        if number == len(self.moments) // 3:
            self.setup.deliver(20)
        return connector


class Disturbed(Undisturbed):
    """At every moment the connector is killed, and Gmail fails throughout."""

    def begin(self) -> None:
        faults = self.setup.emulator.faults
        faults.order(Fault(429, "rateLimitExceeded", share=0.3))
        faults.order(Fault(kind="reset", path="/gmail/", share=0.01))
        faults.order(Fault(kind="drop_reply", path="/gmail/", share=0.005))

    async def at_moment(self, number: int, connector: Child) -> Child:
        setup, count = self.setup, len(self.moments)
        await asyncio.sleep(setup.rng.uniform(0, LATEST_KILL_S))
        await connector.kill()
        await super().at_moment(number, connector)
        # Looking back would find again what was lost before, so most of the kills come afterwards.
        if number == count // 3:
            setup.emulator.mailbox.expire_history()
        if number == count // 2:
            setup.emulator.faults.order(Fault(503, seconds=300))
        return await setup.start()


async def live_through(setup: GmailCrashSetup, fate: Undisturbed) -> Usage:
    """All mail is delivered while the connector takes it in; afterwards everything has arrived, and only once."""
    setup.deliver(setup.mails // 5, age=timedelta(days=6))
    fate.begin()
    feeding = asyncio.create_task(setup.keep_delivering(setup.mails))
    connector = await setup.start()
    for number, moment in enumerate(fate.moments):
        await setup.intake.until(moment)
        connector = await fate.at_moment(number, connector)
    await feeding
    await setup.intake.until(len(setup.delivered))
    await connector.kill()
    arrived = await setup.arrived()
    assert sorted(arrived) == sorted(setup.delivered), "something is missing, or came twice"
    return usage(setup, arrived)


def reading(cost: Usage) -> int:
    """The calls without those that look for new mail and for the order."""
    return cost.total - cost.calls["messages.list"] - cost.calls["history.list"]


async def test_a_connector_killed_at_a_failing_gmail_hands_every_message_in_exactly_once(
    tmp_path: Path, children: ProcessGroup, rng: Random
) -> None:
    kills, mails = scale(3, 20), scale(1_000, 10_000)
    moments = [int(mails * (0.1 + 0.8 * (number + rng.random()) / kills)) for number in range(kills)]
    seed = rng.randrange(2**32)
    async with gmail_crash_setup(tmp_path / "undisturbed", children, Random(seed), mails) as setup:
        usual = await live_through(setup, Undisturbed(setup, moments))
        print(f"undisturbed: {usual}")
    async with gmail_crash_setup(tmp_path / "disturbed", children, Random(seed), mails) as setup:
        cost = await live_through(setup, Disturbed(setup, moments))
        print(f"{kills} kills: {cost}; {cost.total / usual.total:.3f} times the calls")
        struck = set(setup.emulator.faults.struck)
    assert {"refuse", "reset", "drop_reply"} <= struck
    assert cost.answers[429] >= 0.29 * cost.total
    assert cost.answers[503] > 0
    assert cost.answers[404] > 0
    assert max(usual.most_in_a_minute, cost.most_in_a_minute) <= PER_MINUTE
    # New mail is looked for every few seconds while others are read, however many calls that is: they depend on time.
    assert reading(cost) <= 1.5 * reading(usual)

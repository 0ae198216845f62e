"""A large mailbox looked at for the first time, with a search that is behind, a history that expires again and again,
mail that keeps coming, and a connector that is killed: each message is taken in exactly once.
"""

from datetime import timedelta
from pathlib import Path
from random import Random

from support.crash.gmail_setup import gmail_crash_setup, usage
from support.processes import ProcessGroup
from support.scale import scale

SPEED = 500.0


async def test_a_large_mailbox_is_taken_in_once_while_the_search_lags_and_history_expires(
    tmp_path: Path, children: ProcessGroup, rng: Random
) -> None:
    mails, interruptions = scale(600, 50_000), scale(3, 20)
    moments = sorted(rng.sample(range(mails // 20, mails), interruptions))
    async with gmail_crash_setup(tmp_path, children, rng, mails, SPEED) as setup:
        mailbox = setup.emulator.mailbox
        mailbox.search_lag, mailbox.search_gaps = timedelta(days=2), 0.2
        # A burst of two fifths within the last hours, and the rest over the window.
        setup.deliver(mails * 2 // 5, age=timedelta(hours=6))
        setup.deliver(mails * 2 // 5, age=timedelta(days=6))
        connector = await setup.start()
        for number, moment in enumerate(moments):
            await setup.intake.until(min(moment, len(setup.delivered)))
            await connector.kill()
            setup.deliver((mails - len(setup.delivered)) // 3)
            if number % 2:
                mailbox.expire_history()
            connector = await setup.start()
            setup.deliver((mails - len(setup.delivered)) // 3)
        setup.deliver(mails - len(setup.delivered))
        await setup.intake.until(len(setup.delivered))
        mailbox.expire_history()
        setup.deliver(1)
        await setup.intake.until(len(setup.delivered))
        await connector.kill()
        arrived = await setup.arrived()
        print(f"{interruptions} kills, {interruptions // 2 + 1} expiries: {usage(setup, arrived)}")
        assert sorted(arrived) == sorted(setup.delivered), "something is missing, or came twice"

"""A large mailbox looked at for the first time, with a search that is behind, a history that expires again and again,
mail that keeps coming, and a connector that is killed: each message is taken in exactly once.
"""

from datetime import timedelta
from pathlib import Path
from random import Random

from chaos.gmail_scene import bill, scene
from conftest import scale
from support.processes import Family

SPEED = 500.0


async def test_a_large_mailbox_is_taken_in_once_while_the_search_lags_and_history_expires(
    tmp_path: Path, children: Family, rng: Random
) -> None:
    mails, interruptions = scale(600, 50_000), scale(3, 20)
    moments = sorted(rng.sample(range(mails // 20, mails), interruptions))
    async with scene(tmp_path, children, rng, mails, SPEED) as stage:
        mailbox = stage.emulator.mailbox
        mailbox.search_lag, mailbox.search_gaps = timedelta(days=2), 0.2
        # A burst of two fifths within the last hours, and the rest over the window.
        stage.deliver(mails * 2 // 5, age=timedelta(hours=6))
        stage.deliver(mails * 2 // 5, age=timedelta(days=6))
        connector = await stage.start()
        for number, moment in enumerate(moments):
            await stage.intake.until(min(moment, len(stage.delivered)))
            await connector.kill()
            stage.deliver((mails - len(stage.delivered)) // 3)
            if number % 2:
                mailbox.expire_history()
            connector = await stage.start()
            stage.deliver((mails - len(stage.delivered)) // 3)
        stage.deliver(mails - len(stage.delivered))
        await stage.intake.until(len(stage.delivered))
        mailbox.expire_history()
        stage.deliver(1)
        await stage.intake.until(len(stage.delivered))
        await connector.kill()
        arrived = await stage.arrived()
        print(f"{interruptions} kills, {interruptions // 2 + 1} expiries: {bill(stage, arrived)}")
        assert sorted(arrived) == sorted(stage.delivered), "something is missing, or came twice"

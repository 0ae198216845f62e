"""The IMAP connector and its actions, killed and cut off again and again, beside another program that moves, copies,
marks and deletes at random: each message is taken in exactly once, each action is done once, and nothing else changes.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest

from support.crash.imap_other_client import COPIES, kind_of
from support.crash.imap_setup import ImapCrashSetup, Placed, imap_crash_setup, seen_by, twice
from support.imap_server import ImapServer
from support.processes import Child, ProcessGroup
from support.scale import SOAK, scale

MAILS, KILLS, CUTS = scale(120, 10_000), scale(3, 20), scale(3, 20)
AT_ONCE = scale(20, 100)
LATEST_KILL_S = 0.05
SERVERS = [("dovecot", "all"), ("dovecot", "neither"), *([("cyrus", "all")] if SOAK else [])]
WHERE = {"archive": "Archive", "star": "INBOX", "trash": "Trash", "file": "Filed"}


async def disturb(setup: ImapCrashSetup, connector: Child, kind: str, rng: Random) -> Child:
    if kind == "cut":
        setup.cutting.cut_after(rng.randint(1, 20))
        return connector
    await asyncio.sleep(rng.uniform(0, LATEST_KILL_S))
    await connector.kill()
    setup.orders.settle(connector)
    return await setup.start()


async def live_through(setup: ImapCrashSetup, rng: Random) -> None:
    """Mail is delivered and handled by everybody, with a disturbance now and then, until all is done."""
    steps = MAILS // AT_ONCE
    count = KILLS + CUTS
    kinds = rng.sample(["kill"] * KILLS + ["cut"] * CUTS, count)
    connector = await setup.start()
    for step in range(steps):
        before = setup.intake.fresh
        await asyncio.to_thread(setup.other.deliver, AT_ONCE)
        for _ in range(count * (step + 1) // steps - count * step // steps):
            # Nobody hides what was just delivered yet, so that at least so many come.
            await setup.intake.until(before + rng.randint(0, AT_ONCE // 2))
            connector = await disturb(setup, connector, kinds.pop(), rng)
        await asyncio.to_thread(lambda: [setup.other.meddle() for _ in range(AT_ONCE // 2)])
        await setup.read_inbox()
        setup.orders.settle(connector)
    assert not kinds
    must = {number for number, left in setup.other.messages.items() if not left.was_hidden}
    await setup.read_until(must)
    await all_done(setup, connector)
    await connector.kill()


async def all_done(setup: ImapCrashSetup, connector: Child) -> None:
    """However long it takes, as long as actions are done."""

    async def is_further() -> bool:
        setup.orders.settle(connector)
        return len(setup.orders.waiting) < left

    while left := len(setup.orders.waiting):
        await connector.until(is_further)


def check_places(setup: ImapCrashSetup, found: list[Placed]) -> None:
    theirs = {number: left for number, left in setup.other.messages.items() if kind_of(number) is None}
    left = {(number, each.folder, frozenset(each.flags)) for number, each in theirs.items()}
    now = {each for each in found if kind_of(each[0]) is None and each[1] != COPIES}
    assert now == left, "we have touched something of others"
    assert {number for number, folder, _ in found if folder == COPIES} == {n for n, e in theirs.items() if e.has_copy}
    ours = {(number, folder) for number, folder, flags in found if kind_of(number) and "\\Deleted" not in flags}
    wanted = {(number, WHERE[kind]) for number in setup.other.messages if (kind := kind_of(number)) is not None}
    assert ours == wanted
    starred = {number for number, _, flags in found if "\\Flagged" in flags}
    assert starred >= {number for number in setup.other.messages if kind_of(number) == "star"}
    assert not [each for each in found if kind_of(each[0]) and "\\Seen" in each[2]], "we have marked something as read"


@pytest.mark.parametrize(("kind", "profile"), SERVERS)
async def test_every_message_is_taken_in_once_and_every_action_is_done_once(
    request: pytest.FixtureRequest, tmp_path: Path, children: ProcessGroup, rng: Random, kind: str, profile: str
) -> None:
    server: ImapServer = request.getfixturevalue(kind)
    async with imap_crash_setup(tmp_path, children, server, profile, rng) as setup:
        await live_through(setup, rng)
        found = await asyncio.to_thread(seen_by, setup.other)
        arrived = sorted(setup.arrived.values())
        print(
            f"{kind} {profile}: {setup.other.count} messages, {len(arrived)} taken in, {setup.intake.copies} offered "
            f"again, {len(setup.orders.done)} actions, {KILLS} kills, {setup.cutting.cuts} connections cut"
        )
        assert len(set(arrived)) == len(arrived), "a message came under two ids"
        assert setup.cutting.cuts > 0
        check_places(setup, found)
        assert not twice([each for each in found if kind_of(each[0]) is not None]), "a message is in two places"

"""Backups made and restored under load: nothing is sent twice, and nothing that was there is lost.

Again and again a backup is made while the product works, more mail comes and is handled, the process is killed, and the
backup is restored.
"""

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from postroom.backup.make import Source, make_backup
from postroom.backup.restore import RestoreTarget as Target
from postroom.backup.restore import restore_backup
from postroom.core.rules.draft import RuleDraft
from postroom.store.actions.pauses import ALL, resume
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import connect_database
from postroom.store.rules.rules import add_rules
from postroom.system.wall_clock import wall_clock
from support.crash.evidence import Place
from support.crash.forwarding_setup import ForwardingSetup, forwarding_setup, signed
from support.processes import ProcessGroup
from support.scale import scale

DELETED = 0.05
PER_ROUND = 6


async def back_up(setup: ForwardingSetup, number: int) -> Path:
    file = setup.place.folder.parent / f"{number}.postroom-backup"
    await make_backup(Source(setup.place.folder, setup.place.url, []), file)
    return file


async def restore(setup: ForwardingSetup, file: Path) -> None:
    target = Target(setup.place.folder, setup.place.url, replace=True)
    await restore_backup(file, target, signed(), datetime.now(UTC))
    database = connect_database(setup.place.folder, setup.place.url)
    try:
        # A restored database is paused; the person who restored it has looked at it.
        assert await database.run(resume(ALL, signed(), wall_clock())) is not None
    finally:
        await database.close()


@pytest.mark.timeout(900)
async def test_mail_that_was_snoozed_after_the_backup_comes_back_after_the_restore(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    async with forwarding_setup(place, children, rng, DELETED) as setup:
        process = await setup.start()
        setup.receive(1)
        await setup.until_left(1)
        backup = await back_up(setup, 0)
        database = connect_database(setup.place.folder, setup.place.url)
        later = {"amount": 1, "units": "hours"}
        rule = (new_id(), RuleDraft("Later", {"subject_contains": "later"}, "snooze", later))
        await database.run(add_rules([rule], wall_clock()))
        await database.close()
        message = setup.mailbox.deliver(b"From: p@example.com\r\nSubject: For later\r\n\r\nHello.\r\n")
        await setup.until_labels(message.id, lambda labels: "INBOX" not in labels)
        snoozed = setup.mailbox.get(message.id).labels
        await process.kill()
        await restore(setup, backup)
        process = await setup.start()
        await setup.until_labels(message.id, lambda labels: "INBOX" in labels)
        assert not (snoozed - {"UNREAD"}) & setup.mailbox.get(message.id).labels, "the snooze label is off"
        await process.kill()


@pytest.mark.timeout(scale(900, 7200))
async def test_mail_sent_after_a_backup_is_not_sent_again_by_the_restored_database(
    place: Place, children: ProcessGroup, rng: Random
) -> None:
    rounds = scale(2, 50)
    async with forwarding_setup(place, children, rng, DELETED) as setup:
        process = await setup.start()
        for number in range(rounds):
            setup.receive(PER_ROUND)
            await setup.until_left(setup.come - rng.randrange(PER_ROUND))
            backup = await back_up(setup, number)
            setup.receive(PER_ROUND)
            await setup.until_left(setup.come - rng.randrange(PER_ROUND))
            await process.kill()
            await restore(setup, backup)
            process = await setup.start()
        await setup.settle()
        await process.kill()
    twice = {number: count for number, count in setup.ledger.left.items() if count > 1}
    deleted = len(setup.ledger.deleted)
    print(f"{rounds} restores, {setup.come} mails, {deleted} copies deleted, {len(setup.asked)} asked, {twice=}")
    assert not twice
    assert len(setup.ledger.left) == setup.come

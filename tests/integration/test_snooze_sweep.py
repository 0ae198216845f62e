"""Snoozed mail that the database does not know is brought back; mail with a later wake-up is left alone."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from uuid import UUID

import pytest

from postroom.core.jobs.job import JobView
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.store.accounts.accounts import list_accounts
from postroom.store.actions import pauses
from postroom.store.engine.database import Database
from postroom.store.engine.listeners import signalled
from postroom.store.jobs import jobs
from postroom.system.checked_http import CheckedClient
from postroom.system.wall_clock import wall_clock
from postroom.triage.handlers.snooze_sweep import SnoozeSweep
from support.mailboxes import always
from support.message_setup import MessageSetup, message_setup
from support.patience import PATIENCE_S
from support.product import TOKEN, Product, raw_mail

LABEL = "Postroom/Snoozed"


@pytest.fixture
async def setup(database: Database, tmp_path: Path) -> AsyncGenerator[MessageSetup]:
    async with message_setup(database, tmp_path) as opened:
        yield opened


@pytest.fixture
async def sweep(setup: MessageSetup) -> AsyncGenerator[SnoozeSweep]:
    async def token() -> str:
        return TOKEN

    async with CheckedClient(timeout=PATIENCE_S) as http:
        client = GmailClient(http, setup.product.address, token)
        yield SnoozeSweep(setup.database, always(GmailMailbox(client)), LABEL)


async def account_id_of(setup: MessageSetup) -> UUID:
    (account,) = await setup.database.run(list_accounts())
    return account.id


def hidden(product: Product, label_id: str) -> str:
    """A message that is under the snooze label, and of which the database knows nothing."""
    message = product.mailbox.deliver(raw_mail("Hidden"))
    product.mailbox.modify(message.id, add=[label_id], remove=["INBOX"])
    return message.id


async def until_job(setup: MessageSetup, holds: Callable[[JobView], bool]) -> None:
    """Until it holds of the newest waking."""
    changed = asyncio.Event()
    subscription = setup.database.subscribe(jobs.CHANNEL, lambda _message: changed.set())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not holds((await setup.database.run(jobs.list_jobs(type="unsnooze.gmail", limit=1)))[0]):
                await signalled(changed, 0.2)
                changed.clear()
    finally:
        subscription.close()


async def test_only_mail_that_nothing_would_wake_is_woken_once(setup: MessageSetup, sweep: SnoozeSweep) -> None:
    account_id = await account_id_of(setup)
    assert await sweep(account_id) == 0, "there is no such label yet"
    done = await setup.do("snooze")
    assert done.undo_hint is not None
    label_id = done.undo_hint["snooze_label_id"]
    lost = hidden(setup.product, label_id)
    assert await sweep(account_id) == 1
    await until_job(setup, lambda job: job.state == "completed")
    assert "INBOX" in setup.product.mailbox.get(lost).labels
    assert label_id not in setup.product.mailbox.get(lost).labels
    assert label_id in setup.labels, "what has a waking of its own sleeps on"
    assert "INBOX" not in setup.labels
    assert await sweep(account_id) == 0


async def test_stored_mail_whose_waking_is_gone_is_woken(setup: MessageSetup, sweep: SnoozeSweep) -> None:
    done = await setup.do("snooze")
    assert done.undo_hint is not None
    await setup.database.run(jobs.cancel_job(UUID(done.undo_hint["unsnooze_job_id"]), wall_clock()))
    assert await sweep(await account_id_of(setup)) == 1
    await until_job(setup, lambda job: job.state == "completed")
    assert "INBOX" in setup.labels


async def test_while_paused_nothing_is_brought_back(setup: MessageSetup, sweep: SnoozeSweep) -> None:
    account_id = await account_id_of(setup)
    label_id = setup.product.mailbox.labels.create(LABEL, {}).id
    lost = hidden(setup.product, label_id)
    await setup.database.run(pauses.pause(pauses.ALL, "restored", setup.signed(), wall_clock()))
    assert await sweep(account_id) == 1
    await until_job(setup, lambda job: job.parked_by is not None)
    assert "INBOX" not in setup.product.mailbox.get(lost).labels
    assert await sweep(account_id) == 0, "its waking waits"
    await setup.database.run(pauses.resume(pauses.ALL, setup.signed(), wall_clock()))
    await until_job(setup, lambda job: job.state == "completed")
    assert "INBOX" in setup.product.mailbox.get(lost).labels

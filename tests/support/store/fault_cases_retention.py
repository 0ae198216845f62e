"""For each writing verb of retention and of searches in mailboxes: a database in which it has something to do."""

from typing import Any

from postroom.core.mail.retention import RetentionPolicy
from postroom.store.accounts import mailbox_searches
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail import retention
from postroom.store.mail.retention import ExpiredMessage, RetentionRun
from support.mail import keep_account, keep_mail
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

POLICY = RetentionPolicy(full_days=1).as_json()


async def prune_messages(setup: JobSetup) -> Transaction[Any]:
    id = await keep_mail(setup.database, setup.clock)
    return retention.prune_messages([ExpiredMessage(id, "full", ("finance",))], signed(), setup.clock())


async def merge_words(setup: JobSetup) -> Transaction[Any]:
    ids = [await keep_mail(setup.database, setup.clock, number) for number in range(3)]
    past = [ExpiredMessage(id, "full", ()) for id in ids[:2]]
    await setup.database.run(retention.prune_messages(past, signed(), setup.clock()))
    return retention.merge_words(-100)


async def record_run(setup: JobSetup) -> Transaction[Any]:
    now = setup.clock()
    return retention.record_run(RetentionRun(new_id(), True, POLICY, 1, 0, {}, "cli:ada", now, now))


async def approve_retention(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(retention.approve_retention({}, signed(), setup.clock()))
    return retention.approve_retention(POLICY, signed(), setup.clock())


async def withdraw_retention(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(retention.approve_retention(POLICY, signed(), setup.clock()))
    return retention.withdraw_retention(signed(), setup.clock())


async def begin_mailbox_search(setup: JobSetup) -> Transaction[Any]:
    account = await keep_account(setup.database, setup.clock())
    return mailbox_searches.begin_mailbox_search(account.id, 50, signed(), setup.clock(), 1)


CASES: list[Case] = [
    prune_messages,
    merge_words,
    record_run,
    approve_retention,
    withdraw_retention,
    begin_mailbox_search,
]

"""The `backfill.gmail` job: it calls the connector of a mailbox to its backfills, which then works by itself."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from postroom.core.actions.permits import HeldLease
from postroom.core.errors import Parked, Retryable
from postroom.core.jobs.job import Job
from postroom.jobs.run import JobRun
from postroom.store.accounts import accounts
from postroom.store.backfill import backfill
from postroom.store.backfill.backfill_work import LEASE, call_connectors
from postroom.store.engine.ids import new_id
from postroom.store.intake import connector_requests as requests
from postroom.store.intake.connector_requests import Reply
from postroom.triage.handlers.asking import AskConnector
from support.store.fault_cases_backfill import ENDPOINT, FINANCE, active, created, handing_out, reporting
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup


async def call(setup: JobSetup, job: Job, reply: Reply | None = None) -> None:
    """One attempt of the job, and the connector's answer to it."""
    run = JobRun(job, setup.database, setup.clock, HeldLease(0.0))
    answering = asyncio.create_task(_answer(setup, reply or Reply({"status": "idle", "asks_in_s": 0.0})))
    try:
        await AskConnector("backfill", setup.database, setup.clock)(run)
    finally:
        answering.cancel()
        await asyncio.wait({answering})


async def _answer(setup: JobSetup, reply: Reply) -> None:
    asked, token = asyncio.Event(), new_id()
    subscription = setup.database.subscribe(requests.ASKED, lambda _message: asked.set())
    lease = requests.lease_requests(ENDPOINT, 1, token, timedelta(seconds=60), setup.clock())
    try:
        while not (found := await setup.database.run(lease)):
            await asked.wait()
            asked.clear()
    finally:
        subscription.close()
    assert (found[0].kind, found[0].arguments) == ("backfill", {})
    await setup.database.run(requests.end_request(found[0].id, ENDPOINT, token, reply, setup.clock()))


async def called(setup: JobSetup) -> int:
    return await setup.database.run(call_connectors(new_id(), setup.clock()))


async def test_the_job_ends_with_the_answer_of_the_connector_and_has_no_successor(setup: JobSetup) -> None:
    await created(setup)
    job = await setup.claim_one()
    await call(setup, job)
    await setup.finish(job)
    assert await setup.counts() == {"completed": 1}


async def test_a_connector_that_cannot_be_called_is_called_again(setup: JobSetup) -> None:
    await created(setup)
    with pytest.raises(Retryable, match="is broken"):
        await call(setup, await setup.claim_one(), Reply(error="it is broken"))


async def test_the_job_of_a_paused_account_is_parked(setup: JobSetup) -> None:
    await created(setup)
    job = await setup.claim_one()
    [account] = await setup.database.run(accounts.list_accounts())
    await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    with pytest.raises(Parked):
        await call(setup, job)


async def test_a_mailbox_has_one_call_at_a_time(setup: JobSetup) -> None:
    await created(setup)
    await created(setup)
    assert await called(setup) == 0
    job = await setup.claim_one()
    assert await setup.claim() == []
    assert await called(setup) == 0
    await setup.finish(job)
    assert await called(setup) == 1


async def test_a_connector_is_called_while_nobody_holds_a_backfill_of_its_mailbox(setup: JobSetup) -> None:
    assert await called(setup) == 0
    job = await active(setup)
    await setup.finish(await setup.claim_one())
    await created(setup, replace(FINANCE, target_categories=("travel",)))
    await setup.finish(await setup.claim_one())
    assert await called(setup) == 0  # the first is held, and the second waits for it
    setup.clock.forward(LEASE.total_seconds() / 2)
    await setup.database.run(reporting(setup, job))
    setup.clock.forward(LEASE.total_seconds() / 2 + 1)
    assert await called(setup) == 0  # the report has renewed the lease
    setup.clock.forward(LEASE.total_seconds())
    assert await called(setup) == 1  # its connector has died


async def test_a_lease_written_by_a_wrong_clock_keeps_no_connector_from_being_called(setup: JobSetup) -> None:
    setup.clock.forward(86_400)
    await active(setup)
    await setup.finish(await setup.claim_one())
    setup.clock.forward(-86_400)
    assert await called(setup) == 1
    assert await setup.database.run(handing_out(setup)) is not None


@pytest.mark.parametrize("verb", [backfill.pause_backfill, backfill.cancel_backfill])
async def test_a_backfill_that_was_stopped_calls_nobody(setup: JobSetup, verb: Callable[..., Any]) -> None:
    job = await active(setup)
    await setup.finish(await setup.claim_one())
    await setup.database.run(verb(job.id, setup.clock(), signed()))
    setup.clock.forward(2 * LEASE.total_seconds())
    assert await called(setup) == 0


async def test_a_connector_whose_account_is_paused_is_not_called(setup: JobSetup) -> None:
    await created(setup)
    await setup.finish(await setup.claim_one())
    [account] = await setup.database.run(accounts.list_accounts())
    await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    assert await called(setup) == 0

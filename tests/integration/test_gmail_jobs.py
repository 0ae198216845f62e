"""The jobs of a mailbox: its labels are looked at, and its connector is asked to look now."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import httpx2
import pytest

from integration.product import ENDPOINT, OWNER, TOKEN, decided_action, until_job
from postroom.core.errors import Parked
from postroom.core.job_types import CATALOGUE
from postroom.core.jobs import JobView
from postroom.gmail.client import GmailClient
from postroom.handlers.action_gmail import ActionGmail
from postroom.handlers.history_sync import HistorySyncGmail
from postroom.handlers.labels_sync import LabelsSyncGmail
from postroom.jobs.run import Handler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.sandbox.emulator import Emulator
from postroom.sandbox.faults import Fault
from postroom.sandbox.mailbox import Mailbox
from postroom.sandbox.server import running_emulator
from postroom.store import actions, jobs, labels, mail
from postroom.store import connector_requests as requests
from postroom.store.clock import wall_clock
from postroom.store.database import Database, Text, transaction
from postroom.store.ids import new_id
from postroom.store.listeners import signalled
from postroom.store.new_jobs import new_job


@dataclass
class Office:
    database: Database
    emulator: Emulator
    client: GmailClient
    account_id: UUID

    async def job(self, type: str, **options: Any) -> UUID:
        payload = options.pop("payload", {"account_id": str(self.account_id)})
        job = new_job(CATALOGUE, type, payload, **options)
        await self.database.run(jobs.enqueue_many([job], wall_clock()))
        return job.id

    async def error_of(self, id: UUID) -> str:
        shown = await self.database.run(jobs.show_job(id))
        assert shown is not None
        return shown.last_error or ""


@pytest.fixture
async def office(database: Database) -> AsyncIterator[Office]:
    emulator = Emulator(Mailbox(OWNER, Random(1)), TOKEN)

    async def token() -> str:
        return TOKEN

    async with running_emulator(emulator) as address, httpx2.AsyncClient() as http:
        account = await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
        yield Office(database, emulator, GmailClient(http, address, token), account.id)


@asynccontextmanager
async def working(database: Database, handlers: Mapping[str, Handler]) -> AsyncGenerator[None]:
    worker = Worker(database, CATALOGUE, handlers, WorkerOptions(concurrency=4, poll=timedelta(seconds=0.1)))
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def test_the_labels_of_the_mailbox_are_taken_over(office: Office) -> None:
    await office.client.create_label("Receipts")
    async with working(
        office.database, {"labels.sync.gmail": LabelsSyncGmail(office.database, lambda _id: office.client)}
    ):
        await until_job(office.database, await office.job("labels.sync.gmail"), "completed")
    found = {each.name: each.kind for each in await office.database.run(labels.list_labels(office.account_id))}
    assert found["Receipts"] == "user"
    assert found["INBOX"] == "system"


async def test_a_mailbox_that_does_not_answer_fails_the_last_attempt_with_what_it_said(office: Office) -> None:
    office.emulator.faults.order(Fault(503, path="/labels", times=1))
    async with working(
        office.database, {"labels.sync.gmail": LabelsSyncGmail(office.database, lambda _id: office.client)}
    ):
        id = await office.job("labels.sync.gmail", max_attempts=1)
        await until_job(office.database, id, "failed")
    assert "503" in await office.error_of(id) or "server" in (await office.error_of(id)).lower()


async def test_a_look_is_asked_of_the_connector_and_what_it_says_ends_the_job(office: Office) -> None:
    database = office.database
    asked = asyncio.Event()
    database.subscribe(requests.ASKED, lambda _message: asked.set())
    async with working(database, {"history.sync.gmail": HistorySyncGmail(database)}):
        id = await office.job("history.sync.gmail")
        token = new_id()
        async with asyncio.timeout(20):
            while not (found := await _leased(database, token)):
                await asked.wait()
                asked.clear()
        reply = requests.Reply({"new": 3})
        await database.run(requests.end_request(found[0].id, ENDPOINT, token, reply, wall_clock()))
        await until_job(database, id, "completed")


async def test_a_look_that_nobody_answers_fails_with_who_was_asked(office: Office) -> None:
    handler = HistorySyncGmail(office.database, patience=timedelta(milliseconds=50))
    async with working(office.database, {"history.sync.gmail": handler}):
        id = await office.job("history.sync.gmail", max_attempts=1)
        await until_job(office.database, id, "failed")
    assert OWNER in await office.error_of(id)
    assert "connector list" in await office.error_of(id)


async def test_a_look_for_an_account_that_is_not_there_is_not_tried_again(office: Office) -> None:
    async with working(office.database, {"history.sync.gmail": HistorySyncGmail(office.database)}):
        id = await office.job("history.sync.gmail", payload={"account_id": str(new_id())})
        await until_job(office.database, id, "failed")


async def _leased(database: Database, token: UUID) -> list[requests.LeasedRequest]:
    return await database.run(requests.lease_requests(ENDPOINT, 1, token, timedelta(seconds=60), wall_clock()))


async def test_an_action_whose_job_is_parked_in_its_last_attempt_only_waits(office: Office) -> None:
    action_id, job_id = await decided_action(office.database, wall_clock, max_attempts=1)

    def without_consent(account_id: UUID) -> Any:
        raise Parked(f"account:{account_id}", "the consent is lost")

    @transaction
    def lose_consent() -> Any:
        yield Text("UPDATE accounts SET state = 'needs_consent', state_reason = 'revoked'")

    await office.database.run(lose_consent())
    parked = asyncio.Event()
    office.database.subscribe(jobs.CHANNEL, lambda _message: parked.set())
    async with working(office.database, {"action.gmail": ActionGmail(office.database, without_consent)}):
        async with asyncio.timeout(20):
            while (await _shown(office.database, job_id)).parked_by is None:
                await signalled(parked, 0.2)
                parked.clear()
    assert (await office.database.run(actions.load_action(action_id))).state in ("queued", "executing")


async def _shown(database: Database, id: UUID) -> JobView:
    shown = await database.run(jobs.show_job(id))
    assert shown is not None
    return shown

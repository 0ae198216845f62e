"""The jobs of a mailbox: its labels are synced, and its connector is asked to sync now."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import httpx2
import pytest

from postroom.core.actions.permits import Permit
from postroom.core.errors import Parked
from postroom.core.jobs.job import JobView
from postroom.core.jobs.types import CATALOGUE
from postroom.jobs.run import Handler
from postroom.jobs.worker import Worker, WorkerOptions
from postroom.mailboxes.following.request_handlers import RequestHandlers
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.mailbox import GmailMailbox
from postroom.sources.request_server import RequestServer
from postroom.store.accounts.mailbox_jobs import ask_for_messages
from postroom.store.actions import actions
from postroom.store.engine.database import Database, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.engine.listeners import signalled
from postroom.store.intake import connector_requests as requests
from postroom.store.jobs import jobs
from postroom.store.jobs.new_jobs import new_job
from postroom.store.mail import labels, mail
from postroom.system.wall_clock import wall_clock
from postroom.triage.act.executor import Executor
from postroom.triage.handlers.action_gmail import ActionGmail
from postroom.triage.handlers.asking import AskConnector
from postroom.triage.handlers.ingest_gmail import IngestGmail
from postroom.triage.handlers.labels_sync import LabelsSyncGmail
from postroom_sandbox.emulator import Emulator
from postroom_sandbox.faults import Fault
from postroom_sandbox.mailbox import Mailbox
from postroom_sandbox.server import running_emulator
from support.clocks import ManualClock
from support.gates import owners_client
from support.gmail_setup import gmail_setup
from support.mailboxes import always, given
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, decided_action, raw_mail, until_job
from support.store.fault_cases_registry import signed


@dataclass
class GmailJobsSetup:
    database: Database
    emulator: Emulator
    client: GmailClient
    account_id: UUID

    async def job(self, type: str, **options: Any) -> UUID:
        payload = options.pop("payload", {"account_id": str(self.account_id)})
        job = new_job(CATALOGUE, type, payload, **options)
        await self.database.run(jobs.enqueue_many([job], wall_clock()))
        return job.id

    async def ingest_job(self) -> UUID:
        return await self.job("ingest.gmail", payload={"account_id": str(self.account_id), "message_id": "18c0"})

    async def error_of(self, id: UUID) -> str:
        shown = await self.database.run(jobs.show_job(id))
        assert shown is not None
        return shown.last_error or ""


@pytest.fixture
async def jobs_setup(database: Database) -> AsyncIterator[GmailJobsSetup]:
    emulator = Emulator(Mailbox(OWNER, Random(1)), TOKEN)

    async def token() -> str:
        return TOKEN

    async with running_emulator(emulator) as address, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        account = await database.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
        yield GmailJobsSetup(database, emulator, owners_client(http, address, token), account.id)


@asynccontextmanager
async def working(database: Database, handlers: Mapping[str, Handler]) -> AsyncGenerator[None]:
    worker = Worker(database, CATALOGUE, handlers, WorkerOptions(concurrency=4, poll=timedelta(seconds=0.1)))
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def test_the_labels_of_the_mailbox_are_taken_over(jobs_setup: GmailJobsSetup) -> None:
    await jobs_setup.client.create_label("Receipts")
    async with working(
        jobs_setup.database,
        {"labels.sync.gmail": LabelsSyncGmail(jobs_setup.database, always(GmailMailbox(jobs_setup.client)))},
    ):
        await until_job(jobs_setup.database, await jobs_setup.job("labels.sync.gmail"), "completed")
    found = {each.name: each.kind for each in await jobs_setup.database.run(labels.list_labels(jobs_setup.account_id))}
    assert found["Receipts"] == "user"
    assert found["INBOX"] == "system"


async def test_a_mailbox_that_does_not_answer_fails_the_last_attempt_with_what_it_said(
    jobs_setup: GmailJobsSetup,
) -> None:
    jobs_setup.emulator.faults.order(Fault(503, path="/labels", times=1))
    async with working(
        jobs_setup.database,
        {"labels.sync.gmail": LabelsSyncGmail(jobs_setup.database, always(GmailMailbox(jobs_setup.client)))},
    ):
        id = await jobs_setup.job("labels.sync.gmail", max_attempts=1)
        await until_job(jobs_setup.database, id, "failed")
    assert "503" in await jobs_setup.error_of(id) or "server" in (await jobs_setup.error_of(id)).lower()


async def test_a_look_is_asked_of_the_connector_and_what_it_says_ends_the_job(jobs_setup: GmailJobsSetup) -> None:
    async with working(jobs_setup.database, {"history.sync.gmail": AskConnector("sync_now", jobs_setup.database)}):
        id = await jobs_setup.job("history.sync.gmail")
        found = await _answered(jobs_setup.database, requests.Reply({"new": 3}))
        assert (found.kind, found.arguments) == ("sync_now", {})
        await until_job(jobs_setup.database, id, "completed")


async def test_a_look_that_nobody_answers_fails_with_who_was_asked(jobs_setup: GmailJobsSetup) -> None:
    handler = AskConnector("sync_now", jobs_setup.database, patience=timedelta(milliseconds=50))
    async with working(jobs_setup.database, {"history.sync.gmail": handler}):
        id = await jobs_setup.job("history.sync.gmail", max_attempts=1)
        await until_job(jobs_setup.database, id, "failed")
    assert OWNER in await jobs_setup.error_of(id)
    assert "connector list" in await jobs_setup.error_of(id)


async def test_a_look_for_an_account_that_is_not_there_is_not_tried_again(jobs_setup: GmailJobsSetup) -> None:
    async with working(jobs_setup.database, {"history.sync.gmail": AskConnector("sync_now", jobs_setup.database)}):
        id = await jobs_setup.job("history.sync.gmail", payload={"account_id": str(new_id())})
        await until_job(jobs_setup.database, id, "failed")


async def _taken(database: Database) -> requests.LeasedRequest:
    """The next request, taken as a connector takes it."""
    asked, token = asyncio.Event(), new_id()
    subscription = database.subscribe(requests.ASKED, lambda _message: asked.set())
    leasing = timedelta(seconds=60)
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await database.run(requests.lease_requests(ENDPOINT, 1, token, leasing, wall_clock()))):
            await signalled(asked, 0.2)
            asked.clear()
    subscription.close()
    return found[0]


async def _answered(database: Database, reply: requests.Reply) -> requests.LeasedRequest:
    taken = await _taken(database)
    await database.run(requests.end_request(taken.id, ENDPOINT, taken.lease_token, reply, wall_clock()))
    return taken


def _ended(end: str, reason: str | None = None, id: str = "18c0") -> requests.Reply:
    return requests.Reply({"messages": [{"id": id, "end": end, "reason": reason}]})


ENDS = [
    (_ended("new"), "completed", ""),
    (_ended("duplicate"), "completed", ""),
    (_ended("skipped", "an ingestion rule leaves it out"), "completed", ""),
    (_ended("gone"), "failed", "no longer in the mailbox"),
    (_ended("refused", "BadInput: payload"), "failed", "BadInput: payload; `postroom connector refused` lists it"),
]
NO_ENDS = [
    (_ended("failed", "ServerError: 503"), "ServerError: 503"),
    (_ended("new", id="another"), "the answer does not name it"),
    (requests.Reply({"messages": "?"}), "the answer does not name it"),
    (requests.Reply(error="Unreachable: no answer from Gmail"), "no answer from Gmail"),
]


async def test_a_message_that_is_asked_for_ends_its_job_as_it_ends(jobs_setup: GmailJobsSetup) -> None:
    async with working(jobs_setup.database, {"ingest.gmail": IngestGmail(jobs_setup.database)}):
        for reply, state, told in ENDS:
            id = await jobs_setup.ingest_job()
            found = await _answered(jobs_setup.database, reply)
            assert (found.kind, found.arguments) == ("ingest", {"message_ids": ["18c0"]})
            await until_job(jobs_setup.database, id, state)
            assert told in await jobs_setup.error_of(id)
            assert (await _shown(jobs_setup.database, id)).attempts == 1


async def test_a_message_that_could_not_be_read_for_now_is_asked_for_again(jobs_setup: GmailJobsSetup) -> None:
    async with working(jobs_setup.database, {"ingest.gmail": IngestGmail(jobs_setup.database)}):
        for reply, told in NO_ENDS:
            id = await jobs_setup.ingest_job()
            await _answered(jobs_setup.database, reply)
            await _until(jobs_setup.database, id, lambda job: job.last_error is not None)
            shown = await _shown(jobs_setup.database, id)
            assert (shown.state, shown.not_before is not None) == ("queued", True)
            assert told in (shown.last_error or "")


def _all_ended(*ends: tuple[str, str, str | None]) -> requests.Reply:
    return requests.Reply({"messages": [{"id": id, "end": end, "reason": reason} for id, end, reason in ends]})


async def test_several_messages_are_asked_for_at_once_and_those_that_failed_for_good_are_named(
    jobs_setup: GmailJobsSetup,
) -> None:
    ids = [f"18c{number}" for number in range(4)]
    async with working(jobs_setup.database, {"ingest.gmail": IngestGmail(jobs_setup.database)}):
        asked = ask_for_messages(jobs_setup.account_id, ids, signed(), wall_clock())
        job, *others = await jobs_setup.database.run(asked)
        assert all(each.id == job.id for each in others)
        reply = _all_ended(
            ("18c0", "new", None), ("18c1", "refused", "BadInput: x"), ("18c2", "skipped", None), ("18c3", "gone", None)
        )
        found = await _answered(jobs_setup.database, reply)
        assert found.arguments == {"message_ids": ids}
        await until_job(jobs_setup.database, job.id, "failed")
    told = await jobs_setup.error_of(job.id)
    assert told.startswith("2 of 4: message 18c1 was refused: BadInput: x; ")
    assert "message 18c3 is no longer in the mailbox" in told
    (step,) = [each for each in (await _shown(jobs_setup.database, job.id)).steps if each.kind == "step"]
    assert json.loads(step.result_json or "")[1] == ["18c1", "refused", "BadInput: x"]


async def test_several_messages_are_asked_for_again_while_one_could_not_be_read(jobs_setup: GmailJobsSetup) -> None:
    async with working(jobs_setup.database, {"ingest.gmail": IngestGmail(jobs_setup.database)}):
        asked = ask_for_messages(jobs_setup.account_id, ["18c0", "18c1"], signed(), wall_clock())
        job, _ = await jobs_setup.database.run(asked)
        reply = _all_ended(("18c0", "gone", None), ("18c1", "failed", "ServerError: 503"))
        await _answered(jobs_setup.database, reply)
        await _until(jobs_setup.database, job.id, lambda job: job.last_error is not None)
    shown = await _shown(jobs_setup.database, job.id)
    assert (shown.state, shown.last_error) == ("queued", "1 of 2: message 18c1 could not be read: ServerError: 503")


async def test_a_connector_with_too_many_requests_is_asked_again_when_those_are_over(
    jobs_setup: GmailJobsSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MOST_LIVE", 1)
    waiting = requests.NewRequest(new_id(), ENDPOINT, "search", {}, wall_clock() + timedelta(minutes=5))
    await jobs_setup.database.run(requests.ask_connector(waiting, wall_clock()))
    async with working(jobs_setup.database, {"ingest.gmail": IngestGmail(jobs_setup.database)}):
        id = await jobs_setup.ingest_job()
        await _until(jobs_setup.database, id, lambda job: job.last_error is not None)
    shown = await _shown(jobs_setup.database, id)
    assert f"the connector of {OWNER} has 1 requests waiting already" in (shown.last_error or "")
    assert shown.not_before is not None
    assert shown.not_before > wall_clock() + timedelta(minutes=4)


async def test_a_message_is_ingested_from_end_to_end_by_its_job(
    sqlite: Database, clock: ManualClock, tmp_path: Path
) -> None:
    account = await sqlite.run(mail.keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    async with gmail_setup(sqlite, clock, tmp_path / "state") as setup:
        message = setup.mailbox.deliver(raw_mail("old"), received_at=clock() - timedelta(days=400))

        async def token() -> str:
            return TOKEN

        client = GmailClient(setup.http, setup.address, token)
        answering = RequestServer(setup.board, RequestHandlers(setup.connector(), client).handlers(), beside=1).run(
            asyncio.Event()
        )
        connector = asyncio.create_task(answering)
        async with working(sqlite, {"ingest.gmail": IngestGmail(sqlite)}):
            (job,) = await sqlite.run(ask_for_messages(account.id, [message.id], signed(), wall_clock()))
            await until_job(sqlite, job.id, "completed")
        connector.cancel()
        await asyncio.wait({connector})
        assert set(await setup.waiting()) == {message.id}


@pytest.mark.parametrize("state", ["paused", "needs_consent"])
async def test_what_needs_a_mailbox_waits_while_a_person_has_to_act(jobs_setup: GmailJobsSetup, state: str) -> None:
    await jobs_setup.database.run(_set_state(state))
    async with working(jobs_setup.database, {"ingest.gmail": IngestGmail(jobs_setup.database)}):
        id = await jobs_setup.ingest_job()
        await _until(jobs_setup.database, id, lambda job: job.parked_by is not None)
    assert (await _shown(jobs_setup.database, id)).parked_by == f"account:{jobs_setup.account_id}"


async def test_a_consent_that_is_lost_in_the_attempt_parks_the_job_too(jobs_setup: GmailJobsSetup) -> None:
    async with working(jobs_setup.database, {"history.sync.gmail": AskConnector("sync_now", jobs_setup.database)}):
        id = await jobs_setup.job("history.sync.gmail")
        taken = await _taken(jobs_setup.database)
        await jobs_setup.database.run(_set_state("needs_consent"))
        lost = requests.Reply(error="AccountUnusable: the consent is lost")
        await jobs_setup.database.run(requests.end_request(taken.id, ENDPOINT, taken.lease_token, lost, wall_clock()))
        await _until(jobs_setup.database, id, lambda job: job.parked_by is not None)


async def test_a_job_that_names_no_message_is_not_tried_again(jobs_setup: GmailJobsSetup) -> None:
    wrong: list[dict[str, Any]] = [{}, {"message_id": ""}, {"message_id": 7}, {"message_ids": []}]
    async with working(jobs_setup.database, {"ingest.gmail": IngestGmail(jobs_setup.database)}):
        for payload in wrong:
            id = await jobs_setup.job("ingest.gmail", payload={"account_id": str(jobs_setup.account_id), **payload})
            await until_job(jobs_setup.database, id, "failed")
            assert "message_id" in await jobs_setup.error_of(id)


@transaction
def _set_state(state: str) -> Any:
    yield Text(f"UPDATE accounts SET state = '{state}', state_reason = 'because'")


async def _until(database: Database, id: UUID, condition: Callable[[JobView], bool]) -> None:
    moved = asyncio.Event()
    database.subscribe(jobs.CHANNEL, lambda _message: moved.set())
    async with asyncio.timeout(PATIENCE_S):
        while not condition(await _shown(database, id)):
            await signalled(moved, 0.1)
            moved.clear()


async def test_an_action_whose_job_is_parked_in_its_last_attempt_only_waits(jobs_setup: GmailJobsSetup) -> None:
    action_id, job_id = await decided_action(jobs_setup.database, wall_clock, max_attempts=1)

    def without_consent(permit: Permit) -> Any:
        raise Parked(f"account:{permit.account_id}", "the consent is lost")

    await jobs_setup.database.run(_set_state("needs_consent"))
    executor = Executor(jobs_setup.database, CATALOGUE, wall_clock)
    async with working(jobs_setup.database, {"action.gmail": ActionGmail(executor, given(without_consent), 20)}):
        await _until(jobs_setup.database, job_id, lambda job: job.parked_by is not None)
    assert (await jobs_setup.database.run(actions.load_action(action_id))).state in ("queued", "executing")


async def _shown(database: Database, id: UUID) -> JobView:
    shown = await database.run(jobs.show_job(id))
    assert shown is not None
    return shown

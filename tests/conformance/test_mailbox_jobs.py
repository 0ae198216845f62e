"""The jobs of a mailbox: a sync when an account is used again, and one ingest job per message at a time."""

import json

import pytest

from postroom.core.errors import StoreError
from postroom.core.jobs.job import JobView
from postroom.store.accounts import accounts, mailbox_jobs
from postroom.store.accounts.mailbox_jobs import ask_for_messages
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from support.store.fault_cases_accounts import connected
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup


async def listed(setup: JobSetup, type: str) -> list[JobView]:
    return await setup.database.run(jobs.list_jobs(type=type))


async def test_an_account_that_is_connected_is_looked_at(setup: JobSetup) -> None:
    account = await connected(setup)
    (job,) = await listed(setup, "history.sync.gmail")
    assert (job.state, json.loads(job.payload_json)) == ("queued", {"account_id": str(account.id)})


async def test_one_that_is_resumed_is_looked_at_once_more_and_one_look_at_a_time_is_enough(setup: JobSetup) -> None:
    account = await connected(setup)
    await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    await setup.database.run(accounts.resume_account(account.id, signed(), setup.clock()))
    assert len(await listed(setup, "history.sync.gmail")) == 1
    (job,) = await setup.claim()
    await setup.database.run(jobs.finish([job.claim], [job.seq], setup.clock()))
    await setup.database.run(accounts.pause_account(account.id, signed(), setup.clock()))
    assert len(await listed(setup, "history.sync.gmail")) == 1
    await setup.database.run(accounts.resume_account(account.id, signed(), setup.clock()))
    assert [each.state for each in await listed(setup, "history.sync.gmail")] == ["queued", "completed"]


async def test_a_message_is_asked_for_once_while_its_job_is_live(setup: JobSetup) -> None:
    account_id = new_id()
    (first,) = await setup.database.run(ask_for_messages(account_id, ["18c0"], signed(), setup.clock()))
    assert not first.duplicate
    await setup.claim()
    (running,) = await setup.database.run(ask_for_messages(account_id, ["18c0"], signed(), setup.clock()))
    assert running == (first.id, True)
    (job,) = await listed(setup, "ingest.gmail")
    assert job.idempotency_key == f"ingest.gmail:{account_id}:18c0"
    assert json.loads(job.payload_json) == {"account_id": str(account_id), "message_id": "18c0"}


async def test_many_messages_are_few_jobs_and_the_same_ones_are_asked_for_once(setup: JobSetup) -> None:
    account_id, ids = new_id(), [f"18c{number}" for number in range(201)]
    first = await setup.database.run(ask_for_messages(account_id, ids, signed(), setup.clock()))
    assert [first.index(each) for each in first] == [0] * 100 + [100] * 100 + [200]
    found = {each.id: json.loads(each.payload_json) for each in await listed(setup, "ingest.gmail")}
    assert found[first[0].id]["message_ids"] == ids[:100]
    assert found[first[100].id]["message_ids"] == ids[100:200]
    assert found[first[200].id]["message_id"] == ids[200]
    again = await setup.database.run(ask_for_messages(account_id, ids, signed(), setup.clock()))
    assert [(each.id, each.duplicate) for each in again] == [(each.id, True) for each in first]
    assert len(await listed(setup, "ingest.gmail")) == 3


async def test_a_message_whose_job_has_ended_is_asked_for_under_the_next_generation(setup: JobSetup) -> None:
    account_id = new_id()
    for generation in range(1, 4):
        ((id, duplicate),) = await setup.database.run(ask_for_messages(account_id, ["18c0"], signed(), setup.clock()))
        shown = await setup.database.run(jobs.show_job(id))
        assert shown is not None
        suffix = "" if generation == 1 else f":{generation}"
        assert (duplicate, shown.idempotency_key) == (False, f"ingest.gmail:{account_id}:18c0{suffix}")
        (job,) = await setup.claim()
        await setup.database.run(jobs.fail(job, "gone", setup.clock()))


async def test_a_message_cannot_be_asked_for_without_end(setup: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox_jobs, "MOST_GENERATIONS", 1)
    account_id = new_id()
    await setup.database.run(ask_for_messages(account_id, ["18c0"], signed(), setup.clock()))
    (job,) = await setup.claim()
    await setup.database.run(jobs.fail(job, "gone", setup.clock()))
    with pytest.raises(StoreError, match="postroom jobs list"):
        await setup.database.run(ask_for_messages(account_id, ["18c0"], signed(), setup.clock()))

"""Jobs found by type, state, error and account, and what is done with all of them."""

from uuid import UUID

import pytest

from postroom.core.errors import IllegalMove, NotFound, UnknownJobType
from postroom.operations.caller import Caller
from postroom.operations.jobs.jobs import JobSelection, apply_to_jobs, dismiss_job, select_jobs
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs
from support.mail import OWNER, keep_account
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup


async def failed(setup: JobSetup, error: str, type: str = "classify", **payload: str) -> UUID:
    from postroom.core.jobs.types import CATALOGUE
    from postroom.store.jobs.new_jobs import new_job

    await setup.database.run(jobs.enqueue_many([new_job(CATALOGUE, type, payload)], setup.clock()))
    job = await setup.claim_one()
    await setup.fail(job, error)
    return job.id


async def state(setup: JobSetup, id: UUID) -> str:
    job = await setup.database.run(jobs.show_job(id))
    assert job is not None
    return job.state


async def test_jobs_are_found_by_all_that_is_given(setup: JobSetup) -> None:
    account = await keep_account(setup.database, setup.clock())
    first = await failed(setup, "HTTP 503: 100% busy", account_id=str(account.id))
    second = await failed(setup, "http 503", "action.gmail", account_id=str(new_id()))
    third = await failed(setup, "a_b|c")
    selections = [
        (JobSelection(state="failed"), [first, second, third]),
        (JobSelection(type="action.gmail"), [second]),
        (JobSelection(error="503"), [first, second]),
        (JobSelection(error="http 503: 100%"), [first]),
        (JobSelection(error="1%b"), []),
        (JobSelection(error="aXb"), []),
        (JobSelection(error="a_b|c"), [third]),
        (JobSelection(account=OWNER), [first]),
        (JobSelection(type="classify", account=OWNER, error="busy"), [first]),
        (JobSelection(state="completed"), []),
    ]
    for selection, ids in selections:
        assert list((await select_jobs(setup.database, "retry", selection)).ids) == ids, selection
    found = await select_jobs(setup.database, "dismiss", JobSelection(error="503"))
    assert found.by_type == {"classify": 1, "action.gmail": 1}
    with pytest.raises(UnknownJobType):
        await select_jobs(setup.database, "retry", JobSelection(type="clasify"))


async def test_all_that_match_are_retried_canceled_or_dismissed_and_what_moved_on_stays(setup: JobSetup) -> None:
    one, other = await failed(setup, "x"), await failed(setup, "x")
    assert await apply_to_jobs(Caller(setup.database, signed(), setup.clock), "dismiss", [one, other, new_id()]) == 2
    assert [await state(setup, id) for id in (one, other)] == ["canceled", "canceled"]
    assert await apply_to_jobs(Caller(setup.database, signed(), setup.clock), "dismiss", [one]) == 0
    assert await apply_to_jobs(Caller(setup.database, signed(), setup.clock), "retry", [one, new_id()]) == 1
    assert await state(setup, one) == "queued"
    assert await apply_to_jobs(Caller(setup.database, signed(), setup.clock), "cancel", [one, other]) == 1
    assert await state(setup, one) == "canceled"


async def test_only_a_failed_job_is_dismissed(setup: JobSetup) -> None:
    waiting = await setup.enqueue()
    with pytest.raises(IllegalMove, match="only failed jobs are dismissed"):
        await dismiss_job(Caller(setup.database, signed(), setup.clock), waiting.id)
    with pytest.raises(NotFound):
        await dismiss_job(Caller(setup.database, signed(), setup.clock), new_id())

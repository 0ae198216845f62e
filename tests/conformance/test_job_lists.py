"""Jobs by stage: each in one, in pages by key, and counted up to a limit."""

from datetime import timedelta
from uuid import UUID

import pytest

from postroom.core.jobs.job import Job
from postroom.store.engine.ids import new_id
from postroom.store.jobs import job_lists
from postroom.store.jobs.job_lists import STAGES, JobQuestion, Stage, list_by_stage
from support.store.job_setup import JobSetup


async def one_of_each(setup: JobSetup) -> dict[str, UUID]:
    """A job in every stage."""
    made: dict[str, UUID] = {}
    jobs: dict[str, Job] = {}
    for stage in ("completed", "failed", "canceled", "parked", "retrying", "running"):
        jobs[stage] = await setup.claimed()
        made[stage] = jobs[stage].id
    await setup.finish(jobs["completed"])
    await setup.fail(jobs["failed"], "Broken 50 %")
    await setup.cancel_claimed(jobs["canceled"])
    await setup.park(jobs["parked"])
    await setup.retry_later(jobs["retrying"], 60, "try again")
    made["scheduled"] = (await setup.enqueue(not_before=setup.clock() + timedelta(hours=1))).id
    made["ready"] = (await setup.enqueue("other", {"account_id": str(ACCOUNT)})).id
    return made


ACCOUNT = new_id()


async def found(setup: JobSetup, asked: JobQuestion, most: int = 50) -> list[UUID]:
    """All pages, one after another."""
    ids: list[UUID] = []
    before: str | None = None
    while True:
        listed = await setup.database.run(list_by_stage(asked, before, most))
        ids += [each.id for each in listed.jobs]
        if listed.before is None:
            return ids
        assert job_lists.is_key(asked.stage, listed.before)
        before = listed.before


@pytest.mark.parametrize("stage", STAGES)
async def test_a_job_is_listed_in_its_stage_and_in_no_other(setup: JobSetup, stage: Stage) -> None:
    made = await one_of_each(setup)
    assert await found(setup, JobQuestion(stage)) == [made[stage]]


async def test_without_a_stage_all_are_listed_newest_first(setup: JobSetup) -> None:
    made = await one_of_each(setup)
    assert await found(setup, JobQuestion(), 3) == list(made.values())[::-1]


async def test_a_filter_finds_by_type_account_and_a_part_of_the_error(setup: JobSetup) -> None:
    made = await one_of_each(setup)
    assert await found(setup, JobQuestion(type="other")) == [made["ready"]]
    assert await found(setup, JobQuestion("ready", "other", ACCOUNT)) == [made["ready"]]
    assert await found(setup, JobQuestion("ready", account_id=new_id())) == []
    assert await found(setup, JobQuestion("failed", error="n 50 %")) == [made["failed"]]
    assert await found(setup, JobQuestion("failed", error="n_50")) == []
    assert await found(setup, JobQuestion("retrying", error="AGAIN")) == [made["retrying"]]


@pytest.mark.parametrize("stage", ["ready", "failed", "canceled", "completed", "running"])
async def test_pages_leave_out_nothing_and_repeat_nothing(setup: JobSetup, stage: Stage) -> None:
    """Also when several ended at the same time."""
    for _ in range(7):
        await setup.enqueue()
    jobs = [] if stage == "ready" else await setup.claim()
    for place, job in enumerate(jobs):
        if place % 3 == 0:
            setup.clock.forward(1)
        match stage:
            case "failed":
                await setup.fail(job)
            case "canceled":
                await setup.cancel_claimed(job)
            case "completed":
                await setup.finish(job)
            case _:
                pass
    ids = await found(setup, JobQuestion(stage), 2)
    assert len(ids) == len(set(ids)) == 7


async def test_a_page_looks_at_a_limited_number_and_says_where_to_go_on(
    setup: JobSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_lists, "LOOKED_AT", 3)
    old = await setup.enqueue("other")
    for _ in range(5):
        await setup.enqueue()
    first = await setup.database.run(list_by_stage(JobQuestion("ready", "other"), None, 50))
    assert first.jobs == []
    assert first.before is not None
    assert await found(setup, JobQuestion("ready", "other")) == [old.id]
    assert await found(setup, JobQuestion(type="other")) == [old.id]
    for job in await setup.claim():
        setup.clock.forward(1)
        await setup.fail(job)
    assert await found(setup, JobQuestion("failed", "other")) == [old.id]


async def test_stages_are_counted_up_to_a_limit(setup: JobSetup) -> None:
    await one_of_each(setup)
    await setup.enqueue()
    await setup.enqueue()
    counts = await setup.database.run(job_lists.count_stages(2))
    others = ("running", "scheduled", "retrying", "parked", "failed", "canceled")
    assert counts == {"ready": 2, **dict.fromkeys(others, 1)}


async def test_a_worker_is_listed_with_what_it_runs(setup: JobSetup) -> None:
    busy, idle = await setup.open_lease("busy"), await setup.open_lease("idle")
    await setup.claimed_by(busy)
    workers = await setup.database.run(job_lists.list_workers())
    assert [(each.holder, each.running) for each in workers] == [("busy", 1), ("idle", 0)]
    assert workers[0].lease_until > setup.clock() == workers[0].heartbeat_at
    assert idle != busy


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("ready", "x"),
        ("ready", "-1"),
        ("ready", "9" * 40),
        ("failed", "7"),
        ("failed", "2026-01-01_1"),
        ("failed", "x_y"),
    ],
)
def test_what_is_no_key_is_recognised(stage: Stage, text: str) -> None:
    assert not job_lists.is_key(stage, text)

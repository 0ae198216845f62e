"""The pages of jobs, on both databases: what they show, each filter, each act and its entry in the audit log."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visiting import OWNER
from postroom.interfaces.http.application import create_application
from postroom.operations.jobs import jobs as jobs_of_people
from postroom.store.engine.database import Database
from postroom.store.intake.queue_depths import DepthSample, keep_depths
from postroom.store.jobs import jobs
from postroom.store.people.audit import list_audit
from support.attacks import ATTACKS, assert_harmless
from support.clocks import ManualClock
from support.intake_pages import IntakeSetup, intake_pages, said_in, visiting
from support.page_app import as_visitor, parts_in, visitor
from support.page_forms import submit
from support.until import until


@pytest.fixture
def setup(database: Database, tmp_path: Path, clock: ManualClock) -> IntakeSetup:
    return IntakeSetup(database, tmp_path, clock)


@pytest.fixture
async def page(setup: IntakeSetup) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting(setup) as client:
        yield client


async def text(page: httpx2.AsyncClient, address: str) -> str:
    answer = await page.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


async def state(setup: IntakeSetup, id: object) -> str:
    shown = await setup.database.run(jobs.show_job(id))  # type: ignore[arg-type]
    assert shown is not None
    return shown.state


async def test_the_page_shows_stages_rates_causes_and_workers(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    await setup.completed(3)
    await setup.failed("the label 41 is gone", "the label 42 is gone", "no answer within 20 s")
    await setup.job()
    await setup.count()
    shown = await text(page, "/jobs")
    assert re.search(r"Failed</span><b class=\"fault\">3</b>", shown)
    assert re.search(r"Ready</span><b>1</b>", shown)
    assert re.search(r"Done, 24h</span><b>3</b>", shown)
    assert "3 jobs, 2 causes" in shown
    assert "the label … is gone" in shown
    assert "Retry 2" in shown
    assert "host-1:4711" in shown
    assert "completed: from 3 to 3, last 3, nothing recorded in 24 of 25" in shown
    assert "≤ 256 ms" in shown
    earlier = setup.clock() - timedelta(hours=3)
    await setup.database.run(keep_depths([DepthSample("email", "default", 0)], earlier))
    assert "completed: from 0 to 3, last 3, nothing recorded in 23 of 25" in await text(page, "/jobs")


async def test_an_empty_page_says_why_and_what_next(page: httpx2.AsyncClient) -> None:
    shown = await text(page, "/jobs")
    assert "No worker runs." in shown
    assert "nothing failed" in shown
    assert "Jobs show up here as soon as mail arrives." in shown


async def test_each_filter_narrows_the_list(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    account = await setup.connect()
    already = {str(each.id) for each in await setup.database.run(jobs.list_jobs())}
    (one,) = await setup.failed("quota is used up", payload={"account_id": str(account)})
    (two,) = await setup.failed("label gone", type="action.gmail")
    three = await setup.job()

    async def listed(address: str) -> set[str]:
        return set(re.findall(r'id="j-([0-9a-f-]+)"', await text(page, address))) - already

    assert await listed("/jobs") == {str(one), str(two), str(three)}
    assert await listed("/jobs?stage=failed") == {str(one), str(two)}
    assert await listed("/jobs?type=action.gmail") == {str(two)}
    assert await listed("/jobs?account=mara@lindqvist.example") == {str(one)}
    assert await listed("/jobs?stage=failed&error=QUOTA") == {str(one)}


async def test_pages_follow_by_key(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    made = {str(await setup.job()) for _ in range(60)}
    first = await text(page, "/jobs?stage=ready")
    older = re.search(r'href="(/jobs\?before=\d+&amp;stage=ready)#list" rel="next"', first)
    assert older is not None
    rest = await text(page, older[1].replace("&amp;", "&"))
    found = [*re.findall(r'id="j-([0-9a-f-]+)"', first), *re.findall(r'id="j-([0-9a-f-]+)"', rest)]
    assert len(found) == 60
    assert set(found) == made


async def test_what_makes_no_sense_is_refused_with_words(page: httpx2.AsyncClient) -> None:
    for address, status, words in (
        ("/jobs?stage=lost", 400, "choose one of"),
        ("/jobs?type=clasify", 400, "classify"),
        ("/jobs?account=nobody@x.example", 400, "no account"),
        ("/jobs?stage=failed&before=7", 400, "no place in this list"),
        ("/jobs?before=-1", 400, "no place in this list"),
        ("/jobs?window=2y", 400, "choose one of"),
        ("/jobs/nonsense", 404, "no id of a job"),
        (f"/jobs/{uuid4()}", 404, "there is no job"),
    ):
        answer = await page.get(address)
        assert (address, answer.status_code) == (address, status)
        assert words in answer.text


async def test_one_job_is_shown_with_its_steps_and_retried_canceled_and_dismissed(
    setup: IntakeSetup, page: httpx2.AsyncClient
) -> None:
    account, message = await setup.connect(), uuid4()
    payload = {"account_id": str(account), "message_id": str(message)}
    (id,) = await setup.failed("the label is gone", payload=payload)
    shown = await text(page, f"/jobs/{id}")
    for words in (
        "Enqueued",
        "Failed",
        "the label is gone",
        "mara@lindqvist.example",
        f'href="/mail/{message}"',
        "1 of 40",
    ):
        assert words in shown

    answer = await submit(page, f"/jobs/{id}/dismiss", back=f"/jobs/{id}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{id}")
    assert await state(setup, id) == "canceled"
    assert "A person dismissed it" in await text(page, f"/jobs/{id}")
    assert said_in(await submit(page, f"/jobs/{id}/dismiss")).mood == "bad"
    assert said_in(await submit(page, f"/jobs/{id}/retry")).sentence == "The job is queued again."
    assert await state(setup, id) == "queued"
    assert said_in(await submit(page, f"/jobs/{id}/cancel")).mood == "good"
    assert await state(setup, id) == "canceled"
    assert await setup.audited() == ["job.dismiss", "job.retry", "job.cancel"]


async def test_a_cause_is_solved_for_all_its_jobs_at_once(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    alike = await setup.failed("the label 41 is gone", "the label 42 is gone")
    (other,) = await setup.failed("no answer")
    key = re.search(r'id="cause-([0-9a-f]+)"', await text(page, "/jobs"))
    assert key is not None
    answer = await submit(page, "/jobs/cause/retry", {"cause": key[1]}, back="/jobs")
    assert said_in(answer).sentence == "2 of 2 jobs queued again."
    assert [await state(setup, id) for id in [*alike, other]] == ["queued", "queued", "failed"]
    assert said_in(await submit(page, "/jobs/cause/retry", {"cause": key[1]})).mood == "bad"
    assert await setup.audited() == ["job.retry_many"]


async def test_a_bulk_act_says_its_count_first_and_touches_no_job_that_came_later(
    setup: IntakeSetup, page: httpx2.AsyncClient
) -> None:
    made = await setup.failed("one", "two", "three")
    shown = await text(page, "/jobs?stage=failed")
    assert "3 jobs match" in shown
    assert "3 <code>classify</code>" in shown
    begin = re.search(r'name="begin" value="([^"]+)"', shown)
    assert begin is not None
    setup.clock.forward(1)
    (later,) = await setup.failed("four")
    answer = await submit(page, "/jobs/bulk/dismiss", {"stage": "failed", "begin": begin[1]}, back="/jobs?stage=failed")
    assert said_in(answer).sentence == "3 of 3 jobs dismissed."
    assert [await state(setup, id) for id in [*made, later]] == ["canceled"] * 3 + ["failed"]
    (entry,) = [each for each in await setup.database.run(list_audit(10)) if each.actor.startswith("person:")]
    assert (entry.action, entry.after) == (
        "job.dismiss_many",
        {"asked": {"stage": "failed"}, "count": 3, "seen": 3, "done": 3},
    )


async def test_a_bulk_act_keeps_to_its_filters(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    one, two = await setup.failed("quota"), await setup.failed("label", type="action.gmail")
    begin = re.search(r'name="begin" value="([^"]+)"', await text(page, "/jobs?stage=failed"))
    assert begin is not None
    fields = {"stage": "failed", "type": "action.gmail", "begin": begin[1]}
    assert said_in(await submit(page, "/jobs/bulk/retry", fields)).sentence == "1 of 1 job queued again."
    assert [await state(setup, id) for id in (*one, *two)] == ["failed", "queued"]


async def test_a_form_that_makes_no_sense_changes_nothing(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    (id,) = await setup.failed("broken")
    for address, fields in (
        ("/jobs/bulk/dismiss", {"stage": "ready", "begin": "9"}),
        ("/jobs/bulk/retry", {"stage": "completed", "begin": "9"}),
        ("/jobs/bulk/retry", {"begin": "9"}),
        ("/jobs/bulk/retry", {"stage": "failed"}),
        ("/jobs/bulk/explode", {"stage": "failed", "begin": "9"}),
        ("/jobs/cause/retry", {}),
        ("/jobs/nonsense/retry", {}),
    ):
        assert said_in(await submit(page, address, fields)).mood == "bad", address
    assert await state(setup, id) == "failed"
    assert await setup.audited() == []


async def test_a_viewer_sees_no_button_and_may_press_none(setup: IntakeSetup) -> None:
    (id,) = await setup.failed("broken")
    async with visiting(setup, visitor("viewer")) as page:
        for address in ("/jobs?stage=failed", f"/jobs/{id}"):
            assert '<form class="act"' not in await text(page, address)
            assert 'popovertarget="bulk' not in await text(page, address)
        for address in (
            f"/jobs/{id}/retry",
            f"/jobs/{id}/cancel",
            f"/jobs/{id}/dismiss",
            "/jobs/bulk/retry",
            "/jobs/cause/retry",
        ):
            assert (await submit(page, address)).status_code == 403
    assert await state(setup, id) == "failed"


async def test_hostile_errors_are_shown_as_text(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    storable = [attack.replace("\0", "").encode("utf-8", "replace").decode() for attack in ATTACKS]
    ids = await setup.failed(*storable, payload={"note": ATTACKS[0]})
    parked = await setup.job(priority=950)
    (job,) = await setup.claim(1)
    assert job.id == parked
    await setup.database.run(jobs.park(job.claim, ATTACKS[1], ATTACKS[2], setup.clock()))
    for address in ("/jobs", "/jobs?stage=failed", "/jobs?stage=parked", f"/jobs/{ids[0]}", f"/jobs/{parked}"):
        assert_harmless(await text(page, address))
    assert_harmless((await page.get("/jobs", params={"error": ATTACKS[0], "stage": "failed"})).text)


async def test_a_job_that_runs_is_canceled_at_its_next_step(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    id = await setup.job()
    await setup.claim(1)
    assert said_in(await submit(page, f"/jobs/{id}/cancel")).sentence == "The job is canceled at its next step."
    assert "is being canceled" in await text(page, "/jobs?stage=running")
    assert "is being canceled" in await text(page, f"/jobs/{id}")


async def test_a_job_that_waits_for_its_time_is_scheduled(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    id = await setup.job(not_before=setup.clock() + timedelta(hours=1))
    assert str(id) in await text(page, "/jobs?stage=scheduled")
    assert "Run now" in await text(page, f"/jobs/{id}")
    await submit(page, f"/jobs/{id}/retry")
    assert str(id) in await text(page, "/jobs?stage=ready")


@asynccontextmanager
async def impatient(setup: IntakeSetup) -> AsyncGenerator[httpx2.AsyncClient]:
    """The pages of a process that shows every bulk act as work in progress."""
    site = Site(parts_in(setup.data_dir, setup.database, setup.clock), "owner@example.org")
    pages = intake_pages(site, patience_s=0.0)
    app = as_visitor(create_application(site, pages, allowed_hosts=("127.0.0.1",)), OWNER)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1:8025") as client:
        yield client
        for each in pages:
            each.close()


async def begin_of(page: httpx2.AsyncClient) -> str:
    found = re.search(r'name="begin" value="([^"]+)"', await text(page, "/jobs?stage=failed"))
    assert found is not None
    return found[1]


async def test_a_long_bulk_act_shows_its_progress_and_a_restart_knows_how_far_it_came(
    setup: IntakeSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends after the second of three parts: nothing is half done, and the next one says so."""
    monkeypatch.setattr(jobs_of_people, "AT_ONCE", 2)
    made = await setup.failed("one", "two", "three", "four", "five")
    held, parts, run = asyncio.Event(), [0], setup.database.run

    async def stopping(work: Any) -> Any:
        if work.name == "change_many":
            parts[0] += 1
            if parts[0] == 3:
                held.set()
                await asyncio.Event().wait()
        return await run(work)

    monkeypatch.setattr(setup.database, "run", stopping)
    async with impatient(setup) as page:
        answer = await submit(page, "/jobs/bulk/retry", {"stage": "failed", "begin": await begin_of(page)})
        address = answer.headers["location"]
        assert address.startswith("/jobs/runs/")
        await held.wait()
        shown = await text(page, address)
        assert "4 of 5 looked at, 4 queued again" in shown
        assert ">running<" in shown
    async with impatient(setup) as page:
        shown = await text(page, address)
        assert "Postroom ended before it was through. No job is half done, and the other 1 were not touched." in shown
        assert "4 of 5 looked at, 4 queued again" in shown
        assert 'href="/jobs?stage=failed#list"' in shown
    states = [await state(setup, id) for id in made]
    assert sorted(states) == ["failed", "queued", "queued", "queued", "queued"]
    assert await setup.audited() == ["job.retry_many", "job.retry_many"]


async def test_a_bulk_act_is_stopped_between_two_jobs_and_can_be_continued(
    setup: IntakeSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_of_people, "AT_ONCE", 1)
    await setup.failed("one", "two", "three")
    held, run = asyncio.Event(), setup.database.run

    async def slow(work: Any) -> Any:
        if work.name == "change_many" and len(await setup.audited()) == 1:
            held.set()
            await asyncio.Event().wait()
        return await run(work)

    async with impatient(setup) as page:
        with monkeypatch.context() as patched:
            patched.setattr(setup.database, "run", slow)
            answer = await submit(page, "/jobs/bulk/dismiss", {"stage": "failed", "begin": await begin_of(page)})
            address = answer.headers["location"]
            await held.wait()
            stopped = await submit(page, f"{address}/cancel", back=address)
            assert said_in(stopped).sentence == "It stops where it is; what was done stays done."
        shown = await text(page, address)
        assert "It was stopped. No job is half done, and the other 2 were not touched." in shown
        answer = await submit(page, "/jobs/bulk/dismiss", {"stage": "failed", "begin": await begin_of(page)})
        await until(
            setup.database, lambda: page.get(answer.headers["location"]), lambda shown: "2 of 2 looked at" in shown.text
        )
        assert "2 of 2 looked at, 2 dismissed" in await text(page, answer.headers["location"])
        assert (await page.get(f"/jobs/runs/{uuid4()}")).status_code == 404

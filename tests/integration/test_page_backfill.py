"""The backfill pages over both databases: progress and spend, estimate and consent, each act, and who may act."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import pytest

from postroom.core.errors import Refused
from postroom.operations.backfill.backfill import Backfills
from postroom.operations.backfill.backfill_estimate import BackfillEstimates, paces_of
from postroom.operations.backfill.estimate_runs import MOST_RUNNING, EstimateRuns
from postroom.settings.mailboxes import BackfillSettings
from postroom.settings.reading import Settings
from postroom.settings.sections import ModelSettings
from postroom.store.backfill import backfill
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import AuditView, list_audit
from postroom.system.wall_clock import wall_clock
from support.backfill_jobs import (
    FINANCE,
    counting_connector,
    created,
    estimated,
    fill_backfills,
    keep_mailbox,
    progressed,
)
from support.clocks import ManualClock
from support.hostile_text import ATTACKS, smuggled, storable
from support.page_app import visiting_pages, visitor
from support.page_forms import submit
from support.patience import PATIENCE_S
from support.store.fault_cases_backfill import ENDPOINT, load
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.until import until

WANTED = {
    "endpoint_identity": ENDPOINT,
    "category": ["finance", "travel"],
    "date_from": "2024-01-01",
    "date_to": "2024-12-31",
    "rate": "200",
    "cap": "2.50",
}


@transaction
def alter(statement: str) -> Script[None]:
    yield Text(statement)


@pytest.fixture
def setup(database: Database, clock: ManualClock) -> JobSetup:
    return JobSetup(database, clock)


@pytest.fixture
async def page(database: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting_pages(database, tmp_path) as client:
        yield client


async def shown(page: httpx2.AsyncClient, address: str = "/backfill") -> str:
    answer = await page.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


def panel(text: str, name: str) -> str:
    return text.partition(f'aria-label="{name}"')[2].partition("</section>")[0]


async def newest_audit(database: Database) -> AuditView:
    return (await database.run(list_audit(1)))[0]


async def test_an_empty_installation_leads(page: httpx2.AsyncClient) -> None:
    text = await shown(page)
    assert "No backfill is running." in text
    assert "No backfills yet." in text
    assert "No mailbox is connected." in await shown(page, "/backfill/new")


async def test_progress_and_spend_are_shown_against_estimate_and_cap(page: httpx2.AsyncClient, setup: JobSetup) -> None:
    await fill_backfills(setup)
    text = await shown(page)
    active = panel(text, "Backfill of finance")
    for words in ("120", "of about 400 messages read", "30 %", "$3.72", "of $5.00 a day", "of $12.00 estimated"):
        assert words in active, words
    assert "at the day&#39;s cap" in panel(text, "Backfill of health")
    assert "the mailbox is gone" in panel(text, "Backfill of relationship")
    assert panel(text, "All backfills").count("data-row") == 5


async def test_one_job_stands_beside_its_estimate_with_its_days_failures_and_audit(
    page: httpx2.AsyncClient, setup: JobSetup
) -> None:
    ids = await fill_backfills(setup)
    text = await shown(page, f"/backfill/{ids['active']}")
    compared = panel(text, "Estimate and truth")
    assert all(words in compared for words in ("400", "200 and 800", "120", "$12.00", "$6.00 and $24.00", "$3.72"))
    assert "18c0ffee" in panel(text, "Messages that could not be read")
    assert "The last 14 days" in text
    audit = panel(text, "Audit")
    assert audit.index("backfill.start") < audit.index("backfill.create")


async def test_spent_and_expected_are_two_figures_and_what_was_found_is_listed_by_kind_and_year(
    page: httpx2.AsyncClient, setup: JobSetup
) -> None:
    id = (await fill_backfills(setup))["active"]
    for inbox_id in (new_id(), new_id()):
        await setup.database.run(alter(
            f"INSERT INTO backfill_mail (inbox_id, job_id, waits, accepted_at) "
            f"VALUES ('{inbox_id}', '{id}', true, '{wall_clock().isoformat()}')"))  # fmt: skip
    for year, messages in ((2023, 4), (2024, 1_200)):
        values = f"('{id}', 'finance', {year}, {messages})"
        await setup.database.run(alter(f"INSERT INTO backfill_found VALUES {values}"))
    text = await shown(page, f"/backfill/{id}")
    assert re.search(r"Spent in all.*?\$3\.72.*?Expected.*?\$0\.06.*?for 2 messages that wait", text, re.DOTALL)
    assert "$0.06 expected" in panel(await shown(page), "All backfills")
    found = panel(text, "Found")
    assert re.findall(r">([\d,]+)</td>", found) == ["2024", "1,200", "2023", "4", "1,204"]
    assert 'href="/mail?category=finance&amp;tier=history"' in found


async def test_history_pages_by_key(page: httpx2.AsyncClient, setup: JobSetup) -> None:
    await keep_mailbox(setup)
    for _ in range(27):
        setup.clock.forward(1)
        id = await created(setup)
        await setup.database.run(backfill.cancel_backfill(id, setup.clock(), signed()))
    first = panel(await shown(page), "All backfills")
    link = first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
    second = panel(await shown(page, link), "All backfills")
    assert (first.count("data-row"), second.count("data-row")) == (25, 2)


async def test_bad_ids_and_filters_are_refused_with_words(sqlite: Database, tmp_path: Path) -> None:
    async with visiting_pages(sqlite, tmp_path) as page:
        for rest, status in (
            ("?before=x", 400),
            ("/none", 404),
            (f"/{uuid4()}", 404),
            ("/new?run=x", 400),
            (f"/new?run={uuid4()}", 404),
            (f"/new?estimate={uuid4()}", 404),
            ("/new?category=all", 400),
        ):
            answer = await page.get(f"/backfill{rest}")
            assert answer.status_code == status, rest
            assert "<p>" in answer.text


async def test_a_job_is_paused_resumed_and_canceled(page: httpx2.AsyncClient, setup: JobSetup) -> None:
    ids = await fill_backfills(setup)
    for act, fields, status, action in (
        ("pause", {}, "paused", "backfill.pause"),
        ("resume", {}, "pending", "backfill.resume"),
        ("cancel", {"reason": "too dear"}, "cancelled", "backfill.cancel"),
    ):
        await submit(page, f"/backfill/{ids['active']}/{act}", fields, back="/backfill")
        assert (await load(setup, ids["active"])).status == status
        entry = await newest_audit(setup.database)
        assert (entry.action, entry.actor) == (action, "person:owner")
        assert entry.reason == fields.get("reason", "on the page")
    answer = await submit(page, f"/backfill/{ids['active']}/resume", back="/backfill")
    assert answer.status_code == 303  # said on the page
    assert (await load(setup, ids["active"])).status == "cancelled"


async def wait_for_estimate(database: Database, page: httpx2.AsyncClient, address: str) -> str:
    return await until(database, lambda: shown(page, address), lambda text: "Start the backfill" in text)


async def test_an_estimate_is_agreed_to_by_its_sum_and_becomes_a_backfill(
    page: httpx2.AsyncClient, setup: JobSetup
) -> None:
    await keep_mailbox(setup)
    async with counting_connector(setup.database, wall_clock):
        answer = await submit(page, "/backfill/estimate", WANTED, back="/backfill/new")
        text = await wait_for_estimate(setup.database, page, answer.headers["location"])
    assert all(words in panel(text, "What it would cost") for words in ("Everything", "Chosen kinds", "When asked"))
    assert re.search(r"About [\d.]+ (minute|hour)s? at \d+ messages an hour", text)
    agreed = text.partition('name="agreed" value="')[2].partition('"')[0]
    fields = {"estimate": text.partition('name="estimate" value="')[2].partition('"')[0], "resume_daily": "yes"}
    estimated = f"/backfill/new?estimate={fields['estimate']}"
    for refused in ({}, {"agreed": str(int(agreed) + 1)}, {"agreed": "yes"}):
        answer = await submit(page, "/backfill/create", {**fields, **refused}, back=estimated)
        assert 'id="problem"' in await shown(page, answer.headers["location"])
    answer = await submit(page, "/backfill/create", {**fields, "agreed": agreed})
    job = await load(setup, UUID(answer.headers["location"].rpartition("/")[2]))
    assert (job.target_categories, job.rate_limit_per_hour, job.daily_cost_cap_cents) == (
        ("finance", "travel"),
        200,
        250,
    )
    assert (str(job.estimate_id), job.resume_daily, job.acts, job.mode) == (fields["estimate"], True, False, "batch")
    entry = await newest_audit(setup.database)
    assert (entry.action, entry.actor) == ("backfill.create", "person:owner")


async def test_what_cannot_be_estimated_is_said_at_once(sqlite: Database, clock: ManualClock, tmp_path: Path) -> None:
    await keep_mailbox(JobSetup(sqlite, clock))
    async with visiting_pages(sqlite, tmp_path) as page:
        for changes in (
            {"category": []},
            {"category": ["everything"]},
            {"date_from": "yesterday"},
            {"date_from": "2025-01-01"},
            {"date_to": "9999-01-01"},
            {"rate": "0"},
            {"rate": "many"},
            {"cap": "0"},
            {"cap": "1.234"},
            {"cap": "five"},
            {"endpoint_identity": "gmail:user:nobody@x.example"},
        ):
            answer = await submit(page, "/backfill/estimate", {**WANTED, **changes}, back="/backfill/new")
            refused = await shown(page, answer.headers["location"])
            (field,) = changes
            assert re.search(rf'name="{field}"[^>]* aria-describedby="problem"', refused), changes
            assert 'value="2024-' in refused


async def test_waiting_for_an_estimate_can_be_canceled(page: httpx2.AsyncClient, setup: JobSetup) -> None:
    """No connector runs, so it would wait for a minute."""
    await keep_mailbox(setup)
    answer = await submit(page, "/backfill/estimate", WANTED)
    address = answer.headers["location"]
    assert "counts and reads a sample" in await shown(page, address)
    await submit(page, "/backfill/estimate/cancel", {"run": address.rpartition("=")[2]})
    assert "Canceled. Nothing was kept." in await shown(page, address)


async def test_few_estimates_run_at_once_and_end_with_the_server(sqlite: Database, clock: ManualClock) -> None:
    await keep_mailbox(JobSetup(sqlite, clock))
    model = ModelSettings.model_validate({})
    backfills = Backfills(sqlite, BackfillSettings.model_validate({}), model, clock)
    runs = EstimateRuns(backfills, BackfillEstimates(backfills, model, paces_of(Settings.model_validate({}))), clock)
    begun = [await runs.start(replace(FINANCE, rate_limit_per_hour=1 + each), signed()) for each in range(MOST_RUNNING)]
    with pytest.raises(Refused):
        await runs.start(FINANCE, signed())
    runs.close()
    async with asyncio.timeout(PATIENCE_S):
        async for _ in runs.changes():
            if all(run.state == "canceled" for run in begun):
                break


async def test_a_viewer_reads_and_may_do_nothing(sqlite: Database, clock: ManualClock, tmp_path: Path) -> None:
    setup = JobSetup(sqlite, clock)
    ids = await fill_backfills(setup)
    estimate_id = await estimated(setup, FINANCE)
    async with visiting_pages(sqlite, tmp_path, visitor("viewer")) as page:
        for rest in ("", "/new", f"/{ids['active']}"):
            assert 'method="post"' not in await shown(page, f"/backfill{rest}")
        forms = [(f"/backfill/{ids['active']}/{act}", {}) for act in ("pause", "resume", "cancel")]
        create = ("/backfill/create", {"estimate": str(estimate_id), "agreed": "12000000"})
        run = ("/backfill/estimate/cancel", {"run": str(uuid4())})
        for address, fields in (*forms, ("/backfill/estimate", WANTED), run, create):
            assert (await submit(page, address, fields)).status_code == 403
    assert (await load(setup, ids["active"])).status == "active"


async def test_a_strangers_words_stay_words(sqlite: Database, clock: ManualClock, tmp_path: Path) -> None:
    setup = JobSetup(sqlite, clock)
    await keep_mailbox(setup)
    ids: list[UUID] = []
    for attack in ATTACKS:
        ids.append(await created(setup, rate_limit_per_hour=1_000_000))
        await progressed(setup, ids[-1], 1, 0, status="error", error=storable(attack))
    async with visiting_pages(sqlite, tmp_path) as page:
        for rest in ("", *(f"/{id}" for id in ids)):
            assert smuggled(await shown(page, f"/backfill{rest}")) == []

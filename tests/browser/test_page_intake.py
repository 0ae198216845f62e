"""The pages of connectors, queues and jobs in a real browser, from the real server, over a real database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.http.serve import serving
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from support.attacks import ATTACKS
from support.axe import violations
from support.chromium import BrowserErrors
from support.clocks import ManualClock
from support.intake_pages import ENDPOINT, IntakeSetup, intake_application
from support.store.inbox_setup import event, kind, mail

LONG_WORDS = ("W" * 300, "evil\u202egpj.exe", ATTACKS[4], ATTACKS[1])


@pytest.fixture
async def setup(tmp_path: Path, clock: ManualClock) -> AsyncGenerator[IntakeSetup]:
    database: Database = await open_database(tmp_path)
    yield IntakeSetup(database, tmp_path, clock)
    await database.close()


@asynccontextmanager
async def served(setup: IntakeSetup) -> AsyncGenerator[str]:
    """Read again only when a change is announced, so that a test of live updates proves that it was."""
    intervals = UpdateIntervals(between_updates=0.01, reread=3600)
    app = intake_application(setup.database, setup.data_dir, setup.clock, intervals)
    async with serving(app, host="127.0.0.1", port=0) as address:
        yield address


async def open_live(page: Page, address: str) -> None:
    await page.goto(address)
    await expect(page.locator("#link")).to_have_text("Live")


async def fill(setup: IntakeSetup) -> str:
    """Something on every page, some of it hostile and long. Returns the address of a job."""
    await setup.connect()
    await setup.report(counters={"ingested": 12, "refused": 1}, state="degraded", error_message=LONG_WORDS[0])
    await setup.report(LONG_WORDS[0], "redis-stream")
    setup.refuse("18c0a", reason=LONG_WORDS[0])
    setup.spend(2140)
    await setup.inbox.ingest(mail(1, "high_priority"), mail(2))
    for number, words in enumerate(LONG_WORDS):
        parts = {"payload": {"normalized_text": words}, "sender": {"identity": words}}
        await setup.inbox.ingest(event(number, **parts), event(f"t{number}", event=kind("test.x"), **parts))
    await setup.inbox.next(6)
    await setup.sample(("email", "default", 4), ("gateway", "P2", 2))
    await setup.completed(5)
    ids = await setup.failed(*LONG_WORDS)
    await setup.count()
    return f"/jobs/{ids[0]}"


async def test_every_page_is_readable_wide_and_narrow_light_and_dark(
    page: Page, complaints: BrowserErrors, setup: IntakeSetup
) -> None:
    job = await fill(setup)
    async with served(setup) as address:
        for path in (
            "/connectors",
            f"/connectors/gmail/{ENDPOINT}",
            "/queues?queue=gateway",
            "/queues?queue=email",
            "/jobs?stage=failed",
            job,
        ):
            await open_live(page, address + path)
            for width, scheme in ((1280, "light"), (768, "light"), (722, "light"), (390, "dark")):
                await page.set_viewport_size({"width": width, "height": 800})
                await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)
                assert await violations(page) == [], (path, width)
            assert await page.locator("#board :is(script, img, h1, [onload], [onmouseover])").count() == 0
        assert complaints == []


async def test_a_job_that_fails_shows_at_once_and_is_retried_by_keys(
    page: Page, complaints: BrowserErrors, setup: IntakeSetup
) -> None:
    async with served(setup) as address:
        await open_live(page, f"{address}/jobs")
        await page.evaluate("window.sameDocument = true")
        await setup.failed("the label 41 is gone", "the label 42 is gone")
        cause = page.get_by_role("region", name="Errors, grouped").get_by_role("listitem")
        await expect(cause).to_contain_text("the label … is gone")
        await expect(cause).to_contain_text("Retry 2")
        assert await page.evaluate("window.sameDocument")
        await page.keyboard.press("j")
        await page.keyboard.press("r")
        await expect(page.locator(".toast")).to_contain_text("2 of 2 jobs queued again.")
        await expect(page.get_by_role("region", name="Errors, grouped")).to_contain_text("nothing failed")

        await page.goto(f"{address}/queues?queue=gateway")
        await expect(page.locator("#link")).to_have_text("Live")
        await expect(page.get_by_text("Nothing waits.")).to_be_visible()
        await setup.inbox.ingest(event("arrives"))
        await expect(page.get_by_role("region", name="Waiting now")).to_contain_text("event arrives")
        assert complaints == []


async def test_acts_work_without_javascript(browser: Browser, setup: IntakeSetup) -> None:
    await setup.connect()
    await setup.inbox.ingest(event("goes"), event("stays"))
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    async with served(setup) as address:
        await page.goto(f"{address}/queues?queue=gateway")
        row = page.get_by_role("row").filter(has_text="event goes")
        await row.get_by_role("button", name="Dismiss").click()
        await expect(page.get_by_text("1 of 1 dismissed unread.")).to_be_visible()
        waiting = page.get_by_role("region", name="Waiting now")
        await expect(waiting).to_contain_text("event stays")
        await expect(waiting).not_to_contain_text("event goes")
        await page.get_by_role("link", name="Auto-acked").click()
        await expect(page.get_by_role("region", name="Ended unread")).to_contain_text("event goes")

        await page.goto(f"{address}/connectors")
        await page.get_by_role("button", name="Sync now").click()
        await expect(page.get_by_text("looking for new mail and changed labels now")).to_be_visible()
        await page.goto(f"{address}/jobs?type=labels.sync.gmail")
        await expect(page.get_by_role("region", name="Jobs", exact=True)).to_contain_text("labels.sync.gmail")
    await context.close()

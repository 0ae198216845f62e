"""The backfill pages in a real browser: progress live, an estimate agreed to, acts by key and without JavaScript."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from postroom.store.engine.opening import open_database
from postroom.system.wall_clock import wall_clock
from support.axe import violations
from support.backfill_jobs import counting_connector, fill_backfills, keep_mailbox, progressed
from support.chromium import BrowserErrors
from support.clocks import ManualClock
from support.served_pages import served_pages
from support.store.fault_cases_backfill import load
from support.store.job_setup import JobSetup

FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture
async def setup(tmp_path: Path, clock: ManualClock) -> AsyncIterator[JobSetup]:
    opened = await open_database(tmp_path)
    yield JobSetup(opened, clock)
    await opened.close()


async def open_live(page: Page, address: str) -> None:
    await page.goto(address)
    await expect(page.locator("#link")).to_have_text("Live")


async def is_readable(page: Page) -> None:
    for width, scheme in ((1280, "light"), (390, "dark")):
        await page.set_viewport_size({"width": width, "height": 900})
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert await page.evaluate(FITS), width
        assert await violations(page) == []
    await page.set_viewport_size({"width": 1280, "height": 900})


async def test_progress_shows_live_and_a_job_is_paused_by_key(
    page: Page, complaints: BrowserErrors, setup: JobSetup, tmp_path: Path
) -> None:
    ids = await fill_backfills(setup)
    async with served_pages(setup.database, tmp_path) as address:
        await open_live(page, f"{address}/backfill")
        active = page.get_by_role("region", name="Backfill of finance")
        await expect(active).to_contain_text("120 of about 400")
        await is_readable(page)
        setup.clock.forward(60)
        await progressed(setup, ids["active"], 40, 0)
        await expect(active).to_contain_text("160 of about 400")
        await page.keyboard.press("j")
        await page.keyboard.press("p")
        await expect(page.locator(".toast")).to_contain_text("Paused")
        assert (await load(setup, ids["active"])).status == "paused"
        await open_live(page, f"{address}/backfill/{ids['active']}")
        await is_readable(page)
        assert complaints == []


async def test_an_estimate_comes_by_itself_and_needs_a_tick(
    page: Page, complaints: BrowserErrors, setup: JobSetup, tmp_path: Path
) -> None:
    await keep_mailbox(setup)
    async with served_pages(setup.database, tmp_path) as address:
        await open_live(page, f"{address}/backfill/new")
        await page.keyboard.press("e")
        await expect(page.get_by_role("region", name="What it would cost")).to_contain_text("counts and reads a sample")
        async with counting_connector(setup.database, wall_clock):
            await expect(page.get_by_role("button", name="Start the backfill")).to_be_visible()
        await is_readable(page)
        await page.get_by_role("button", name="Start the backfill").click()
        assert "/backfill/new" in page.url  # the browser asks for the tick
        await page.locator("#agreed").check()
        await page.get_by_role("button", name="Start the backfill").click()
        await expect(page.locator(".toast")).to_contain_text("begins when its connector is free")
        assert complaints == []


async def test_a_job_is_canceled_without_javascript(browser: Browser, setup: JobSetup, tmp_path: Path) -> None:
    ids = await fill_backfills(setup)
    context = await browser.new_context(java_script_enabled=False)
    async with served_pages(setup.database, tmp_path) as address:
        page = await context.new_page()
        await page.goto(f"{address}/backfill/{ids['paused']}")
        await page.get_by_role("button", name="Cancel").first.click()
        await page.get_by_role("button", name="Cancel it for good").click()
        await expect(page.locator(".toast")).to_contain_text("Canceled for good")
    assert (await load(setup, ids["paused"])).status == "cancelled"
    await context.close()

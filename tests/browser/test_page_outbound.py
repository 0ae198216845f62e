"""The outbound page in a real browser: reading wide and narrow, light and dark, acts by key and without JavaScript."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.outbound.destinations import list_destination_pauses
from postroom.store.outbound.senders import load_sender
from postroom.system.wall_clock import wall_clock
from support.axe import violations
from support.chromium import BrowserErrors
from support.outgoing_traffic import KETTLE, PARROT, Outgoing, fill_outbound
from support.served_pages import served_pages

FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path)
    yield opened
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


async def test_it_reads_well_changes_live_and_releases_by_key(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    ids = await fill_outbound(database, wall_clock())
    async with served_pages(database, tmp_path) as address:
        await open_live(page, f"{address}/outbound?tenant={PARROT}")
        await is_readable(page)
        await Outgoing(database, wall_clock()).put(KETTLE, "new@x.example", subject="Just now")
        await expect(page.get_by_role("link", name="Just now")).to_be_visible()
        rows = page.locator("[data-row]")
        for _ in range(await rows.count()):
            await page.keyboard.press("j")
            if await page.locator("#s-1[data-chosen]").count():
                break
        await page.keyboard.press("r")
        await expect(page.locator(".toast")).to_contain_text("is released")
        assert (await database.run(load_sender(f"promo@{PARROT}", wall_clock()))).throttled_until is None
        await open_live(page, f"{address}/outbound/{ids['partial']}")
        await expect(page.get_by_role("region", name="Recipients")).to_contain_text("no such user here")
        await is_readable(page)
        assert complaints == []


async def test_a_destination_is_paused_without_javascript(browser: Browser, database: Database, tmp_path: Path) -> None:
    context = await browser.new_context(java_script_enabled=False)
    async with served_pages(database, tmp_path) as address:
        page = await context.new_page()
        await page.goto(f"{address}/outbound")
        await page.get_by_role("button", name="Pause a destination").click()
        await page.get_by_role("textbox", name="Destination").fill("post.example")
        await page.get_by_role("button", name="Pause it").click()
        await expect(page.locator(".toast")).to_contain_text("Nothing is sent to post.example")
    assert [each.destination for each in await database.run(list_destination_pauses())] == ["post.example"]
    await context.close()


async def test_a_simulation_shows_progress_and_its_picture(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    async with served_pages(database, tmp_path) as address:
        await open_live(page, f"{address}/outbound/simulate")
        await page.get_by_label("Add a flood of").fill("50000")
        await page.get_by_role("button", name="Simulate").click()
        await expect(page.get_by_role("region", name="Progress")).to_contain_text("Step 1 of 5")
        await page.keyboard.press("c")
        await expect(page.locator(".toast")).to_contain_text("canceled")
        await page.get_by_label("Add a flood of").fill("50")
        await page.get_by_role("button", name="Simulate").click()
        await expect(page.locator("svg.waits rect").first).to_be_visible()
        colour = await page.locator("svg.waits .f-good").first.evaluate("each => getComputedStyle(each).fill")
        assert colour not in ("none", "rgb(0, 0, 0)")
        await is_readable(page)
        assert complaints == []

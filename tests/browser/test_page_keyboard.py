"""Every page by keyboard alone, as far as its own tests do not show it; and every page without JavaScript."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from postroom.interfaces.dashboard.navigation import GROUPS
from support.chromium import BrowserErrors
from support.clocks import ManualClock
from support.intake_pages import IntakeSetup
from support.served_pages import served_pages
from support.sqlite import new_sqlite
from support.store.inbox_setup import event

PLACES = [place for group in GROUPS for place in group.places]


@pytest.fixture
async def setup(migrated_sqlite: Path, tmp_path: Path, clock: ManualClock) -> AsyncIterator[IntakeSetup]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    setup = IntakeSetup(database, tmp_path, clock)
    await setup.connect()
    await setup.inbox.ingest(event("waits"))
    yield setup
    await database.close()


async def go(page: Page, key: str, title: str) -> None:
    """Go to a page by its keys."""
    await page.keyboard.press("g")
    await page.keyboard.press(key)
    await expect(page.get_by_role("heading", level=1)).to_have_text(title)
    await expect(page.locator("#link")).to_have_text("Live")


async def command(page: Page, words: str) -> None:
    """Choose from the palette by words."""
    await page.keyboard.press("Control+k")
    await page.keyboard.type(words)
    await page.keyboard.press("Enter")


async def test_pages_are_opened_and_their_acts_done_by_keyboard_alone(
    page: Page, complaints: BrowserErrors, setup: IntakeSetup
) -> None:
    said = page.locator(".toast")
    async with served_pages(setup.database, setup.data_dir) as address:
        await page.goto(address)
        await expect(page.locator("#link")).to_have_text("Live")
        await command(page, "pause every")
        await expect(page.get_by_role("dialog", name="Pause everything?")).to_be_visible()
        await page.keyboard.press("Enter")
        await expect(said).to_contain_text("Paused")
        await expect(page.locator("#link")).to_have_text("Live")

        await go(page, "c", "Connectors")
        await page.keyboard.press("j")
        await page.keyboard.press("s")
        await expect(said).to_contain_text("looking for new mail")
        await expect(page.locator("#link")).to_have_text("Live")

        await page.goto(f"{address}/queues?queue=gateway")
        await expect(page.locator("#link")).to_have_text("Live")
        await page.keyboard.press("j")
        await page.keyboard.press("d")
        await expect(said).to_contain_text("1 of 1 dismissed")
        await expect(page.locator("#link")).to_have_text("Live")

        await go(page, "t", "Audit")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(f"{address}/audit?action=queue.dismiss")
        await expect(page.locator("#link")).to_have_text("Live")

        await go(page, "s", "Settings")
        await command(page, "make a token")
        await page.keyboard.press("Tab")
        await page.keyboard.type("by keyboard")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("by keyboard")).to_be_visible()
        assert complaints == []


async def test_every_page_can_be_read_without_javascript(browser: Browser, setup: IntakeSetup) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    async with served_pages(setup.database, setup.data_dir) as address:
        await page.goto(address)
        for place in PLACES:
            await page.get_by_role("navigation", name="Pages").get_by_role("link", name=place.title).click()
            await expect(page.get_by_role("heading", level=1)).to_have_text(place.title)
            await expect(page.get_by_text("Live updates need JavaScript")).to_be_visible()
            await expect(page.locator("#board :is(.panel, .cards)").first).to_be_visible()
            await expect(page.locator("#link")).to_be_hidden()
    await context.close()

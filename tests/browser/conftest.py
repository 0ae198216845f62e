"""Fixtures of the browser tests: a real browser, one page, and the errors on that page."""

from collections.abc import AsyncGenerator

import pytest
from playwright.async_api import Browser, Page, expect

from support.chromium import BrowserErrors, launched

# Long, since it ends as soon as there is what is waited for: only a failure takes all of it.
WAIT_MS = 60_000
expect.set_options(timeout=WAIT_MS)


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with launched() as browser:
        yield browser


@pytest.fixture
def complaints() -> BrowserErrors:
    """Filled while the page lives; a test that expects a calm page asserts that it is empty."""
    return BrowserErrors()


@pytest.fixture
async def page(browser: Browser, complaints: BrowserErrors) -> AsyncGenerator[Page]:
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(WAIT_MS)
    page = await context.new_page()
    await complaints.watch(page)
    yield page
    await context.close()

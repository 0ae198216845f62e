"""The whole product in a real browser, on its sandbox: mail is acted on before the user's eyes, and every page has
something to show.

With POSTROOM_SCREENSHOTS=1 (`make screenshots`), the pictures of the documentation are made on the way.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from support.chromium import BrowserErrors
from support.clocks import ManualClock
from support.closed_home import open_home
from support.command import NO_SIGN_IN
from support.page_checks import problems_on
from support.screenshots import FOLDER, SHOTS, Shot, reduced
from support.signed_in import running_pages
from support.sqlite import new_sqlite

PATIENCE_MS = 240_000
IS_WANTED = os.environ.get("POSTROOM_SCREENSHOTS") == "1"
"""Whether the pictures are kept. Then the demo runs for longer first, so that there is more to see."""
ROWS = 40 if IS_WANTED else 0


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[str]:
    """`postroom demo` as its own process; yields the address."""
    environment = open_home(tmp_path) | NO_SIGN_IN
    process = subprocess.Popen(
        [sys.executable, "-c", "from postroom.app import main; main()", "demo", "--port", "0", "--json"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_MS / 1000)


async def test_mail_is_acted_on_before_the_users_eyes_and_every_page_shows_something(
    demo: str, page: Page, complaints: BrowserErrors, browser: Browser
) -> None:
    await page.goto(demo)
    await expect(page.locator("#link")).to_contain_text("Live", timeout=PATIENCE_MS)
    archived = page.locator("#lines tr", has_text="Newsletters out of the inbox").first
    await expect(archived).to_contain_text("archive", timeout=PATIENCE_MS)
    await expect(archived).to_contain_text("done", timeout=PATIENCE_MS)
    before = max(ROWS, await page.locator("#lines tr").count())
    await expect(page.locator("#lines tr").nth(before)).to_be_visible(timeout=PATIENCE_MS)
    if IS_WANTED:
        await page.goto(f"{demo}/backfill")
        await expect(page.get_by_text("No backfills yet")).to_have_count(0, timeout=PATIENCE_MS)  # the story begins one
    for shot in SHOTS:
        await look_at(page, demo, shot)
    await page.set_viewport_size({"width": 1280, "height": 900})
    await page.emulate_media(color_scheme="light")
    await look_at(page, demo, Shot("message", await address_of_a_message(page, demo)))
    assert complaints == []


async def test_the_gate_looks_well(
    page: Page, complaints: BrowserErrors, tmp_path: Path, migrated_sqlite: Path
) -> None:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, ManualClock(), tmp_path) as pages:
        await pages.signed_in()
        await page.goto(f"http://localhost:{pages.port}/sign-in")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await keep(page, "sign-in")
        assert complaints == []
    await database.close()


async def look_at(page: Page, address: str, shot: Shot) -> None:
    """Open the page as its picture has it: it is live, and nothing stands out of it."""
    width, height = shot.size
    await page.set_viewport_size({"width": width, "height": height})
    await page.emulate_media(color_scheme="dark" if shot.is_dark else "light")
    await page.goto(address + shot.address)
    await expect(page.locator("#link")).to_have_text("Live")
    assert await problems_on(page) == [], shot.name
    await keep(page, shot.name)


async def keep(page: Page, name: str) -> None:
    picture = await page.screenshot()
    assert picture.startswith(b"\x89PNG")
    if IS_WANTED:
        drawing = await page.context.new_page()
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.png").write_bytes(await reduced(drawing, picture))
        await drawing.close()


async def address_of_a_message(page: Page, demo: str) -> str:
    await page.goto(f"{demo}/mail?by=rule&state=done")
    return await page.locator("#lines a.go").first.get_attribute("href") or ""

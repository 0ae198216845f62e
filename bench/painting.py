"""What a browser needs to show each page for the first time: bytes, time to its largest part, and shifts.

The demo fills a database. Then each page is opened in a new window of a real Chromium, with nothing cached.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from postroom.interfaces.dashboard.navigation import GROUPS
from postroom.store.engine.opening import open_database
from support.chromium import launched
from support.closed_home import open_home
from support.command import NO_SIGN_IN, POSTROOM
from support.served_pages import served_pages

from .answers import first_line_of

ADDRESSES = [place.address for group in GROUPS for place in group.places]
ROWS = 20
"""How many messages have to have come before it begins."""
WAIT_MS = 120_000
WATCH = """
window.painted = 0;
window.shifted = 0;
new PerformanceObserver((list) => { for (const each of list.getEntries()) painted = each.startTime; })
  .observe({ type: "largest-contentful-paint", buffered: true });
new PerformanceObserver((list) => { for (const each of list.getEntries()) shifted += each.value; })
  .observe({ type: "layout-shift", buffered: true });
"""
READ = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(
  () => setTimeout(() => done({ painted_ms: window.painted, shifted: window.shifted }), 100))))"""


async def filled(address: str) -> None:
    """Wait until the demo has something to show."""
    async with launched() as browser:
        page = await browser.new_page()
        await page.goto(address)
        await page.locator("#lines tr").nth(ROWS).wait_for(timeout=WAIT_MS)


async def measured(folder: Path) -> dict[str, Mapping[str, float]]:
    """Nothing arrives meanwhile: a row that comes in moves those below it, and that is no fault of the page."""
    database = await open_database(folder)
    try:
        async with served_pages(database, folder) as address, launched() as browser:
            return {path: await _first_load(browser, address + path) for path in ADDRESSES}
    finally:
        await database.close()


async def _first_load(browser: Browser, address: str) -> Mapping[str, float]:
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    received = await _counted(page)
    await page.add_init_script(WATCH)
    await page.goto(address)
    await page.locator("#link[data-state=live]").wait_for(timeout=WAIT_MS)
    found = await page.evaluate(READ)
    await context.close()
    return {**found, "kilobytes": sum(received) / 1000}


async def _counted(page: Page) -> list[float]:
    """The bytes of each file as they came over the wire; the stream of updates, which does not end, is not a file."""
    received: list[float] = []
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")

    def note(event: dict[str, Any]) -> None:
        received.append(event["encodedDataLength"])

    session.on("Network.loadingFinished", note)
    return received


@contextlib.contextmanager
def _demo(folder: Path) -> Generator[str]:
    command = [*POSTROOM, "demo", "--port", "0", "--json"]
    process = subprocess.Popen(
        command, cwd=folder, env=open_home(folder) | NO_SIGN_IN, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield json.loads(first_line_of(process, "the demo"))["url"]
    finally:
        process.terminate()
        process.communicate()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="postroom-paint-", ignore_cleanup_errors=True) as kept:
        folder = Path(kept)
        with _demo(folder) as address:
            asyncio.run(filled(address))
        sys.stdout.write(json.dumps(asyncio.run(measured(folder / ".local/share/postroom-demo"))) + "\n")


if __name__ == "__main__":
    main()

"""What a browser needs to show each page of the demo for the first time: bytes, time to its largest part, and shifts.

Each page is opened in a new window of a real Chromium, with nothing cached, on a server of its own on this machine.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from typing import Any

from playwright.async_api import Browser, Page

from postroom.dashboard.navigation import GROUPS
from support.chromium import launched
from support.command import NO_SIGN_IN, POSTROOM

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


async def measured(address: str) -> dict[str, Mapping[str, float]]:
    async with launched() as browser:
        await _until_filled(browser, address)
        return {path: await _first_load(browser, address + path) for path in ADDRESSES}


async def _until_filled(browser: Browser, address: str) -> None:
    page = await browser.new_page()
    await page.goto(address)
    await page.locator("#lines tr").nth(ROWS).wait_for(timeout=WAIT_MS)
    await page.close()


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
def _demo() -> Generator[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")} | NO_SIGN_IN
    with tempfile.TemporaryDirectory(prefix="postroom-paint-", ignore_cleanup_errors=True) as folder:
        command = [*POSTROOM, "demo", "--port", "0", "--json"]
        process = subprocess.Popen(command, cwd=folder, env=kept, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            yield json.loads(first_line_of(process, "the demo"))["url"]
        finally:
            process.terminate()
            process.communicate()


def main() -> None:
    with _demo() as address:
        sys.stdout.write(json.dumps(asyncio.run(measured(address))) + "\n")


if __name__ == "__main__":
    main()

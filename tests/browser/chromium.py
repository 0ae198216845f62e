"""The system's Chromium for the browser tests: found, installed when we may, and launched the same way every time."""

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache

from playwright.async_api import Browser, Dialog, Page, async_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
INSTALL = (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"])


class NoChromiumError(RuntimeError):
    """The browser tests have no browser to run in."""


@cache
def chromium() -> str:
    """Where Chromium is. A missing one is installed by root, and an error for anybody else: tests are never skipped."""
    found = shutil.which("chromium")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = shutil.which("chromium")
    if found is None:
        raise NoChromiumError(
            "the browser tests need `chromium` on PATH; install it, for instance with "
            "`apt-get install --no-install-recommends chromium`, or run the tests as root to have it installed"
        )
    return found


def _install() -> None:
    for command in INSTALL:
        done = subprocess.run(
            command, capture_output=True, text=True, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        )
        if done.returncode != 0:
            raise NoChromiumError(
                f"`{' '.join(command)}` failed; install Chromium by hand. It said:\n{done.stderr[-2000:]}"
            )


@asynccontextmanager
async def launched() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP refused ${event.violatedDirective} ${event.blockedURI}`));
"""


class Complaints(list[str]):
    """Everything a page should never do: errors on the console, uncaught exceptions, dialogs, CSP violations."""

    async def watch(self, page: Page) -> None:
        await page.add_init_script(REPORT_VIOLATIONS)
        page.on("console", lambda said: self.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.append(f"uncaught: {error}"))
        page.on("dialog", self._on_dialog)

    async def _on_dialog(self, dialog: Dialog) -> None:
        self.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

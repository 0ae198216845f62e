"""The system's Chromium for the browser tests: found, installed if permitted, and launched the same way every time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Dialog, Page, async_playwright

from support.programs import system_program

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


@asynccontextmanager
async def launched() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=system_program("chromium"), args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP refused ${event.violatedDirective} ${event.blockedURI}`));
"""


class BrowserErrors(list[str]):
    """Everything a page should never do: errors on the console, uncaught exceptions, dialogs, CSP violations."""

    async def watch(self, page: Page) -> None:
        await page.add_init_script(REPORT_VIOLATIONS)
        page.on("console", lambda said: self.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.append(f"uncaught: {error}"))
        page.on("dialog", self._on_dialog)

    async def _on_dialog(self, dialog: Dialog) -> None:
        self.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

"""The pages as an app on a phone: installed, without a network, brought up to date, and signed out."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from postroom.interfaces.dashboard import installable
from postroom.store.engine.database import Database
from support.axe import violations
from support.chromium import BrowserErrors
from support.clocks import ManualClock
from support.page_checks import problems_on
from support.patience import PATIENCE_S
from support.signed_in import PASSWORD, Pages, running_pages
from support.sqlite import new_sqlite

HELD = """async () => {
  const found = [];
  for (const name of await caches.keys())
    for (const { url } of await (await caches.open(name)).keys()) found.push([name, new URL(url).pathname]);
  return found;
}"""
WORKS = """async () => {
  const { active } = await navigator.serviceWorker.ready;
  if (active.state === "activated") return true;
  return new Promise((done) => active.addEventListener("statechange", () => done(true)));
}"""

GONE = """async (cache) => {
  while (await caches.has(cache)) await new Promise((again) => setTimeout(again, 20));
}"""


@pytest.fixture
async def page(browser: Browser) -> AsyncGenerator[Page]:
    context = await browser.new_context(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_S * 1000)
    yield await context.new_page()
    await context.close()


@pytest.fixture
async def database(tmp_path: Path, migrated_sqlite: Path) -> AsyncGenerator[Database]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    yield database
    await database.close()


async def sign_in(page: Page, address: str) -> None:
    await page.goto(f"{address}/sign-in")
    await page.get_by_label("Name").fill("mara")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


async def held(page: Page) -> dict[str, str]:
    """What the browser holds for later: the path of each file, and the cache it is in."""
    return {path: name for name, path in await page.evaluate(HELD)}


async def files_of(pages: Pages) -> set[str]:
    """What the worker of this server keeps, as its script says."""
    script = (await pages.http.get(f"{pages.address}{installable.WORKER}")).text
    return set(json.loads(script.partition("KEPT = ")[2].partition(";")[0]))


async def installs(page: Page) -> dict[str, Any]:
    """The manifest as the browser understands it, once nothing hinders the installation."""
    devtools = await page.context.new_cdp_session(page)
    hindrances = (await devtools.send("Page.getInstallabilityErrors"))["installabilityErrors"]
    assert [each["errorId"] for each in hindrances] == ["in-incognito"], "as every window of a test is"
    found = await devtools.send("Page.getAppManifest")
    assert found["errors"] == []
    return json.loads(found["data"])


async def test_it_is_installed_says_that_it_is_offline_comes_back_is_updated_and_forgets_all_at_the_end(
    page: Page, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    async with running_pages(database, clock, tmp_path) as pages:
        await pages.signed_in()
        port, address = pages.port, f"http://localhost:{pages.port}"
        await sign_in(page, address)
        assert await page.evaluate(WORKS)
        manifest = await installs(page)
        assert (manifest["name"], manifest["display"], manifest["start_url"]) == ("Postroom", "standalone", "/")
        for each in (*manifest["icons"], *({"src": at} for at in await touch_icons(page))):
            answer = await pages.http.get(f"{pages.address}{each['src']}")
            assert answer.headers["content-type"] == each.get("type", "image/png")
        for path in ("/mail", "/approvals", "/audit.csv"):
            await page.evaluate("async (path) => (await fetch(path)).text()", path)
        await page.goto(f"{address}/mail?q=invoice")
        before = await held(page)
        assert before.keys() == await files_of(pages), "files and the empty shell, no page"

    await page.reload()
    await expect(page.get_by_text("Postroom cannot be reached")).to_be_visible()
    assert await violations(page) == []
    assert await problems_on(page) == []

    monkeypatch.setattr(installable, "KEPT", (*installable.KEPT, "copy.js"))
    async with running_pages(database, clock, tmp_path, port=port) as pages:
        await expect(page.get_by_role("heading", level=1)).to_have_text("Mail")
        assert page.url == f"{address}/mail?q=invoice"
        (earlier,) = {*before.values()}
        await page.evaluate(GONE, earlier)
        assert (await held(page)).keys() == await files_of(pages)

        await page.goto(f"{address}/settings/sign-in")
        await page.get_by_role("button", name="Sign out", exact=True).click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert await held(page) == {}
        assert await page.evaluate("async () => (await navigator.serviceWorker.getRegistrations()).length") == 0


async def touch_icons(page: Page) -> list[str]:
    found = page.locator("link[rel=apple-touch-icon]")
    return [await each.get_attribute("href") or "" for each in await found.all()]


@pytest.mark.parametrize("there", ["undefined", "{ register: () => Promise.reject(new DOMException('no')) }"])
async def test_where_browsers_have_no_worker_nothing_breaks(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path, there: str
) -> None:
    """As on plain http of another machine, or in a private window that refuses it."""
    await complaints.watch(page)
    await page.add_init_script(f"Object.defineProperty(navigator, 'serviceWorker', {{ value: {there} }})")
    async with running_pages(database, ManualClock(), tmp_path, sign_in=False) as pages:
        await page.goto(f"http://localhost:{pages.port}/")
        await expect(page.locator("#link")).to_have_text("Live")
        await page.get_by_role("navigation", name="Main pages").get_by_role("link", name="Mail").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Mail")
        assert complaints == []

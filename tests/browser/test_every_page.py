"""Every page as axe-core and a thumb see it: in four widths, light and dark.

The application's routes say which pages there are. `make test` looks at each page in one of the eight ways, in turn;
`make soak` in all of them.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Literal, get_args
from uuid import uuid4

import pytest
from playwright.async_api import Browser, Page, expect
from starlette.routing import Route

from postroom.interfaces.dashboard.navigation import GROUPS
from postroom.operations.installation.long_tasks import FromPage, Report
from postroom.operations.jobs.job_bulk import BulkOutcome
from support.axe import violations
from support.chromium import BrowserErrors
from support.contract_house import FORMS, House
from support.page_checks import problems_on, show_board
from support.patience import PATIENCE_S
from support.scale import SOAK
from support.signed_in import PASSWORD, Pages, running_pages
from support.sqlite import new_sqlite

Scheme = Literal["light", "dark"]
WIDTHS = (360, 768, 1280, 1920)
WAYS: list[tuple[int, Scheme]] = list(product(WIDTHS, get_args(Scheme)))
NARROWEST = 320
NAME = "tove"
MOST_OF_A_KIND = 2
NO_PAGES = re.compile(
    r"/(events|static|api|v1|hooks|mcp|ingest|healthz|readyz|metrics|audit\.)|/mail/\{message\}/html|/connectors/new/\{"
)
"""Routes for programs, files, mail in its own frame, and providers that need other fields, of which there is none."""
GATE = ("/sign-in", "/sign-in/once")
STILL = "/settings/sign-in"
"""A page without a stream. `make test` puts the boards of others into it: as good to look at, and cheaper to open."""
OPENED = ("/", "/nowhere", "/sign-in/again")
HIT = """() => [...document.querySelectorAll(".tabbar > *, .btn, .seg a, .drawer a, select, input:not([type=hidden])")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
  .filter((each) => !each.closest(".unseen") && !each.matches(".unseen"))
  .map((each) => [each, (each.closest("label:has([type=checkbox], [type=radio])") ?? each).getBoundingClientRect()])
  .filter(([each, { height }]) => height && height < 43.5)
  .map(([each]) => each.outerHTML.slice(0, 120))"""
"""What a finger could miss."""


class Looking:
    """Goes from page to page, each in the next of the ways, and notes what is wrong and where it has been."""

    def __init__(self, page: Page, pages: Pages) -> None:
        self.page = page
        self.address = f"http://localhost:{pages.port}"
        self.seen = list[str]()
        self.wrong = dict[str, list[str]]()

    async def at(self, *paths: str) -> None:
        for path in paths:
            if SOAK or path.startswith(GATE) or path in (STILL, *OPENED):
                await self.page.goto(self.address + path)
            else:
                await show_board(self.page, path)
            await self.here(path=path)

    async def here(self, state: str = "", path: str = "") -> None:
        """Look at the page as it is now."""
        path = path or self.page.url.removeprefix(self.address)
        ways = WAYS if SOAK else [WAYS[len(self.seen) % len(WAYS)]]
        self.seen.append(path.partition("?")[0])
        for width, scheme in ways:
            await self._resize(width, scheme)
            found = await violations(self.page)
            if width == WIDTHS[0]:
                found += [f"small: {each}" for each in await self.page.evaluate(HIT)]
            if found:
                self.wrong[f"{path} {state} {width} {scheme}"] = found
        await self._resize(NARROWEST, "light")
        if beyond := [each for each in await problems_on(self.page) if "wide in" in each or "outside" in each]:
            self.wrong[f"{path} {state} {NARROWEST}"] = beyond
        await self._resize(1280, "light")

    async def _resize(self, width: int, scheme: Scheme) -> None:
        await self.page.set_viewport_size({"width": width, "height": 900})
        await self.page.emulate_media(color_scheme=scheme)


@pytest.fixture
async def house(migrated_sqlite: Path, tmp_path: Path) -> AsyncIterator[House]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    house = House(database, tmp_path)
    await house.fill()
    yield house
    await database.close()


@asynccontextmanager
async def looking(browser: Browser, pages: Pages) -> AsyncGenerator[Looking]:
    context = await browser.new_context(reduced_motion="reduce", service_workers="block", has_touch=True)
    context.set_default_timeout(PATIENCE_S * 1000)
    yield Looking(await context.new_page(), pages)
    await context.close()


async def test_axe_finds_nothing_on_any_page_and_a_finger_misses_nothing(
    browser: Browser, complaints: BrowserErrors, house: House
) -> None:
    async with running_pages(house.database, house.clock, house.data_dir) as pages, looking(browser, pages) as look:
        page = look.page
        await pages.signed_in(NAME)
        await look.at(*GATE, "/sign-in?to=/settings")
        await page.get_by_label("Name").fill(NAME)
        await page.get_by_label("Password").fill("not the password at all")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("#refusal")).to_be_visible()
        await look.here("refused")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Sign in").click()
        await page.wait_for_url(f"{look.address}/settings")
        await refuse_a_token(look)

        places = [place.address for group in GROUPS for place in group.places]
        shown = [*places, *FORMS, *few(pages, house.pages)]
        await look.at(STILL, *(each for each in shown if each not in (STILL, *OPENED)), *OPENED)
        await simulate(look)
        await change_many_jobs(look, pages)
        await open_dialogs(look)
        await make_a_rule(look, house.pages[0])
        assert look.wrong == {}
        assert unseen(pages, look.seen) == []


async def refuse_a_token(look: Looking) -> None:
    """A form with what is wrong at its field."""
    await look.page.get_by_text("Make a token").click()
    form = look.page.locator("form[action='/settings/tokens']")
    await form.get_by_label("Name").fill("without a mailbox")
    await form.get_by_label("Role").select_option("connector")
    await form.get_by_role("button", name="Make the token").click()
    await expect(form.locator("[aria-invalid=true]")).to_be_visible()
    await look.here("refused")


async def simulate(look: Looking) -> None:
    """A rule without an action is refused; with one it is tried on past mail."""
    page = look.page
    simulate = page.get_by_role("button", name="Simulate")
    await page.goto(f"{look.address}/rules/new")
    await page.get_by_label("Name", exact=True).fill("parcels")
    await page.get_by_label("Condition 1", exact=True).select_option("subject_words")
    await page.get_by_label("Condition 1: value").fill("parcel")
    async with page.expect_navigation():
        await simulate.click()
    await look.here("refused")
    await page.get_by_label("Action 1", exact=True).select_option("archive")
    await simulate.click()
    await expect(page.get_by_text("Decided differently")).to_be_visible()
    await look.here()


async def change_many_jobs(look: Looking, pages: Pages) -> None:
    runs = pages.services.parts.bulk_runs
    task = runs.start(FromPage("Retrying 3 jobs", "/jobs"), never_ending, str(uuid4()))
    await look.at(f"/jobs/runs/{task.id}")
    await runs.cancel(task.id)


async def never_ending(_report: Report) -> BulkOutcome:
    await asyncio.Event().wait()
    raise AssertionError("nothing ends this")


async def open_dialogs(look: Looking) -> None:
    """What opens above a page."""
    page = look.page
    for path, dialogs in {"/": ["help", "palette"], "/jobs?stage=failed": [], "/approvals": [], "/mail": []}.items():
        await page.goto(look.address + path)
        own = await page.locator("#board [popover]").evaluate_all("(all) => all.map((each) => each.id)")
        for id in [*dialogs, *own[:1]]:
            await page.locator(f"[id='{id}']").evaluate("(each) => each.showPopover()")
            await look.here(id)
            await page.locator(f"[id='{id}']").evaluate("(each) => each.hidePopover()")


async def make_a_rule(look: Looking, message: str) -> None:
    """A page that is only ever a part of another one."""
    await look.page.goto(look.address + message)
    button = look.page.get_by_role("link", name="Make a rule").first
    look.seen.append(await button.get_attribute("data-panel") or "")
    await button.click()
    await expect(look.page.locator("#panel")).to_be_visible()
    await look.here("make a rule")


def few(pages: Pages, paths: list[str]) -> list[str]:
    """Some of these pages, of each kind; in the soak all of them."""
    kinds: Counter[str] = Counter()
    found: list[str] = []
    for path in paths:
        kind = next(each.path for each in own_routes(pages) if each.path_regex.match(path.partition("?")[0]))
        kinds[kind] += 1
        if SOAK or kinds[kind] <= MOST_OF_A_KIND:
            found.append(path)
    return found


def unseen(pages: Pages, seen: list[str]) -> list[str]:
    """The pages of the application at which nobody has looked."""
    return [each.path for each in own_routes(pages) if not any(each.path_regex.match(path) for path in seen)]


def own_routes(pages: Pages) -> list[Route]:
    """The routes of pages, in the order in which a request meets them."""
    routes = [each for each in pages.app.routes if isinstance(each, Route) and "GET" in (each.methods or ())]
    return [each for each in routes if not NO_PAGES.match(each.path)]

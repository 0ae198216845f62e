"""200 hostile texts in every field that strangers write, on every page, wide and narrow: none is more than text."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from postroom.interfaces.dashboard.navigation import GROUPS
from postroom.store.engine.database import Database
from support.axe import violations
from support.chromium import BrowserErrors
from support.hostile_pages import HostileHouse
from support.hostile_text import PAYLOADS, live_updates, storable
from support.page_checks import Requests, problems_at_every_width, problems_on, show_board
from support.scale import SOAK
from support.served_pages import served_pages
from support.sqlite import new_sqlite
from support.store.mail_setup import Sample

NAVIGATION = [place.address for group in GROUPS for place in group.places]
FORMS = [
    "/rules/new",
    "/rules/import",
    "/rules/starter",
    "/connectors/new",
    "/connectors/imap",
    "/start",
    "/backfill/new",
    "/outbound/simulate",
]
LISTS = ["/mail?kind=mail", "/approvals", "/rules", "/audit"]
"""Lists that go on at another address; their pages have all texts."""


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield opened
    await opened.close()


def test_there_are_two_hundred_of_them_and_each_differs() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) == 200


async def test_no_text_becomes_more_than_text_on_any_page(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    house, strangers = HostileHouse(database, tmp_path, PAYLOADS), Requests()
    strangers.watch(page)
    await house.fill()
    async with served_pages(database, tmp_path) as address:
        found = await problems_of(page, address, house.pages)
        await open_live(page, f"{address}/mail")
        arriving = [Sample(f"live {number}", subject=storable(text)) for number, text in enumerate(live_updates())]
        await house.arrive(*arriving, Sample("last", subject="The last of them"))
        await expect(page.get_by_text("The last of them")).to_be_visible()
        await expect(page.locator("#link")).to_have_text("Live")
        assert await problems_on(page) == []
        assert complaints == []
    assert found == {}
    assert strangers == []


async def problems_of(page: Page, address: str, others: list[str]) -> dict[str, list[str]]:
    """Look at every page. In the soak each is opened; otherwise the boards of most are put into an open page."""
    found: dict[str, list[str]] = {}

    async def look(path: str, *, is_opened: bool) -> None:
        if is_opened:
            await open_live(page, address + path)
        else:
            await show_board(page, path)
        if problems := await problems_at_every_width(page):
            found[path] = problems

    for path in NAVIGATION:
        await look(path, is_opened=True)
        if SOAK:
            await page.emulate_media(color_scheme="dark")
            assert await violations(page) == [], path
    for path in [*FORMS, *others]:
        await look(path, is_opened=SOAK)
    for path in LISTS:
        further: str | None = path
        while further:
            await look(further, is_opened=SOAK)
            following = page.locator("#board a[rel=next]")
            further = await following.first.get_attribute("href") if await following.count() else None
    return found


async def open_live(page: Page, address: str) -> None:
    await page.goto(address)
    await expect(page.locator("#link")).to_have_text("Live")

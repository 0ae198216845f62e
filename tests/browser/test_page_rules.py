"""The rule pages and Filters in a real browser: read, written by keyboard, without JavaScript, live, on a phone."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from postroom.compose.pages import all_pages
from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.interfaces.http.serve import serving
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.store.rules.rules import switch_rule
from postroom.system.wall_clock import wall_clock
from support.axe import violations
from support.chromium import BrowserErrors
from support.page_app import parts_in
from support.rule_pages import ATTACKS, CLUB, INVOICE, LUNCH, PARCEL, SHOP, mailbox, stored
from support.sqlite import new_sqlite
from support.store.mail_setup import Sample

INTERVALS = UpdateIntervals(between_updates=0.01, reread=3600)


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield opened
    await opened.close()


@asynccontextmanager
async def dashboard(database: Database, data_dir: Path) -> AsyncGenerator[str]:
    site = Site(parts_in(data_dir, database), "mara@lindqvist.example", INTERVALS)
    app = create_application(site, all_pages(site), allowed_hosts=["127.0.0.1"])
    async with serving(app, host="127.0.0.1", port=0) as address:
        yield address


async def looks_well(page: Page) -> None:
    """On a desk and on a phone, light and dark: nothing grave for those who see badly, nothing beyond the edge."""
    await page.emulate_media(color_scheme="light")
    assert await violations(page) == []
    await page.set_viewport_size({"width": 390, "height": 800})
    await page.emulate_media(color_scheme="dark")
    assert await violations(page) == []
    await stays_inside(page)


async def stays_inside(page: Page) -> None:
    for width in (390, 1280):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_rules_are_read_and_changed_by_keyboard_and_change_by_themselves(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    box = await mailbox(database, SHOP, CLUB)
    async with dashboard(database, tmp_path) as address:
        await page.goto(f"{address}/rules")
        await expect(page.locator("#link")).to_have_text("Live")
        rows = page.locator("tr[data-row]")
        await expect(rows).to_have_count(2)
        await looks_well(page)
        await page.evaluate("window.sameDocument = true")

        await box.decide(PARCEL)
        await expect(rows.first.get_by_role("cell").nth(2)).to_have_text("1")
        signed = Signature(new_id(), "test", "admin", "too eager")
        await database.run(switch_rule("shop", False, signed, wall_clock()))
        await expect(rows.first).to_contain_text("too eager")
        assert await page.evaluate("window.sameDocument")

        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await page.keyboard.press("[")
        await expect(page.locator(".toast")).to_contain_text("“club” is tried earlier now.")
        await expect(page.locator("#link")).to_have_text("Live")
        await expect(rows.first).to_contain_text("club")
        assert list(await stored(database)) == ["club", "shop"]
        await page.keyboard.press("j")
        await page.keyboard.press("o")
        await expect(page.locator(".toast")).to_contain_text("“club” is off")
        assert complaints == []


async def test_a_rule_is_checked_while_it_is_written_and_nothing_typed_is_lost(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    box = await mailbox(database, CLUB)
    await box.deliver(PARCEL, INVOICE, LUNCH)
    async with dashboard(database, tmp_path) as address:
        await page.goto(f"{address}/rules/new")
        checked = page.locator("#checked")
        await expect(checked).to_contain_text("there is no condition")
        await page.get_by_label("Name", exact=True).fill("Parcels")
        await page.get_by_label("Condition 1", exact=True).select_option("subject_words")
        await page.get_by_label("Condition 1: value").press_sequentially("parcel")
        await expect(checked).to_contain_text("there is no action")
        await page.get_by_label("Action 1", exact=True).select_option("archive")
        await expect(checked).to_contain_text("1 of the newest 3 messages")
        await expect(checked).to_contain_text("Your parcel")
        # An update of the page while somebody writes: here, of what waits for a yes.
        await box.rules(replace(SHOP, action_type="trash", needs_approval=True))
        await box.decide(Sample("m9", subject="Bill"))
        await expect(page.get_by_label("Name", exact=True)).to_have_value("Parcels")
        await looks_well(page)
        await page.get_by_role("button", name="Simulate").click()
        await expect(page.get_by_text("Decided differently")).to_be_visible()
        await stays_inside(page)
        await page.get_by_role("button", name="Save rule").click()
        await expect(page.locator(".toast")).to_contain_text("“Parcels” is a rule now.")
        assert "Parcels" in await stored(database)
        await expect(page.locator("#checked")).to_contain_text("of the newest")
        await stays_inside(page)

        await page.keyboard.press("#")
        await expect(page.get_by_text("can be made again")).to_be_visible()
        await page.get_by_role("button", name="Remove it").click()
        await expect(page.locator(".toast")).to_contain_text("“Parcels” is removed.")
        assert complaints == []


async def test_everything_can_be_done_without_javascript(browser: Browser, database: Database, tmp_path: Path) -> None:
    box = await mailbox(database)
    await box.deliver(PARCEL)
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    async with dashboard(database, tmp_path) as address:
        await page.goto(f"{address}/rules/new?from=ida%40shop.example")
        await page.get_by_role("button", name="Save rule").click()
        await expect(page.locator(".toast")).to_contain_text("there is no action")
        await page.get_by_label("Action 1", exact=True).select_option("archive")
        await page.get_by_label("Condition 1: value").press("Enter")
        await expect(page.locator("#checked")).to_contain_text("1 of the newest 1 messages")
        await page.get_by_role("button", name="Edit as text").click()
        text = page.get_by_label("The rule, in YAML or JSON")
        await text.fill((await text.input_value()).replace("archive", "star"))
        await page.get_by_role("button", name="Save rule").click()
        await expect(page.locator(".toast")).to_contain_text("is a rule now")
        [view] = (await stored(database)).values()
        assert view.action == "star"

        await page.goto(f"{address}/rules/import")
        content = b"- {name: new, if: {to_me: true}, then: star}\n"
        await page.get_by_label("A file").set_input_files(
            {"name": "r.yaml", "mimeType": "text/yaml", "buffer": content}
        )
        await page.get_by_role("button", name="Read it").click()
        await page.get_by_role("button", name="Bring over 1 rule, off").click()
        await expect(page.locator(".toast")).to_contain_text("1 rule came over")
        assert not (await stored(database))["new"].enabled
    await context.close()


async def test_hostile_rules_and_mail_stay_text_and_inside_the_page(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    hostile = [
        replace(CLUB, name=f"{n} {attack}"[:200], conditions={"subject_contains": attack}, description=attack)
        for n, attack in enumerate(ATTACKS)
    ]
    box = await mailbox(database, *hostile)
    await box.decide(*(Sample(f"m{n}", f"{n}@x.example", attack) for n, attack in enumerate(ATTACKS)))
    views = list((await stored(database)).values())
    harmful = "#board :is(script, img, h1, [onload], [onmouseover], [hx-get])"
    async with dashboard(database, tmp_path) as address:
        for path in ("/rules", f"/rules/{views[0].id}", f"/rules/{views[-1].id}"):
            await page.goto(address + path)
            if path != "/rules":
                await expect(page.locator("#checked")).to_contain_text("Newest matches")
            assert await page.locator(harmful).count() == 0
            await stays_inside(page)
        assert complaints == []


async def test_starters_import_and_filters_are_read_on_any_screen(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    box = await mailbox(database)
    await box.deliver(PARCEL)
    async with dashboard(database, tmp_path) as address:
        await page.goto(f"{address}/rules/starter")
        await expect(page.get_by_text("of 1 messages").first).to_be_visible()
        await looks_well(page)
        await page.goto(f"{address}/filters")
        await expect(page.get_by_role("heading", name="Email priority tier rules")).to_be_visible()
        await looks_well(page)
        await page.goto(f"{address}/rules/import")
        await stays_inside(page)
        assert complaints == []

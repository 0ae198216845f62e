"""The pages of mail and approvals in a real browser, from the real server, over a real database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from postroom.interfaces.http.serve import serving
from postroom.store.actions import actions, approvals
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from support.axe import violations
from support.chromium import BrowserErrors
from support.page_setup import ask, carry_out_undo, filled_mailbox, mail_application, new_mailbox
from support.store.mail_setup import MailSetup, Sample


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await open_database(tmp_path)
    yield opened
    await opened.close()


@asynccontextmanager
async def served(database: Database) -> AsyncGenerator[str]:
    async with serving(mail_application(database), host="127.0.0.1", port=0) as address:
        yield address


async def open_live(page: Page, address: str) -> None:
    await page.goto(address)
    await expect(page.locator("#link")).to_have_text("Live")


async def looks_well(page: Page) -> None:
    """Wide and narrow, light and dark: no grave finding, and nothing stands out to the side."""
    for width, scheme in ((1280, "light"), (390, "dark")):
        await page.set_viewport_size({"width": width, "height": 800})
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.set_viewport_size({"width": 1280, "height": 800})


async def last_action(box: MailSetup, name: str) -> actions.ActionView:
    [found] = await box.setup.database.run(actions.list_actions(1, message_id=box.ids[name]))
    return found


async def test_mail_is_read_opened_and_archived_by_keyboard(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await filled_mailbox(database)
    async with served(database) as address:
        await open_live(page, f"{address}/mail")
        await expect(page.locator("#lines .subject")).to_have_text(
            ["Build 2214 failed on main", "Lunch", "Bill", "Parcel"]
        )
        await looks_well(page)
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await expect(page.locator("#lines [data-chosen] .subject")).to_have_text("Lunch")
        await page.keyboard.press("e")
        await expect(page.get_by_role("status").filter(has_text="it will be archived")).to_be_visible()
        await expect(page.locator("#lines li", has_text="Lunch")).to_contain_text("in line")
        assert (await last_action(box, "kept")).asked_by == "person:owner"

        await page.locator("#lines a", has_text="Parcel").click()
        await expect(page.get_by_role("region", name="From arrival to now")).to_contain_text("It was archived.")
        await expect(page.locator("#link")).to_have_text("Live")
        await looks_well(page)
        await page.keyboard.press("u")
        await expect(page.get_by_role("status").filter(has_text="It is being undone.")).to_be_visible()
        await expect(page.locator("#link")).to_have_text("Live")
        await carry_out_undo(box, (await last_action(box, "done")).id)
        await expect(page.get_by_role("region", name="Actions").locator(".pill")).to_have_text("undone")
        await expect(page.get_by_role("region", name="From arrival to now")).to_contain_text("That was undone")
        assert complaints == []


async def test_on_wide_screens_the_list_stays_beside_the_open_message(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await filled_mailbox(database)
    async with served(database) as address:
        await open_live(page, f"{address}/mail?by=rule")
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        opened = page.locator("#opened")
        await expect(opened.get_by_role("region", name="Content")).to_contain_text("Your parcel comes today.")
        await expect(page).to_have_url(f"{address}/mail?by=rule&open={box.ids['done']}#m-{box.ids['done']}")
        await expect(page.locator("#lines .subject")).to_have_text(["Bill", "Parcel"])
        await expect(page.locator("#link")).to_have_text("Live")
        await looks_well(page)
        left, right = await page.locator("#lines").bounding_box(), await opened.bounding_box()
        assert left is not None
        assert right is not None
        assert left["x"] + left["width"] <= right["x"], "side by side"
        await page.keyboard.press("k")
        await page.keyboard.press("Enter")
        await expect(opened.get_by_role("heading", name="Bill")).to_be_visible()
        await page.get_by_role("link", name="Close").click()
        await expect(opened).to_have_count(0)
        await expect(page.locator("#lines .subject")).to_have_text(["Bill", "Parcel"])

        await page.set_viewport_size({"width": 390, "height": 800})
        await page.locator("#lines a", has_text="Parcel").click()
        await expect(opened.get_by_role("region", name="Content")).to_be_visible()
        await expect(page.locator("#lines")).to_be_hidden()
        await page.get_by_role("link", name="Close").click()
        await expect(page.locator("#lines")).to_be_visible()
        assert complaints == []


async def test_new_mail_appears_within_the_open_list(page: Page, complaints: BrowserErrors, database: Database) -> None:
    box = await new_mailbox(database)
    async with served(database) as address:
        await open_live(page, f"{address}/mail")
        await expect(page.get_by_text("No mail yet.")).to_be_visible()
        await page.evaluate("window.sameDocument = true")
        await box.decide(Sample("m1", subject="Just in"))
        await expect(page.locator("#lines li", has_text="Just in")).to_contain_text("kept")
        await ask(box)
        await expect(page.locator("#lines li", has_text="Just in")).to_contain_text("needs approval")
        await expect(page).to_have_title("(1) Mail · Postroom")
        assert await page.evaluate("window.sameDocument")
        assert complaints == []


async def test_approvals_are_answered_by_keyboard_and_ticks_outlive_an_update(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(Sample("m1", subject="Hello"))
    first, second = await ask(box, "archive", life=timedelta(hours=1)), await ask(box, "star")
    async with served(database) as address:
        await open_live(page, f"{address}/approvals")
        await looks_well(page)
        await expect(page.locator("nav .count").first).to_have_text("2")
        await page.keyboard.press("j")
        await expect(page.locator(f"[id='a-{first.id}'][data-chosen]")).to_have_count(1)
        await page.keyboard.press("x")
        await expect(page.locator(f"[id='a-{first.id}'] input:checked")).to_have_count(1)
        third = await ask(box, "trash")
        await page.get_by_role("button", name="1 new action").click()
        await expect(page.locator("#lines > li")).to_have_count(3)
        await expect(page.locator(f"[id='a-{first.id}'] input:checked")).to_have_count(1)
        await page.get_by_role("button", name="Approve 1…").click()
        await page.get_by_role("button", name="Approve 1", exact=True).click()
        await expect(page.get_by_role("status").filter(has_text="1 approved: being done.")).to_be_visible()
        await expect(page.locator("#lines > li")).to_have_count(2)
        await expect(page.locator("#link")).to_have_text("Live")
        await page.keyboard.press("j")
        await page.keyboard.press("r")
        await expect(page.get_by_role("status").filter(has_text="Rejected: it is not done.")).to_be_visible()
        assert complaints == []
    states = [(await database.run(approvals.show_approval(each.id))).state for each in (first, second, third)]
    assert states == ["queued", "rejected", "approved_pending"]


async def test_everything_works_without_javascript(browser: Browser, database: Database) -> None:
    box = await filled_mailbox(database)
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    async with served(database) as address:
        await page.goto(f"{address}/mail")
        await page.get_by_label("State").select_option("done")
        await page.get_by_role("button", name="Show").click()
        await expect(page.locator("#lines .subject")).to_have_text(["Parcel"])
        await page.goto(f"{address}/mail/{box.ids['kept']}")
        await page.get_by_label("Another action").select_option("apply_label")
        await page.get_by_label("Label, where the action needs one").fill("Travel")
        await page.get_by_role("button", name="Do it").click()
        await expect(page.get_by_role("region", name="Actions")).to_contain_text("label it “Travel”")
        await page.goto(f"{address}/approvals")
        await page.get_by_role("button", name="Approve", exact=True).click()
        await expect(page.locator(".toast")).to_contain_text("Approved: it is being done.")
    await context.close()
    assert (await last_action(box, "asked")).state == "queued"

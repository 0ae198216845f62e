"""Forms in a real browser: refused ones keep what was typed, and what was made can be copied."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from postroom.store.people.tokens import list_tokens
from support.axe import violations
from support.clocks import ManualClock
from support.signed_in import PASSWORD, Pages, running_pages
from support.sqlite import new_sqlite


@pytest.fixture
async def pages(tmp_path: Path, migrated_sqlite: Path) -> AsyncGenerator[Pages]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, ManualClock(), tmp_path) as running:
        await running.signed_in()
        yield running
    await database.close()


async def open_settings(page: Page, pages: Pages) -> None:
    await page.goto(f"{pages.address}/sign-in?to=/settings")
    await page.get_by_label("Name").fill("mara")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(f"{pages.address}/settings")


async def send_token_form(page: Page, pages: Pages, name: str) -> None:
    """Ask for a token of a connector, without the mailbox that it needs."""
    await page.get_by_text("Make a token").click()
    form = page.locator("form[action='/settings/tokens']")
    await form.get_by_label("Name").fill(name)
    await form.get_by_label("Role").select_option("connector")
    await form.get_by_role("button", name="Make the token").click()
    await page.wait_for_url(f"{pages.address}/settings?refused=*")


async def shows_the_form_again(page: Page, name: str) -> None:
    form = page.locator("form[action='/settings/tokens']")
    endpoint = form.get_by_label("Endpoint, for connectors")
    await expect(endpoint).to_be_focused()
    await expect(endpoint).to_have_attribute("aria-invalid", "true")
    await expect(endpoint).to_have_accessible_description(
        re.compile("^This is missing, and a connector .*one endpoint. Name the")
    )
    await expect(form.get_by_label("Name")).to_have_value(name)
    await expect(form.get_by_label("Role")).to_have_value("connector")
    await expect(page.locator(".toast")).to_have_count(0)


async def test_a_refused_form_keeps_its_fields_through_updates_and_is_sent_after_a_proof(
    page: Page, pages: Pages
) -> None:
    await open_settings(page, pages)
    await send_token_form(page, pages, "helper")
    await expect(page.locator("#link")).to_have_text("Live")
    await shows_the_form_again(page, "helper")
    assert await violations(page) == []
    await page.get_by_label("Endpoint, for connectors").fill("gmail:user:ada@example.com")
    pages.clock.forward(11 * 60)
    await page.get_by_role("button", name="Make the token").click()
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("heading", name="The new token for helper")).to_be_visible()
    secret = await page.locator("#copied").text_content()
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("status")).to_have_text("Copied.")
    assert await page.evaluate("navigator.clipboard.readText()") == secret
    assert await violations(page) == []
    (token,) = await pages.database.run(list_tokens())
    assert (token.name, token.identity) == ("helper", "gmail:user:ada@example.com")


async def test_a_refused_form_keeps_its_fields_without_a_script(browser: Browser, pages: Pages) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await open_settings(page, pages)
    await send_token_form(page, pages, "</form>\"'&")
    await shows_the_form_again(page, "</form>\"'&")
    await context.close()


async def test_a_setting_is_mended_proved_changed_and_reset_on_the_page(page: Page, pages: Pages) -> None:
    await open_settings(page, pages)
    zone = page.get_by_label("Your time zone")
    form = page.locator("form[action='/settings/values/time_zone']")
    await zone.fill("Mars/Olympus")
    await form.get_by_role("button", name="Change").click()
    await expect(zone).to_be_focused()
    await expect(zone).to_have_value("Mars/Olympus")
    await expect(zone).to_have_accessible_description(
        "'Mars/Olympus' is refused. Use a name such as UTC or Europe/Berlin."
    )
    assert await violations(page) == []
    pages.clock.forward(11 * 60)
    await zone.fill("Europe/Berlin")
    await form.get_by_role("button", name="Change").click()
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_text("Changed. Your time zone: Europe/Berlin.")).to_be_visible()
    await expect(zone).to_have_value("Europe/Berlin")
    await page.locator("form[action='/settings/values/time_zone/reset'] button").click()
    await expect(page.get_by_text("Reset. Your time zone: UTC.")).to_be_visible()
    await expect(zone).to_have_value("UTC")
    assert await violations(page) == []


async def test_what_may_not_be_copied_is_selected_and_codes_are_set_up_by_a_picture(page: Page, pages: Pages) -> None:
    # The page has no right to the clipboard, as with a browser that was told to refuse it.
    await page.add_init_script("navigator.clipboard.writeText = () => Promise.reject(new Error('denied'))")
    await open_settings(page, pages)
    await page.goto(f"{pages.address}/settings/sign-in")
    await expect(page.get_by_role("img", name="QR code for your authenticator app")).to_be_visible()
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_text("Selected. Copy it with Ctrl+C")).to_be_visible()
    selected = await page.evaluate("getSelection().toString()")
    assert selected == await page.locator("#copied").text_content()
    await page.get_by_label("Code", exact=True).fill("12")
    await page.get_by_role("button", name="Turn codes on").click()
    await expect(page.get_by_label("Code", exact=True)).to_be_focused()
    await expect(page.get_by_label("Code", exact=True)).to_have_accessible_description(
        "This is not the one that the app shows now. Enter the secret into the app, then its code."
    )
    assert await page.locator("#copied").text_content() == selected, "the app has this secret by now"
    assert await violations(page) == []

"""Passkeys in a real browser, with an authenticator that Chromium emulates; and the cookie that it accepts."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from postroom.operations.people.form_tokens import unmasked
from postroom.store.actions.approvals import Approval, show_approval
from postroom.store.people.audit import list_audit
from postroom.store.people.sessions import end_sessions
from support.axe import violations
from support.chromium import BrowserErrors
from support.clocks import ManualClock
from support.page_setup import ask, new_mailbox
from support.signed_in import PASSWORD, Pages, running_pages
from support.sqlite import new_sqlite
from support.store.fault_cases_registry import signed
from support.store.mail_setup import MailSetup, Sample


@pytest.fixture
async def pages(tmp_path: Path, migrated_sqlite: Path) -> AsyncGenerator[Pages]:
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, ManualClock(), tmp_path) as running:
        yield running
    await database.close()


@pytest.fixture
async def authenticator(page: Page) -> Page:
    """A page whose browser has a device that holds passkeys and asks for a finger."""
    session = await page.context.new_cdp_session(page)
    await session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    await session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return page


async def open_link(page: Page, pages: Pages, secret: str, host: str = "localhost") -> None:
    await page.goto(f"http://{host}:{pages.port}/sign-in/once#{secret}")
    await expect(page.get_by_text("It works once")).to_be_visible()
    assert secret not in page.url, "the secret is taken out of the address"
    await page.get_by_role("button", name="Continue").click()


async def signed_out(page: Page, pages: Pages) -> None:
    await page.goto(f"http://localhost:{pages.port}/settings/sign-in")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_a_passkey_is_made_by_the_first_link_and_opens_the_pages_ever_after(
    authenticator: Page, pages: Pages, complaints: BrowserErrors
) -> None:
    page = authenticator
    await open_link(page, pages, await pages.first_link())
    await page.get_by_label("Name").fill("Mara")
    await page.get_by_role("button", name="Make a passkey").click()
    await page.wait_for_url(f"http://localhost:{pages.port}/")
    (cookie,) = [each for each in await page.context.cookies() if each.get("name") == pages.cookie_name]
    assert [cookie.get(name) for name in ("secure", "httpOnly", "sameSite", "path")] == [True, True, "Lax", "/"]

    await signed_out(page, pages)
    assert pages.cookie_name not in [each.get("name") for each in await page.context.cookies()]
    await page.goto(f"http://localhost:{pages.port}/settings/sign-in")
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.get_by_role("button", name="Use a passkey").click()
    await page.wait_for_url(f"http://localhost:{pages.port}/settings/sign-in")
    await expect(page.get_by_text("mara · admin")).to_be_visible()

    pages.clock.forward(11 * 60)
    await page.reload()
    await page.get_by_role("link", name="Confirm now").click()
    await page.get_by_role("button", name="Use a passkey").click()
    await page.wait_for_url(f"http://localhost:{pages.port}/settings/sign-in")
    await expect(page.get_by_text("To change anything here")).to_have_count(0)
    acts = [(each.action, each.actor) for each in await pages.database.run(list_audit(20))][::-1]
    assert [name for name, _ in acts] == [
        *("person.add", "person.passkey_add", "sign_in", "session.end", "sign_in", "sign_in.again")
    ]
    assert {actor for _, actor in acts} == {"person:mara"}
    assert complaints == []


async def test_passkeys_are_added_and_removed_beside_a_password(
    authenticator: Page, pages: Pages, complaints: BrowserErrors
) -> None:
    page = authenticator
    await open_link(page, pages, await pages.first_link())
    await page.get_by_label("Name").fill("mara")
    await page.get_by_label("New password").fill(PASSWORD)
    await page.get_by_role("button", name="Use this password").click()
    await page.wait_for_url(f"http://localhost:{pages.port}/")
    await page.goto(f"http://localhost:{pages.port}/settings/sign-in")
    await page.get_by_label("Name of the device").fill("the laptop")
    await page.get_by_role("button", name="Add a passkey").click()
    await expect(page.get_by_text("The passkey was added.")).to_be_visible()
    await expect(page.get_by_role("cell", name="the laptop", exact=True)).to_be_visible()
    assert await violations(page) == []
    await page.get_by_role("button", name="Remove the passkey the laptop").click()
    await expect(page.get_by_text("The passkey was removed.")).to_be_visible()
    await signed_out(page, pages)
    await page.get_by_role("button", name="Use a passkey").click()
    await expect(page.get_by_text("This passkey was not accepted")).to_be_visible()
    assert [each for each in complaints if "401" not in each] == []


async def approvals_ticked(page: Page, pages: Pages, box: MailSetup) -> list[Approval]:
    """Three actions wait for a yes; they are ticked eleven minutes after the last proof."""
    asked = [await ask(box, name) for name in ("trash", "archive", "star")]
    await page.goto(f"http://localhost:{pages.port}/approvals")
    pages.clock.forward(11 * 60)
    for each in asked:
        await page.locator(f"#a-{each.id} input[name=chosen]").check()
    await page.get_by_role("button", name="Approve 3…").click()
    await page.get_by_role("button", name="Approve 3", exact=True).click()
    await expect(page.get_by_text("This is hard to undo.")).to_be_visible()
    return asked


@pytest.mark.parametrize("way", ["password", "passkey"])
async def test_what_was_asked_is_done_after_the_proof(
    authenticator: Page, pages: Pages, complaints: BrowserErrors, way: str
) -> None:
    page, box = authenticator, await new_mailbox(pages.database)
    await box.deliver(Sample("m1", "Uta <uta@home.example>", "Lunch on Friday", "Shall we?"))
    await open_link(page, pages, await pages.first_link())
    await page.get_by_label("Name").fill("mara")
    if way == "password":
        await page.get_by_label("New password").fill(PASSWORD)
        await page.get_by_role("button", name="Use this password").click()
    else:
        await page.get_by_role("button", name="Make a passkey").click()
    await page.wait_for_url(f"http://localhost:{pages.port}/")
    asked = await approvals_ticked(page, pages, box)
    assert await violations(page) == []
    if way == "password":
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Continue").click()
    else:
        await page.get_by_role("button", name="Use a passkey").click()
    await expect(page.get_by_role("status").filter(has_text="3 approved")).to_be_visible()
    assert page.url == f"http://localhost:{pages.port}/approvals"
    states = [(await pages.database.run(show_approval(each.id))).state for each in asked]
    assert states == ["queued"] * 3
    assert complaints == []


async def test_without_a_script_and_by_number_a_password_is_enough(pages: Pages, page: Page) -> None:
    """At 127.0.0.1, for which browsers make no passkeys; they accept the cookie there as well."""
    context = await page.context.browser.new_context(java_script_enabled=False)  # type: ignore[union-attr]
    plain, secret = await context.new_page(), await pages.first_link()
    await plain.goto(f"{pages.address}/mail?x=1")
    await expect(plain.get_by_text("No one has set up sign-in yet")).to_be_visible()
    await plain.goto(f"{pages.address}/sign-in/once")
    await plain.get_by_label("The part of the link after #").fill(secret)
    await plain.get_by_role("button", name="Continue").click()
    await plain.get_by_label("Name").fill("mara")
    await plain.get_by_label("New password").fill(PASSWORD)
    await plain.get_by_role("button", name="Use this password").click()
    assert plain.url == f"{pages.address}/"
    (cookie,) = await context.cookies()
    assert cookie.get("secure")
    await plain.goto(f"{pages.address}/settings/sign-in")
    await expect(plain.get_by_text("mara · admin")).to_be_visible()
    await plain.get_by_role("button", name="Sign out", exact=True).click()
    await plain.get_by_label("Name").fill("mara")
    await plain.get_by_label("Password").fill("not the password at all")
    await plain.get_by_role("button", name="Sign in").click()
    await expect(plain.get_by_role("alert")).to_contain_text("Name, password or code is wrong. 4 more tries")
    await plain.get_by_label("Password").fill(PASSWORD)
    await plain.get_by_role("button", name="Sign in").click()
    assert plain.url == f"{pages.address}/"
    await context.close()


async def test_a_page_whose_session_has_ended_leads_to_sign_in_unless_somebody_writes_on_it(
    tmp_path: Path, migrated_sqlite: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.compose.sign_in.LOOK_EVERY_S", 0.05)
    database = await new_sqlite(tmp_path, migrated_sqlite)
    async with running_pages(database, ManualClock(), tmp_path) as pages:
        site = f"http://localhost:{pages.port}"
        await pages.signed_in()
        await page.goto(f"{site}/sign-in?to=/audit")
        await page.get_by_label("Name").fill("mara")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_label("Password").press("Enter")
        await page.wait_for_url(f"{site}/audit")
        writing = await page.context.new_page()
        await writing.goto(f"{site}/rules/new")
        await writing.locator("#board input[name=name]").fill("do not lose me")
        for each in (page, writing):
            await expect(each.locator("#link")).to_have_text("Live")
        await database.run(end_sessions("mara", None, signed(), pages.clock()))
        await page.wait_for_url(f"{site}/sign-in?to=/audit")
        await expect(writing.locator("#link")).to_contain_text("Signed out")
        await page.get_by_label("Name").fill("mara")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_label("Password").press("Enter")
        await page.wait_for_url(f"{site}/audit")
        await expect(writing.locator("#link")).to_have_text("Live")
        await expect(writing.locator("#board input[name=name]")).to_have_value("do not lose me")
        tokens = [await page.locator("#form-token").get_attribute("value")]
        tokens.append(await writing.locator("#editor input[name=form_token]").get_attribute("value"))
        assert tokens[0] != tokens[1]
        assert len({unmasked(each or "") for each in tokens}) == 1
    await database.close()

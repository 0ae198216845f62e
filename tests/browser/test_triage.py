"""Lists that people work through by keyboard: acts in place, new rows that wait, and the way back in the toast."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, Request, expect

from postroom.interfaces.http.serve import serving
from postroom.store.actions import approvals
from postroom.store.actions.approvals import Approval
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from postroom.store.rules.rules import list_rules
from postroom.system.wall_clock import wall_clock
from support.axe import violations
from support.chromium import BrowserErrors
from support.clocks import ManualClock
from support.intake_pages import IntakeSetup
from support.page_setup import ARCHIVED, BILL, LUNCH, PARCEL, SHOPS, ask, claim_undos, mail_application, new_mailbox
from support.served_pages import served_pages
from support.store.fault_cases_registry import signed
from support.store.mail_setup import MailSetup, Sample

LONG = "Please read this before Thursday: the minutes of the assembly, with the plan for the roof and what it costs"
MANY = [Sample(f"m{number}", subject=f"Message {number}") for number in range(1, 31)]
INBOX = frozenset({"INBOX", "UNREAD"})


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Database]:
    opened = await open_database(tmp_path)
    yield opened
    await opened.close()


@asynccontextmanager
async def live(page: Page, database: Database, path: str, patience: timedelta = timedelta()) -> AsyncGenerator[None]:
    """The page is open and live; all of it happens in this one document."""
    async with serving(mail_application(database, patience=patience), host="127.0.0.1", port=0) as address:
        await page.goto(f"{address}{path}")
        await expect(page.locator("#link")).to_have_text("Live")
        await page.evaluate("window.sameDocument = true")
        yield
        assert await page.evaluate("window.sameDocument")


async def as_shown(page: Page, asked: list[Approval]) -> list[Approval]:
    """In the order of the page: those that expire at one moment and were made in one millisecond have none."""
    ids = await page.locator("#lines > li").evaluate_all("rows => rows.map((row) => row.id)")
    return sorted(asked, key=lambda each: ids.index(f"a-{each.id}"))


def chosen(page: Page) -> Locator:
    return page.locator("[data-chosen]:focus-within")


async def test_mail_is_archived_row_after_row_without_leaving_the_list(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(*MANY)
    async with live(page, database, "/mail"):
        await page.keyboard.press("k")
        await page.keyboard.press("k")
        await expect(chosen(page)).to_contain_text("Message 2")
        scrolled = await page.evaluate("scrollY")
        await page.keyboard.press("k")
        for _ in range(2):
            await page.keyboard.press("e")
        await expect(page.locator("#lines li", has_text="in line")).to_have_count(2)
        await expect(chosen(page)).to_contain_text("Message 1")
        await expect(page.get_by_role("status").filter(has_text="it will be archived")).to_be_visible()
        assert scrolled > 0
        assert await page.evaluate("scrollY") == scrolled
        assert complaints == []


async def test_approvals_are_answered_one_after_the_other_without_leaving_the_list(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(Sample("m1"))
    asked = [await ask(box, action) for action in ("archive", "star", "trash", "mark_read")]
    async with live(page, database, "/approvals"):
        rows, asked = page.locator("#lines > li"), await as_shown(page, asked)
        await page.keyboard.press("j")
        for _ in range(3):
            await page.keyboard.down("r")  # held down it means one row, not one after the other
        await page.keyboard.up("r")
        await page.keyboard.press("a")
        await expect(rows).to_have_count(2)
        await expect(page.locator(f"[id='a-{asked[2].id}'][data-chosen]:focus-within")).to_have_count(1)
        await page.keyboard.press("j")
        await page.keyboard.press("r")
        await expect(rows).to_have_count(1)
        await expect(page.locator(f"[id='a-{asked[2].id}'][data-chosen]:focus-within")).to_have_count(1)
        assert complaints == []
        await page.keyboard.press("z")
        await expect(page.locator(".toast")).to_contain_text("1 needs your approval again.")
        await expect(rows).to_have_count(2)
        await expect(page.locator("#held")).to_be_empty()
        assert await violations(page) == []
    states = [(await database.run(approvals.show_approval(each.id))).state for each in asked]
    assert states == ["rejected", "queued", "approved_pending", "approved_pending"]


async def test_a_double_click_answers_one_row(page: Page, database: Database) -> None:
    box = await new_mailbox(database)
    await box.decide(Sample("m1"))
    for action in ("archive", "star"):
        await ask(box, action)
    async with live(page, database, "/approvals"):
        rows, sent = page.locator("#lines > li"), list[Request]()
        page.on("request", lambda each: sent.append(each))
        await rows.first.get_by_role("button", name="Reject").click()
        await expect(rows).to_have_count(1)
        await page.mouse.down(click_count=2)
        await page.mouse.up(click_count=2)
        assert await page.locator("#lines button:hover").count() == 1, "the other row's button is there now"
        await page.evaluate("fetch('/healthz')")  # an answer sent before it would be known by now
        assert [each.method for each in sent if each.method == "POST"] == ["POST"]


async def test_an_answer_that_is_refused_is_said_in_place(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(Sample("m1"))
    await ask(box, "archive")
    async with live(page, database, "/approvals"):
        await page.locator("input[name=shown]").evaluate("each => each.value = 'other'")
        await page.keyboard.press("j")
        await page.keyboard.press("a")
        await expect(page.locator(".toast[data-mood=bad]")).to_be_visible()
        await expect(page.locator("#lines > li")).to_have_count(1)
        await expect(page.locator("#lines > li[aria-busy]")).to_have_count(0)
        assert complaints == []


async def test_an_act_that_cannot_be_sent_keeps_the_list(page: Page, database: Database) -> None:
    box = await new_mailbox(database)
    await box.decide(*MANY[:2])
    async with serving(mail_application(database), host="127.0.0.1", port=0) as address:
        await page.goto(f"{address}/mail")
        await expect(page.locator("#link")).to_have_text("Live")
        await page.route("**/do", lambda route: route.fulfill(status=401, body="You are signed out."))
        await page.keyboard.press("j")
        async with page.expect_navigation(url=f"{address}/mail"):  # the sign-in page, which leads back here
            await page.keyboard.press("e")
        await expect(page.locator("#link")).to_have_text("Live")
        await page.unroute("**/do")
    await expect(page.locator("#link")).to_have_text("Reconnecting…")
    await page.keyboard.press("j")
    await page.keyboard.press("e")
    await expect(page.locator(".toast")).to_contain_text("Postroom did not answer.")
    await expect(page.locator("#lines li")).to_have_count(2)


async def test_jobs_are_retried_one_after_the_other_without_leaving_the_list(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    setup = IntakeSetup(database, tmp_path, ManualClock(wall_clock()))
    await setup.failed("the label 41 is gone", "the label 42 is gone", "the label 43 is gone")
    async with served_pages(database, tmp_path) as address:
        await page.goto(f"{address}/jobs?stage=failed")
        await expect(page.locator("#link")).to_have_text("Live")
        await page.evaluate("window.sameDocument = true")
        rows = page.locator("#jobs > tr")
        await expect(rows).to_have_count(3)
        await page.keyboard.press("j")
        await page.keyboard.press("j")
        await expect(rows.first).to_have_attribute("data-chosen", "")
        await page.keyboard.press("r")
        await page.keyboard.press("r")
        await expect(rows).to_have_count(1)
        await expect(rows.first).to_have_attribute("data-chosen", "")
        assert await page.evaluate("window.sameDocument")
        assert complaints == []


async def test_new_rows_wait_while_somebody_is_in_the_list(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(*MANY[:3])
    async with live(page, database, "/mail"):
        rows, held = page.locator("#lines .subject"), page.locator("#held button")
        await rows.nth(1).hover()
        await box.decide(MANY[3])
        await expect(held).to_have_text("1 new message .")
        await box.decide(MANY[4])
        await expect(held).to_have_text("2 new messages .")
        await expect(rows).to_have_text(["Message 3", "Message 2", "Message 1"])
        for width in (1280, 360):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await violations(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.set_viewport_size({"width": 1280, "height": 800})
        await page.keyboard.press(".")
        await expect(rows).to_have_text([f"Message {number}" for number in (5, 4, 3, 2, 1)])
        await expect(held).to_have_count(0)

        await page.mouse.move(0, 0)
        await page.keyboard.press("j")
        await box.decide(MANY[5])
        await expect(held).to_have_text("1 new message .")
        await page.get_by_role("searchbox", name="Search mail").focus()
        await expect(rows).to_have_count(6)
        await expect(held).to_have_count(0)
        assert complaints == []


async def test_an_act_that_is_done_is_undone_from_its_toast(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(Sample("m1"), Sample("m2"))
    async with live(page, database, "/mail", timedelta(seconds=60)):
        await page.keyboard.press("j")
        await page.keyboard.press("e")
        await expect(page.locator("#lines li", has_text="in line")).to_have_count(1)
        await archive_now(box)
        undo = page.locator(".toast").get_by_role("button", name="Undo")
        await expect(undo).to_be_visible()
        assert await violations(page) == []
        await undo.click()
        await expect(page.locator(".toast")).to_contain_text("It is being undone.")
        assert complaints == []
    assert len(await claim_undos(box)) == 1


async def test_dialogs_name_the_number_of_selected_actions(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(Sample("m1"))
    asked = [await ask(box, action) for action in ("archive", "star", "trash")]
    async with serving(mail_application(database), host="127.0.0.1", port=0) as address:
        await page.goto(f"{address}/approvals")
        await expect(page.locator("#link")).to_have_text("Live")
        await expect(page.get_by_role("button", name="Reject selected…")).to_be_visible()
        asked = await as_shown(page, asked)
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await expect(page.get_by_role("button", name="Reject 1…")).to_be_visible()
        await page.keyboard.press("j")
        await page.keyboard.press("x")
        await ask(box, "mark_read")
        await expect(page.locator("#held")).to_contain_text("1 new action")
        await page.get_by_role("button", name="Reject 2…").click()
        await expect(page.get_by_role("dialog", name="Reject 2 actions?")).to_be_visible()
        assert await violations(page) == []
        await page.get_by_role("button", name="Reject 2", exact=True).click()
        await expect(page.get_by_role("status").filter(has_text="2 rejected: not done.")).to_be_visible()
        await expect(page.locator(".toast").get_by_role("button", name="Undo all 2")).to_be_visible()
        assert complaints == []
    states = [(await database.run(approvals.show_approval(each.id))).state for each in asked]
    assert states == ["rejected", "rejected", "approved_pending"]


async def test_a_long_subject_has_two_lines_beside_the_open_message(page: Page, database: Database) -> None:
    box = await new_mailbox(database)
    await box.decide(Sample("m1", subject="Lunch"), Sample("m2", subject=LONG))
    async with live(page, database, f"/mail?open={box.ids['m1']}"):
        heights = await page.locator("#lines .go").evaluate_all("all => all.map((each) => each.offsetHeight)")
        assert heights[0] > 1.8 * heights[1], heights
        assert await violations(page) == []


async def test_a_key_never_means_the_opened_message_while_another_is_chosen(page: Page, database: Database) -> None:
    box = await new_mailbox(database)
    await box.rules(SHOPS)
    await box.acted(PARCEL, ARCHIVED)
    await box.decide(MANY[0])
    async with live(page, database, f"/mail?open={box.ids['done']}"):
        await expect(page.locator("[data-chosen]")).to_contain_text("Parcel")
        await expect(page.locator("#opened [data-key=w]")).to_be_visible()
        await page.keyboard.press("k")
        await expect(chosen(page)).to_contain_text("Message 1")
        await page.keyboard.press("w")
        await page.keyboard.press("j")
        await expect(chosen(page)).to_contain_text("Parcel")
    assert await claim_undos(box) == []


async def test_the_palette_offers_the_acts_of_the_chosen_row(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(*MANY[:2])
    async with live(page, database, "/mail"):
        await page.keyboard.press("j")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("archive")
        await expect(page.locator("#commands li").first).to_have_text("Archive the chosen row")
        await page.keyboard.press("Enter")
        await expect(page.locator("#lines li", has_text="in line")).to_contain_text("Message 2")
        await page.keyboard.press("Control+k")
        await expect(page.locator("#commands")).to_contain_text("Go to Approvals")
        await expect(page.locator("#commands")).to_contain_text("Print this page")
        assert complaints == []


async def test_the_palette_does_nothing_else_when_what_it_shows_is_gone(page: Page, database: Database) -> None:
    box = await new_mailbox(database)
    await box.decide(Sample("m1"))
    asked = [await ask(box, action) for action in ("archive", "star")]
    async with live(page, database, "/approvals"):
        [first, _], offered = await as_shown(page, asked), page.locator("#commands li").first
        await page.keyboard.press("j")
        await page.keyboard.press("Control+k")
        await expect(offered).to_have_text("Approve the chosen row")
        await database.run(approvals.reject_action(first.id, signed(), wall_clock()))
        await expect(page.locator("#lines > li")).to_have_count(1)
        await page.keyboard.press("Enter")
        await expect(offered).to_have_text("Reject selected…")
        await expect(page.get_by_role("dialog", name="Commands")).to_be_visible()


async def test_the_palette_pauses_from_any_page_by_the_dialog_of_its_own(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    await new_mailbox(database)
    async with serving(mail_application(database), host="127.0.0.1", port=0) as address:
        await page.goto(f"{address}/approvals")
        await expect(page.locator("#link")).to_have_text("Live")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("pause")
        await expect(page.locator("#commands li").first).to_have_text("Pause or resume everything…")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog", name="Pause everything?")).to_be_visible()
        assert page.url == f"{address}/"
        assert complaints == []


async def archive_now(box: MailSetup) -> None:
    box.setup.clock.now = wall_clock() + timedelta(seconds=1)
    [job] = await box.setup.claim()
    await box.complete(job, INBOX, ARCHIVED)


async def test_a_rule_is_made_from_a_row_with_its_count_without_leaving_the_list(
    page: Page, complaints: BrowserErrors, database: Database, tmp_path: Path
) -> None:
    box = await new_mailbox(database)
    await box.rules(SHOPS)
    await box.decide(PARCEL, Sample("m7", "Ida Shop <ida@shop.example>", "Invoice"), LUNCH, BILL)
    async with served_pages(database, tmp_path) as address:
        await page.goto(f"{address}/mail")
        await expect(page.locator("#link")).to_have_text("Live")
        for _ in range(3):
            await page.keyboard.press("j")
        await expect(chosen(page)).to_contain_text("Invoice")
        await page.keyboard.press("l")
        panel = page.get_by_role("dialog", name="Make a rule")
        await expect(panel).to_contain_text("2 of the newest 4 messages")
        await expect(panel).to_contain_text("Decided already: 2 by the rule “shops”.")
        for width in (1280, 360):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await violations(page) == []
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.set_viewport_size({"width": 1280, "height": 800})
        await panel.get_by_label("Then").select_option("file")
        await expect(panel).to_contain_text("needs the name of a label")
        await panel.get_by_role("combobox", name="Label", exact=True).fill("Shops")
        await expect(panel).to_contain_text("2 of the newest 4 messages")
        await panel.get_by_role("button", name="Make the rule").click()
        await expect(page.locator(".toast")).to_contain_text("is a rule now.")
        assert page.url == f"{address}/mail"
        assert complaints == []

        away = {"location": "/healthz"}  # as after signing out: what answers is no form of a rule
        await page.route("**/rules/about/*", lambda route: route.fulfill(status=303, headers=away))
        await page.keyboard.press("j")
        await page.keyboard.press("l")
        await page.wait_for_url(f"{address}/rules/new?message=*")
    rules = {each.name: each for each in await database.run(list_rules())}
    made = rules["Apply the label Shops and archive: ida@shop.example"]
    assert (made.rule.conditions, made.enabled) == ({"sender_email": "ida@shop.example"}, True)


async def test_one_thumb_acts_on_rows_of_mail_on_a_phone(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    box = await new_mailbox(database)
    await box.decide(*MANY[:3])
    await page.set_viewport_size({"width": 360, "height": 740})
    async with live(page, database, "/mail"):
        rows = page.locator("#lines > li")
        archive = rows.nth(1).get_by_role("button", name="Archive")
        await expect(archive).to_be_hidden()
        more = rows.nth(1).get_by_role("button", name="What can be done with it")
        for each in (more, archive):
            await expect(each).to_be_visible()
            place = await each.bounding_box()
            assert place is not None
            assert min(place["width"], place["height"]) >= 44
            assert place["y"] + place["height"] <= 740
            assert await violations(page) == []
            await each.click()
        await expect(rows.nth(1)).to_contain_text("in line")
        await expect(rows.nth(2)).to_have_attribute("data-chosen", "")
        await rows.nth(2).get_by_role("button", name="Archive").click()
        await expect(page.locator("#lines li", has_text="in line")).to_have_count(2)
        assert complaints == []

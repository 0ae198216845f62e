"""The live page in a real browser, from the real server, over a feed that the test writes."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from postroom.interfaces.dashboard.broadcast import UpdateIntervals
from postroom.interfaces.http.serve import serving
from postroom.operations.accounts.account_status import AccountLine
from postroom.operations.overview.attention import Attention
from postroom.operations.overview.overview import Overview
from postroom.settings.sections import ModelSettings
from postroom.store.engine.database import Database
from postroom.store.engine.opening import open_database
from support.axe import violations
from support.chromium import BrowserErrors
from support.scripted_feed import NOON, ScriptedFeed, line, overview_application

ATTACKS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<svg onload=alert(1)>",
    "' onmouseover='alert(1)' x='",
    "</td></tr></table><h1>Postroom was here</h1>",
    "{{ 7 * 7 }}{% raw %}",
    "<div hx-get='/healthz' hx-trigger='load' hx-on:load='alert(1)'>",
    "evil\u202egpj.exe\x00\x1b[31m\ud800",
    "Z" + "\u0321\u0334\u0340" * 300,
    "\r\n\r\nevent: stalled\r\ndata: 1\r\n\r\n",
    "W" * 10_000,
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path)
    yield opened
    await opened.close()


@asynccontextmanager
async def dashboard(
    feed: Overview,
    port: int = 0,
    intervals: UpdateIntervals | None = None,
    account: str | Callable[[], Awaitable[str]] = "owner@example.org",
    database: Database | None = None,
) -> AsyncGenerator[str]:
    intervals = intervals or UpdateIntervals(between_updates=0.01, reread=3600)
    app = overview_application(feed, database, intervals=intervals, account=account)
    async with serving(app, host="127.0.0.1", port=port) as address:
        yield address


def row(page: Page, subject: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_text(subject, exact=True))


async def open_live(page: Page, address: str) -> None:
    await page.goto(address)
    await expect(page.locator("#link")).to_have_text("Live")


async def test_the_page_shows_what_has_arrived_and_what_came_of_it(page: Page, complaints: BrowserErrors) -> None:
    feed = ScriptedFeed(
        line(1, tier="high_priority", why_tier="from a contact", subject="Dinner?"),
        line(
            2,
            subject="Your invoice",
            what="label it 'Tax_2026'",
            by="rule “Invoices”",
            why="subject contains invoice",
            state="failed",
            mood="bad",
            error="the label was deleted",
        ),
        in_line={"high_priority": 1234},
    )
    async with dashboard(feed) as address:
        await open_live(page, address)
        await expect(row(page, "Dinner?")).to_contain_text("high priority")
        await expect(row(page, "Dinner?")).to_contain_text("from a contact")
        await expect(row(page, "Dinner?")).to_contain_text("waiting")
        invoice = row(page, "Your invoice")
        await expect(invoice).to_contain_text("label it 'Tax_2026'")
        await expect(invoice).to_contain_text("rule “Invoices”: subject contains invoice")
        await expect(invoice).to_contain_text("failed")
        await expect(invoice).to_contain_text("the label was deleted")
        await expect(page.get_by_label("The road of a message")).to_contain_text("1,234 in line now")
        await expect(page.locator("#lines tr .subject")).to_have_text(["Your invoice", "Dinner?"])
        assert complaints == []


async def test_the_account_in_the_side_bar_follows_what_is_connected(page: Page, complaints: BrowserErrors) -> None:
    accounts = ["no account connected yet"]

    async def account() -> str:
        return accounts[-1]

    feed = ScriptedFeed()
    async with dashboard(feed, account=account) as address:
        await open_live(page, address)
        await expect(page.get_by_role("navigation", name="Pages")).to_contain_text("no account connected yet")
        accounts.append("ada@example.com")
        feed.put(line(1, subject="The first"))
        await expect(page.get_by_role("navigation", name="Pages")).to_contain_text("ada@example.com")
        assert complaints == []


async def test_times_are_of_the_readers_zone_and_in_english_whatever_the_browser_speaks(browser: Browser) -> None:
    feed = ScriptedFeed(line(1, subject="Dinner?"))
    context = await browser.new_context(locale="de-DE", timezone_id="Australia/Eucla")
    page = await context.new_page()
    loads: list[str] = []
    page.on("request", lambda each: loads.append(each.url) if each.is_navigation_request() else None)
    async with dashboard(feed) as address:
        await open_live(page, address)
        time = page.locator("#board time").filter(has_text="4 Mar").first
        await expect(time).to_contain_text("20:45")
        title = await time.get_attribute("title")
        await expect(page.get_by_role("navigation", name="Pages")).to_contain_text("Times in Australia/Eucla")
        said = await page.evaluate(
            """() => {
              const time = document.createElement("relative-time");
              time.setAttribute("at", new Date(Date.now() - 180_000).toISOString());
              return time.shadowRoot.textContent;
            }"""
        )
        # The first page was drawn in the zone of the settings, and came again; the second one did not.
        assert len(loads) == 2
        await page.goto(address)
        assert len(loads) == 3
        await page.emulate_media(media="print")
        await expect(page.get_by_text("all times are in Australia/Eucla")).to_be_visible()
        await expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()
        await expect(page.get_by_role("button")).to_have_count(0)
    assert re.fullmatch(r"Wednesday, 4 March 2026, 20:45:\d\d UTC\+0845", title or "")
    assert said == "3 min ago"
    await context.close()


@pytest.mark.parametrize("width", [1280, 768, 390])
async def test_a_state_is_one_line_at_every_width(page: Page, width: int) -> None:
    states = ("done", "needs approval", "in progress", "undone", "being undone", "failed")
    rationale = "a reason of some length, as a rule or a model gives it for what it has decided"
    feed = ScriptedFeed(
        *(
            line(seq, subject=f"{'A subject as mail has it ' * 3}{seq}", what="archive it",
                 by="rule “Newsletters out of the inbox”", why=rationale, state=state, mood="good")
            for seq, state in enumerate(states, 1)
        )
    )  # fmt: skip
    await page.set_viewport_size({"width": width, "height": 900})
    async with dashboard(feed) as address:
        await open_live(page, address)
        heights = await page.locator("#lines .pill").evaluate_all("all => all.map((each) => each.offsetHeight)")
        assert len(heights) == len(states)
        assert max(heights) < 2 * min(heights), heights
        assert max(heights) <= 28, heights
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_message_appears_and_moves_on_without_a_reload(page: Page, complaints: BrowserErrors) -> None:
    feed = ScriptedFeed()
    async with dashboard(feed) as address:
        await open_live(page, address)
        await expect(page.get_by_text("No messages yet.")).to_be_visible()
        await page.evaluate("window.sameDocument = true")

        feed.put(line(1, subject="Dinner?"))
        await expect(row(page, "Dinner?")).to_contain_text("waiting")
        feed.put(line(1, subject="Dinner?", state="being handled"))
        await expect(row(page, "Dinner?")).to_contain_text("being handled")
        feed.put(line(1, subject="Dinner?", what="archive it", state="in line"))
        await expect(row(page, "Dinner?")).to_contain_text("in line")
        feed.put(line(1, subject="Dinner?", what="archive it", state="done"))
        await expect(row(page, "Dinner?")).to_contain_text("done")
        feed.put(line(2, subject="Newer"), in_line={"default": 7})
        await expect(page.locator("#lines tr .subject")).to_have_text(["Newer", "Dinner?"])
        await expect(page.get_by_label("The road of a message")).to_contain_text("default 7")

        assert await page.evaluate("window.sameDocument")
        assert complaints == []


async def test_an_account_that_loses_its_consent_shows_what_to_do_without_a_reload(
    page: Page, complaints: BrowserErrors
) -> None:
    mara = AccountLine(
        "mara@lindqvist.example", "active", level="organise", connector="online", heard_at=NOON, acts_from=NOON
    )
    bad = [AccountLine(attack, "needs_consent", attack, attack, trouble=attack, command=attack) for attack in ATTACKS]
    feed = ScriptedFeed(accounts=(mara,))
    async with dashboard(feed) as address:
        await open_live(page, address)
        shown = page.get_by_role("region", name="Accounts").get_by_role("listitem")
        await expect(shown).to_have_count(1)
        await expect(shown).to_contain_text("connector online")
        await page.evaluate("window.sameDocument = true")

        command = "postroom account add gmail --email mara@lindqvist.example --level organise"
        feed.put_accounts(
            replace(mara, state="needs_consent", connector="offline", command=command),
            replace(mara, email="ida@x.example", connector="stale", trouble="quota", refused=3, ingested=12_345),
            replace(mara, email="uta@x.example", state="paused", command="postroom account resume uta@x.example"),
            replace(mara, email="ole@x.example", connector="offline", dies_at=NOON, command=command),
        )
        await expect(shown.first).to_contain_text("needs your consent")
        await expect(shown.first.locator("code")).to_have_text(command)
        await expect(shown.nth(1)).to_contain_text("12,345 ingested")
        for width in (1280, 390):
            await page.set_viewport_size({"width": width, "height": 800})
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                assert await violations(page) == []

        feed.put_accounts(*bad)
        await expect(shown).to_have_count(len(ATTACKS))
        assert await page.locator("#board :is(script, img, svg:not([class]), h1, [onload], [hx-get])").count() == 0
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth && window.sameDocument")
        assert complaints == []


async def test_an_update_leaves_the_rows_it_does_not_concern_alone(page: Page) -> None:
    feed = ScriptedFeed(*(line(seq) for seq in range(1, 6)))
    async with dashboard(feed) as address:
        await open_live(page, address)
        await page.evaluate("window.kept = document.querySelector('#lines tr:last-child')")
        feed.put(*(line(seq) for seq in range(6, 40)))
        await expect(page.locator("#lines tr")).to_have_count(39)
        assert await page.evaluate("window.kept === document.querySelector('#lines tr:last-child')")
        arrived = await page.evaluate("document.querySelectorAll('#lines tr[data-arrived]').length")
        assert arrived == 34


async def test_hostile_mail_is_shown_as_text_and_runs_nothing(page: Page, complaints: BrowserErrors) -> None:
    feed = ScriptedFeed()
    async with dashboard(feed) as address:
        await open_live(page, address)
        feed.put(
            *(
                line(seq, sender=bad, subject=bad, tier=bad, why_tier=bad, what=bad, by=bad)
                for seq, bad in enumerate(ATTACKS, 1)
            ),
            *(line(50 + seq, state=bad, error=bad) for seq, bad in enumerate(ATTACKS)),
        )
        await expect(page.locator("#lines tr")).to_have_count(2 * len(ATTACKS))
        await expect(page.locator(".subject").get_by_text(ATTACKS[0], exact=True)).to_be_visible()
        await page.locator(".subject").get_by_text("onmouseover").hover()
        await expect(page.get_by_text("evil[U+202E]gpj.exe␀").first).to_be_visible()
        await page.reload()
        await expect(page.locator("#link")).to_have_text("Live")

        assert await page.locator("#board :is(script, img, svg:not([class]), h1, [onload], [hx-get])").count() == 0
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        tallest = await page.evaluate(
            "Math.max(...[...document.querySelectorAll('#lines tr')].map(r => r.clientHeight))"
        )
        assert tallest < 400
        assert complaints == []


async def test_the_page_reconnects_after_the_server_was_restarted(page: Page) -> None:
    feed = ScriptedFeed(line(1, subject="Before"))
    async with dashboard(feed) as address:
        await open_live(page, address)
        await expect(row(page, "Before")).to_be_visible()
        await page.evaluate("window.sameDocument = true")
    await expect(page.locator("#link")).to_have_text("Reconnecting…")
    feed.put(line(2, subject="Meanwhile"))
    async with dashboard(feed, port=int(address.rpartition(":")[2])):
        await expect(row(page, "Meanwhile")).to_be_visible()
        await expect(page.locator("#link")).to_have_text("Live")
        assert await page.evaluate("window.sameDocument")


async def test_a_stream_that_was_refused_at_first_is_tried_again(page: Page) -> None:
    shown_at_each_try: list[list[str]] = []

    async def refuse_once(route: Route) -> None:
        shown_at_each_try.append(await page.locator("#board").all_inner_texts())
        if len(shown_at_each_try) == 1:
            await route.fulfill(status=503, content_type="text/html", body="<h1>an error page</h1>")
        else:
            await route.continue_()

    async with dashboard(ScriptedFeed(line(1, subject="Before"))) as address:
        await page.route("**/events", refuse_once)
        await page.goto(address)
        await expect(page.locator("#link")).to_have_text("Reconnecting…")
        await expect(page.locator("#link")).to_have_text("Live")
    first, second = shown_at_each_try
    assert first == second


# Waiting with a condition given as text would have the page evaluate it again and again, which its policy refuses.
TELL_WHEN_HTMX_HAS_RUN = """
let htmxItself;
Object.defineProperty(window, "htmx", {
  configurable: true,
  get: () => htmxItself,
  set: (value) => { htmxItself = value; htmxHasRun(); },
});
"""


async def test_the_order_in_which_scripts_arrive_does_not_matter(page: Page, complaints: BrowserErrors) -> None:
    htmx_has_run = asyncio.Event()

    async def when_htmx_has_run(route: Route) -> None:
        await htmx_has_run.wait()
        await route.continue_()

    await page.expose_function("htmxHasRun", htmx_has_run.set)
    await page.add_init_script(TELL_WHEN_HTMX_HAS_RUN)
    async with dashboard(ScriptedFeed()) as address:
        await page.route("**/hx-sse.min.js", when_htmx_has_run)
        await open_live(page, address)
        assert complaints == []
    assert htmx_has_run.is_set()


async def test_the_page_says_so_when_the_data_cannot_be_read(page: Page, complaints: BrowserErrors) -> None:
    feed = ScriptedFeed(line(1, subject="Before"))
    async with dashboard(feed, intervals=UpdateIntervals(between_updates=0.01, after_failure=0.01)) as address:
        await open_live(page, address)
        feed.failure = OSError("disk on fire at /var/lib")
        feed.announce()
        await expect(page.locator("#link")).to_contain_text("cannot be read")
        await expect(row(page, "Before")).to_be_visible()
        feed.failure = None
        await expect(page.locator("#link")).to_have_text("Live")
        assert complaints == []


async def test_a_connection_that_died_silently_is_noticed_and_opened_again(page: Page) -> None:
    feed = ScriptedFeed(line(1))
    async with dashboard(feed, intervals=UpdateIntervals(pulse=3600, reread=3600)) as address:
        await page.clock.install()
        await open_live(page, address)
        async with page.expect_request("**/events"):
            await page.clock.fast_forward(50_000)
            await expect(page.locator("#link")).to_have_text("Reconnecting…")
            await page.clock.fast_forward(10_000)
        await expect(page.locator("#link")).to_have_text("Live")


BEGIN_IN_THE_BACKGROUND = """
let hidden = true;
Object.defineProperty(document, "hidden", { get: () => hidden });
window.comeToTheFront = () => { hidden = false; document.dispatchEvent(new Event("visibilitychange")); };
"""


async def test_a_tab_that_begins_in_the_background_takes_no_connection_until_it_is_looked_at(page: Page) -> None:
    """A browser has six for one server: tabs that nobody looks at would leave none for the others."""
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if "/events" in request.url else None)
    await page.add_init_script(BEGIN_IN_THE_BACKGROUND)
    async with dashboard(ScriptedFeed(line(1))) as address:
        await page.goto(address, wait_until="load")
        await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        assert streams == []
        await page.evaluate("comeToTheFront()")
        await expect(page.locator("#link")).to_have_text("Live")
    assert len(streams) == 1


async def test_a_button_that_is_pressed_twice_does_its_act_once(page: Page) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    async with dashboard(ScriptedFeed(line(1))) as address:
        await open_live(page, address)
        async with page.expect_navigation():
            await page.evaluate("""() => {
              const form = document.querySelector('form[action="/pause"]');
              form.requestSubmit();
              setTimeout(() => form.requestSubmit());
            }""")
        await open_live(page, address)
    assert [each.removeprefix(address) for each in sent] == ["/pause"]


async def test_without_javascript_the_page_shows_how_things_stand(browser: Browser) -> None:
    feed = ScriptedFeed(line(1, subject="Dinner?"))
    async with dashboard(feed) as address:
        page = await browser.new_page(java_script_enabled=False)
        await page.goto(address)
        await expect(page.get_by_text("Dinner?")).to_be_visible()
        await expect(page.get_by_text("Live updates need JavaScript")).to_be_visible()
        await expect(page.locator("#link")).to_be_hidden()
        await expect(page.get_by_text("with times in UTC")).to_be_visible()
        await expect(page.get_by_text("4 Mar, 12:00")).to_be_visible()


async def test_the_page_is_accessible_in_either_scheme_and_on_a_phone(page: Page) -> None:
    moods = ("busy", "ask", "busy", "good", "bad", "")
    tiers = ("high_priority", "interactive", "default", "history", "P0", "P1")
    feed = ScriptedFeed(
        *(
            line(
                seq,
                tier=tier,
                what="archive it",
                by="model 0.90",
                state="so",
                mood=mood,
                error="no",
            )
            for seq, (mood, tier) in enumerate(zip(moods, tiers, strict=True), 1)
        ),
        *(line(10 + seq, state=state) for seq, state in enumerate(("waiting", "being handled", "kept", "failed"))),
        in_line={"default": 1},
        attention=(Attention("failed_actions", 1), Attention("failed_jobs", 2), Attention("proposals", 1)),
    )
    async with dashboard(feed) as address:
        await open_live(page, address)
        for width in (1280, 390):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await page.emulate_media(color_scheme="light")
            assert await violations(page) == []
            await page.emulate_media(color_scheme="dark")
            assert await violations(page) == []


async def test_everything_is_stopped_after_a_question_and_let_go_on(
    page: Page, complaints: BrowserErrors, database: Database
) -> None:
    model = ModelSettings.model_validate({"provider": "openai", "name": "a-model", "base_url": "http://127.0.0.1:9"})
    async with dashboard(Overview(database, model=model), database=database) as address:
        await open_live(page, address)
        status = page.get_by_label("Status")
        await expect(status).to_contain_text("then the model a-model")
        await page.get_by_role("button", name="Pause everything").click()
        dialog = page.get_by_role("dialog", name="Pause everything?")
        await expect(dialog).to_contain_text("sends nothing until you resume")
        assert await violations(page) == []
        await dialog.get_by_role("button", name="Pause everything").click()
        await expect(status).to_contain_text("Paused")
        assert await violations(page) == []
        await page.get_by_role("button", name="Resume").click()
        dialog = page.get_by_role("dialog", name="Resume?")
        await expect(dialog).to_contain_text("Nothing waits")
        await dialog.get_by_role("button", name="Resume").click()
        await expect(status).not_to_contain_text("Paused")

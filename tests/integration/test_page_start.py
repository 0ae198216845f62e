"""The first look on the page: begun by a form alone, chosen by its numbers, and turned on by the newest page alone."""

import html
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from postroom.compose.application import PostroomApplication
from postroom.core.errors import MailboxUnreachable, Refused
from postroom.core.visitors import Visitor
from postroom.interfaces.dashboard.pages.starting import pages
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.dashboard.visiting import OWNER as VISITOR
from postroom.interfaces.http.application import create_application
from postroom.mailboxes.following.source import MailSource
from postroom.operations.parts import Parts
from postroom.operations.preview.first_looks import check_is_shown
from postroom.settings.reading import Settings
from postroom.store.accounts.accounts import act_from, list_accounts
from postroom.store.actions.actions import list_actions
from postroom.store.engine.database import Database
from postroom.store.rules.rules import list_rules
from postroom.system.wall_clock import wall_clock
from support.attacks import ATTACKS, assert_harmless
from support.page_app import HOST, as_visitor, visitor
from support.page_forms import submit
from support.page_outline import outline
from support.product import OWNER, TOKEN, Product, raw_mail, running_product
from support.store.fault_cases_registry import signed

NEWS = {"List_Unsubscribe": "<https://shop.example/leave>"}


@pytest.fixture
async def product(sqlite: Database, tmp_path: Path) -> AsyncIterator[Product]:
    """A mailbox in shadow, with three newsletters of which one is old, a security alert, and a friend's mail."""
    async with running_product(sqlite, tmp_path, acts=False) as running:
        mailbox = running.mailbox
        for subject, sender, days, headers in [
            (ATTACKS[0], "news@shop.example", 9, NEWS),
            ("Offer 3", "news@shop.example", 3, NEWS),
            ("Offer 1", "news@mall.example", 1, NEWS),
            ("Your password was changed", "no-reply@bank.example", 2, {}),
            ("Lunch?", "ida@friends.example", 2, {}),
        ]:
            at = mailbox.clock() - timedelta(days=days)
            mailbox.deliver(raw_mail(subject, sender, **headers), ["INBOX"], received_at=at)
        yield running


@asynccontextmanager
async def visiting(
    product: Product, seen_by: Visitor = VISITOR, *, fails: bool = False
) -> AsyncGenerator[httpx2.AsyncClient]:
    gmail = {"base_url": product.address, "token": TOKEN}
    settings = Settings.model_validate({"account": {"email": OWNER}, "gmail": gmail})
    application = PostroomApplication()

    @asynccontextmanager
    async def opened(database: Database, account_id: UUID) -> AsyncGenerator[MailSource]:
        if fails:
            raise MailboxUnreachable("imap.example.com was not reached")
        async with application.open_source(settings, database, account_id) as source:
            yield source

    site = Site(Parts(settings, product.database, open_source=opened), OWNER)
    shown = pages(site)
    app = as_visitor(create_application(site, shown, allowed_hosts=[HOST]), seen_by)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=f"http://{HOST}") as client:
        yield client
    for each in shown:
        each.close()


async def looked(page: httpx2.AsyncClient, product: Product) -> dict[str, str]:
    """Look at the mail; the hidden fields of the form in which rules are chosen."""
    (account,) = await product.database.run(list_accounts())
    answer = await submit(page, "/start/look", {"account": str(account.id)})
    assert answer.headers["location"] == f"/start?account={account.id}"
    while "/start/choose" not in (shown := (await page.get("/start")).text):
        assert "Looking at your newest mail" in shown
    return {"account": str(account.id), "look": _hidden(shown, "look")}


def _hidden(shown: str, name: str) -> str:
    (value,) = set(re.findall(rf'name="{name}" value="([^"]*)"', shown))
    return html.unescape(value)


async def said(page: httpx2.AsyncClient) -> str:
    found = re.search(r'class="toast"[^>]*><bdi[^>]*>(.*?)</bdi>', (await page.get("/start")).text)
    return "" if found is None else html.unescape(found[1])


async def text(page: httpx2.AsyncClient, address: str) -> str:
    return " ".join(outline((await page.get(address)).text).split())


async def test_only_a_form_begins_a_look_and_a_reload_repeats_nothing(product: Product) -> None:
    async with visiting(product) as page:
        for _ in range(2):
            assert "Look at my newest mail" in await text(page, "/start")
        assert "Look at your mail first." in await text(page, "/start/on")
        first = await looked(page, product)
        shown = (await page.get("/start")).text
        assert _hidden(shown, "look") == first["look"]
        assert "your newest 5 messages" in await text(page, "/start")
        assert_harmless(shown)
        assert (await looked(page, product))["look"] != first["look"]


async def test_what_is_chosen_is_counted_and_remembered_and_changes_nothing(product: Product) -> None:
    async with visiting(product) as page:
        form = await looked(page, product)
        shown = await text(page, "/start")
        ticked = re.findall(r'name="starter" value="(\w+)" checked', shown)
        assert ticked == ["newsletters", "security"], "those that would do something"
        assert "Leave the inbox 3 of 5 Only labelled 1 stay in the inbox Need" in shown
        counted = await submit(page, "/start/count", form | {"starter": "security"})
        assert "Leave the inbox 0 of 5 Only labelled 1" in " ".join(outline(counted.text).split())
        chosen = await submit(page, "/start/choose", form | {"starter": "newsletters"})
        assert chosen.headers["location"] == f"/start/on?account={form['account']}"
        last = await text(page, "/start/on")
        assert "- Newsletters 3 leave the inbox" in last
        assert "Security alerts" not in last
        assert "Of 4 messages: 2 leave the inbox." in last
        assert re.findall(r'name="starter" value="(\w+)" checked', await text(page, "/start")) == ["newsletters"]
        await submit(page, "/start/choose", form | {"starter": "everything"}, back="/start")
        assert "There are no starter rules 'everything'" in await said(page)
        assert await product.database.run(list_rules()) == []
        assert await product.database.run(list_actions(9)) == []


async def test_the_last_yes_counts_once_and_only_from_the_newest_page(product: Product) -> None:
    async with visiting(product) as page:
        old = await looked(page, product)
        new = await looked(page, product)
        yes = {"starter": "newsletters", "from": "lately"}
        for wrong, why in [
            (old | yes, "This page is older than the newest look at your mail. Check the new numbers, then confirm."),
            (new | yes | {"look": ""}, "This page is older than the newest look"),
            (new | {"from": "now"}, "No rule is chosen, so there is nothing to turn on. Choose at least one."),
            (new | yes | {"from": "ever"}, "'ever' is none of them"),
            (new | yes | {"starter": "everything"}, "There are no starter rules 'everything'"),
            (new | yes | {"account": "x"}, "there is no such mailbox"),
        ]:
            await submit(page, "/start/on/yes", wrong, back="/start")
            assert why in await said(page), why
        with pytest.raises(Refused, match="Postroom was restarted, or it was long ago"):
            check_is_shown(None, new["look"])
        assert (await product.database.run(list_accounts()))[0].acts_from is None
        assert await product.database.run(list_rules()) == []
        counted = await submit(page, "/start/count", old | {"starter": "newsletters"}, back="/start")
        assert counted.status_code == 200, "it stands in the page"
        assert "This page is older than the newest look" in counted.text
        assert '<a class="btn" href="/start">Reload the page</a>' in counted.text

        answer = await submit(page, "/start/on/yes", new | yes, back="/start/on")
        assert answer.headers["location"] == "/"
        assert await said(page) == f"Postroom is on for {OWNER}. Mail of the last 7 days is being sorted."
        (account,) = await product.database.run(list_accounts())
        assert account.acts_from is not None
        assert wall_clock() - account.acts_from > timedelta(days=6)
        assert [each.name for each in await product.database.run(list_rules())] == ["Newsletters"]
        await submit(page, "/start/on/yes", new | {"starter": "security", "from": "now"})
        assert await said(page) == f"Postroom is on for {OWNER} already. Nothing was changed."
        assert [each.name for each in await product.database.run(list_rules())] == ["Newsletters"]
        assert "Postroom is on for" in await text(page, f"/start?account={account.id}")


async def test_a_look_that_fails_says_why_and_can_be_repeated(product: Product) -> None:
    (account,) = await product.database.run(list_accounts())
    async with visiting(product, fails=True) as page:
        await submit(page, "/start/look", {"account": str(account.id)})
        while "Your mail could not be read" not in (shown := await text(page, "/start")):
            assert "Looking at your newest mail" in shown
        assert "imap.example.com was not reached" in shown
        assert "Look again" in shown


async def test_rules_are_chosen_for_an_empty_mailbox_too(sqlite: Database, tmp_path: Path) -> None:
    async with running_product(sqlite, tmp_path, acts=False) as product, visiting(product) as page:
        form = await looked(page, product)
        shown = await text(page, "/start")
        assert "There is no mail to show yet." in shown
        assert shown.count('name="starter"') == shown.count("checked}") == 8
        last = await submit(page, "/start/choose", form | {"starter": "travel"})
        shown = await text(page, last.headers["location"])
        assert "1 chosen" in shown
        assert "No mail came in these days." in shown


async def test_a_viewer_reads_and_starts_nothing(product: Product) -> None:
    (account,) = await product.database.run(list_accounts())
    async with visiting(product, visitor("viewer")) as page:
        assert "You are signed in as viewer." in await text(page, "/start")
        for form in ("look", "count", "choose", "on/yes"):
            answer = await submit(page, f"/start/{form}", {"account": str(account.id)})
            assert answer.status_code == 403, form


async def test_with_nothing_to_turn_on_the_page_leads_on(product: Product) -> None:
    (account,) = await product.database.run(list_accounts())
    await product.database.run(act_from(account.id, wall_clock(), signed(), wall_clock()))
    async with visiting(product) as page:
        assert "No mailbox waits to be turned on." in await text(page, "/start")
        assert "No mailbox waits to be turned on." in await text(page, "/start/on")
        assert (await page.get("/start?account=x")).status_code == 404

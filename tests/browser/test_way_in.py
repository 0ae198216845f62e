"""The first quarter of an hour in a browser: from the first link to sorted mail, on a desk and on a phone.

The product is a process of its own, and the mailbox is one on a real Dovecot. Nothing in it changes before the last
yes, and what was said before is what is done after it.
"""

import imaplib
import json
import re
from collections.abc import AsyncGenerator, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Page, expect

from support.axe import violations
from support.chromium import BrowserErrors
from support.command import NO_MAILBOX, NO_SIGN_IN, environment
from support.imap_mailbox import Beside
from support.imap_server import PASSWORD, ImapServer, authority
from support.page_checks import problems_on
from support.patience import PATIENCE_S
from support.signed_in import PASSWORD as OWN_PASSWORD
from support.warm_start import ForkedProcess
from support.written_mail import MESSAGES, OWNER

FOLDERS = ("INBOX", "Archive")
SCREENS: dict[str, tuple[int, int, Literal["light", "dark"]]] = {
    "desk": (1280, 900, "light"),
    "phone": (360, 780, "dark"),
}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[str]:
    """`postroom serve` in an empty folder; yields the first link."""
    certificates = tmp_path / "authorities.pem"
    certificates.write_bytes(authority().cert_pem.bytes())
    left_out = NO_MAILBOX.keys() | NO_SIGN_IN.keys()
    given = {name: value for name, value in environment(tmp_path, None).items() if name not in left_out}
    process = ForkedProcess(["serve", "--port", "0", "--json"], tmp_path, given | {"SSL_CERT_FILE": str(certificates)})
    try:
        process.stdout.readline()
        yield json.loads(process.stdout.readline())["sign_in_url"]
    finally:
        process.kill()
        process.communicate()


@dataclass
class Mailbox:
    """A mailbox with mail of some days, and what it was like before anyone connected it."""

    server: ImapServer
    user: str
    beside: Beside

    def __post_init__(self) -> None:
        now = datetime.now(UTC)
        for number, each in enumerate(MESSAGES):
            self._put(each.raw(number), "INBOX", now - timedelta(hours=number + 1))
        news = [each for each in MESSAGES if each.rule == "Newsletters"]
        self._put(news[0].raw(90), "Archive", now - timedelta(hours=5))
        self._put(news[1].raw(91), "INBOX", now - timedelta(days=9))
        self.before = self.now()

    def _put(self, raw: bytes, folder: str, at: datetime) -> None:
        content = raw.replace(b"\n", b"\r\n")
        status, said = self.beside.client.append(folder, "", imaplib.Time2Internaldate(at), content)
        assert status == "OK", said

    def now(self, folders: Collection[str] = FOLDERS) -> dict[str, list[tuple[str, frozenset[str]]]]:
        """Each message of each folder with its flags."""
        return {each: sorted(self.beside.flags_by_id(each)) for each in folders}

    def in_inbox(self) -> int:
        return len(self.now()["INBOX"])


@pytest.fixture
def mailbox(dovecot: ImapServer) -> Iterator[Mailbox]:
    user = dovecot.new_user()
    beside = Beside(dovecot, user)
    yield Mailbox(dovecot, user, beside)
    beside.close()


@pytest.fixture(params=SCREENS)
async def page(browser: Browser, complaints: BrowserErrors, request: pytest.FixtureRequest) -> AsyncGenerator[Page]:
    width, height, scheme = SCREENS[request.param]
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_S * 1000)
    page = await context.new_page()
    await complaints.watch(page)
    yield page
    await context.close()


async def sign_in(page: Page, link: str) -> None:
    await page.goto(link)
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_label("Name").fill("mara")
    await page.get_by_label("New password").fill(OWN_PASSWORD)
    await page.get_by_role("button", name="Use this password").click()


async def fill_in(page: Page, mailbox: Mailbox) -> None:
    await page.get_by_label("Mail address").fill(OWNER)
    await page.get_by_text("Servers and labels, if they are not found").click()
    await page.get_by_label("User name").fill(mailbox.user)
    await page.locator("[name=imap_host]").fill("127.0.0.1")
    await page.locator("[name=imap_port]").fill(str(mailbox.server.tls_port))


async def looks_well(page: Page) -> None:
    """Without anything grave for those who see badly, and with nothing beyond the edge."""
    assert await violations(page) == [], page.url
    assert await problems_on(page) == [], page.url


async def figure(page: Page, name: str) -> int:
    """A number that the choice says, by its name."""
    text = await page.locator(".effect div", has_text=name).locator("dd").inner_text()
    return int(re.findall(r"[\d,]+", text)[0])


async def test_from_the_first_link_to_sorted_mail_and_back(
    page: Page, complaints: BrowserErrors, started: str, mailbox: Mailbox
) -> None:
    await sign_in(page, started)
    await expect(page.get_by_text("Nothing in your mailbox changes before the last one.")).to_be_visible()
    await looks_well(page)
    await page.get_by_role("link", name="Connect your mailbox").click()
    await looks_well(page)

    await fill_in(page, mailbox)
    await page.get_by_label("App password", exact=True).fill("wrong")
    await page.get_by_role("button", name="Connect").click()
    await expect(page.locator("#problem")).to_contain_text("127.0.0.1 refused the password")
    await expect(page.get_by_label("App password", exact=True)).to_be_focused()
    await expect(page.get_by_label("App password", exact=True)).to_have_value("")
    await expect(page.get_by_label("Mail address")).to_have_value(OWNER)
    await expect(page.locator("[name=imap_port]")).to_have_value(str(mailbox.server.tls_port))
    await looks_well(page)
    await page.get_by_label("App password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Connect").click()

    await expect(page.get_by_text(f"These are your newest {len(MESSAGES) + 2} messages")).to_be_visible()
    await looks_well(page)
    news = page.get_by_role("checkbox", name="Newsletters")
    await expect(news).to_be_checked()
    await expect(page.locator("#x-newsletters")).to_contain_text("This week in typography")
    leave = await figure(page, "Leave the inbox")
    await news.uncheck()
    await expect(page.locator(".effect .fig-good dd")).to_contain_text(str(leave - 4))
    await page.reload()
    await expect(news).not_to_be_checked()
    await news.check()
    await expect(page.locator(".effect .fig-good dd")).to_contain_text(str(leave))

    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("heading", name="From when?")).to_be_visible()
    await expect(page.get_by_role("radio", name="Only new mail")).to_be_checked()
    await looks_well(page)
    await page.go_back()
    await expect(page.get_by_role("button", name="Continue")).to_be_visible()
    await page.goto(f"{page.url.partition('/start')[0]}/")
    await page.get_by_role("link", name="Turn Postroom on").click()
    await page.get_by_role("button", name="Continue").click()
    lately = page.get_by_role("radio", name="Also the last 7 days")
    said = await page.locator("label", has=lately).inner_text()
    assert mailbox.now() == mailbox.before, "nothing changes before the last yes"
    await lately.check()
    await page.get_by_role("button", name="Turn Postroom on").click()

    leaving, labelled = map(int, re.findall(r"(\d+) (?:leave|are only)", said))
    # One newsletter was archived by hand: it is labelled where it is. The one of nine days ago stays as it is.
    today = page.get_by_role("region", name="Today")
    await expect(today).to_contain_text(f"{leaving} messages archived, {labelled} labelled")
    assert mailbox.in_inbox() == len(mailbox.before["INBOX"]) - leaving
    await looks_well(page)

    await today.get_by_role("button", name=f"Undo all {leaving + labelled} of today").click()
    await page.get_by_role("button", name=f"Undo {leaving + labelled} actions").click()
    await expect(page.get_by_text(f"Undoing {leaving + labelled} actions")).to_be_visible()
    await expect(today).to_contain_text("nothing changed yet")

    await page.goto(f"{page.url}mail?since=today&state=undone")
    await expect(page.locator(".mails > li", has_text="undone")).to_have_count(leaving + labelled)
    assert {name: len(each) for name, each in mailbox.now().items()} == {
        name: len(each) for name, each in mailbox.before.items()
    }
    assert [each for each in complaints if "401" not in each] == []

"""The HTML of a message on its page: read from the mailbox for one look, or the reason why there is none."""

import asyncio
import re
from collections.abc import AsyncIterator
from uuid import UUID

import httpx2
import pytest

from postroom.core.errors import AccountUnusable, MailboxError, MailboxUnreachable, Parked
from postroom.core.mail.mailbox import Mailbox
from postroom.operations.mail.mail_html import HtmlReader
from postroom.store.engine.database import Database
from support.folder_mailbox import FolderMailbox, Folders
from support.gates import OpenGate
from support.page_setup import browsing, new_mailbox, visitor
from support.store.mail_setup import MailSetup, Sample

RICH = b"Content-Type: text/html; charset=utf-8\r\n\r\n<p onclick=x>Gr\xc3\xbc\xc3\x9fe</p><img src=http://x.example/a.gif>\r\n"


@pytest.fixture
def folders() -> Folders:
    kept = Folders()
    kept.put(RICH, id="m1")
    return kept


@pytest.fixture
async def box(sqlite: Database) -> MailSetup:
    opened = await new_mailbox(sqlite)
    await opened.decide(Sample("m1"))
    return opened


async def opener(folders: Folders, account_id: UUID) -> Mailbox:
    return FolderMailbox(folders, OpenGate())


@pytest.fixture
async def page(sqlite: Database, box: MailSetup, folders: Folders) -> AsyncIterator[httpx2.AsyncClient]:
    async with browsing(sqlite, visitor("viewer"), lambda account_id: opener(folders, account_id)) as client:
        yield client


async def frame(page: httpx2.AsyncClient, message: object) -> str:
    """The text of the frame's document."""
    answer = await page.get(f"/mail/{message}/html")
    assert answer.status_code == 200
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]*>", " ", answer.text, flags=re.DOTALL).split())


async def test_the_page_shows_a_frame_without_rights_and_its_document_a_policy_without_any(
    page: httpx2.AsyncClient, box: MailSetup
) -> None:
    address = f"/mail/{box.ids['m1']}"
    assert "<iframe" not in (await page.get(address)).text
    shown = (await page.get(f"{address}?view=html")).text
    [tag] = re.findall(r"<iframe[^>]*>", shown)
    assert " sandbox " in tag
    assert f'src="{address}/html"' in tag
    answer = await page.get(f"{address}/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert "frame-ancestors 'self'" in policy
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert answer.headers["x-dns-prefetch-control"] == "off"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<p>Grüße</p>" in answer.text
    assert "1 image from elsewhere is not loaded." in answer.text
    assert "x.example" not in answer.text


async def test_without_html_the_page_says_why(
    page: httpx2.AsyncClient, box: MailSetup, folders: Folders, sqlite: Database
) -> None:
    await box.decide(Sample("outline", is_whole=False), Sample("plain"), Sample("gone"), Sample("missing"))
    folders.put(b"Content-Type: text/plain\r\n\r\nJust text\r\n", id="plain")
    await box.user("gone", deleted=True)
    outline = await page.get(f"/mail/{box.ids['outline']}?view=html")
    assert "<iframe" not in outline.text
    assert "Only its headers were stored, by a filter" in outline.text
    assert "Only its headers were stored" in await frame(page, box.ids["outline"])
    assert "It is no longer in the mailbox" in (await page.get(f"/mail/{box.ids['gone']}?view=html")).text
    assert "It is no longer in the mailbox" in await frame(page, box.ids["missing"])
    assert "It has no HTML." in await frame(page, box.ids["plain"])
    async with browsing(sqlite) as without_mailboxes:
        assert "This server reaches no mailbox" in await frame(without_mailboxes, box.ids["m1"])


@pytest.mark.parametrize(
    "error",
    [
        MailboxUnreachable("no answer came"),
        Parked("account:1", "no answer came"),
        AccountUnusable("revoked", "no answer came", "connect it again"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_mailbox_that_fails_is_a_sentence_in_the_frame(
    page: httpx2.AsyncClient, box: MailSetup, folders: Folders, error: MailboxError
) -> None:
    folders.fails_with = error
    assert "The mailbox did not give it out: no answer came" in await frame(page, box.ids["m1"])


async def test_a_mailbox_that_never_answers_does_not_hold_the_frame(sqlite: Database, box: MailSetup) -> None:
    async def never(account_id: UUID) -> Mailbox:
        await asyncio.Event().wait()
        raise AssertionError

    found = await HtmlReader(sqlite, never, patience_s=0.0).read(str(box.ids["m1"]))
    assert found.why_not == "The mailbox did not answer in time. Try again soon."


async def test_another_site_and_a_wrong_address_get_nothing(page: httpx2.AsyncClient, box: MailSetup) -> None:
    address = f"/mail/{box.ids['m1']}/html"
    for site in ("cross-site", "same-site"):
        refused = await page.get(address, headers={"Sec-Fetch-Site": site})
        assert (refused.status_code, "Grüße" in refused.text) == (403, False)
    assert (await page.get(f"/mail/{UUID(int=7)}/html")).status_code == 404
    assert (await page.get("/mail/%00/html")).status_code == 400

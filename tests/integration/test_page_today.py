"""What was done today, on the overview: counted by what happened to the mail, and undone together."""

from pathlib import Path

import httpx2

from postroom.core.rules.draft import read_draft
from postroom.store.engine.database import Database
from postroom.store.people.audit import list_audit
from support.clocks import ManualClock
from support.page_app import visiting_pages, visitor
from support.page_forms import submit
from support.page_outline import outline
from support.page_setup import ARCHIVED, claim_undos, end_undo, new_mailbox
from support.store.mail_setup import MailSetup, Sample

FILED = read_draft(
    {"name": "files", "if": {"sender_domain": "shop.example"}, "actions": ["apply_label Shops", "archive"]}
)
INBOX = frozenset({"INBOX", "UNREAD"})


async def filed(database: Database) -> MailSetup:
    """Two messages that were filed, one of which had left the inbox before, and so was only labelled."""
    box = await new_mailbox(database)
    await box.rules(FILED)
    await box.acted(Sample("m1", "a@shop.example", labels=INBOX), frozenset({"UNREAD", "Shops"}))
    await box.setup.claim()  # what followed from it
    await box.acted(Sample("m2", "b@shop.example", labels=ARCHIVED), frozenset({"UNREAD", "Shops"}))
    return box


async def today(page: httpx2.AsyncClient) -> str:
    """What the overview says was done; empty if it says nothing."""
    lines = [each.strip() for each in outline((await page.get("/")).text).splitlines()]
    return next((each.removeprefix("Today: ") for each in lines if each.startswith("Today: ")), "")


async def test_what_was_done_today_is_said_and_undone_together(database: Database, tmp_path: Path) -> None:
    box = await filed(database)
    async with visiting_pages(database, tmp_path, clock=box.setup.clock) as page:
        assert await today(page) == "1 message archived, 1 labelled"
        shown = outline((await page.get("/")).text)
        assert "[Show the list](/mail?since=today&state=done)" in shown
        since = shown.partition('name="since" value="')[2].partition('"')[0]
        answer = await submit(page, "/today/undo", {"since": since})
        assert answer.headers["location"] == "/"
        assert "Undoing 2 actions on 2 messages." in (await page.get("/")).text
        for job in await claim_undos(box):
            await end_undo(box, job)
        assert await today(page) == "nothing changed yet"
        await submit(page, "/today/undo", {"since": since})
        assert "Nothing to undo." in (await page.get("/")).text
    entries = await database.run(list_audit(20))
    assert "actions.undo" in {each.action for each in entries}


async def test_yesterday_is_not_today(database: Database, tmp_path: Path) -> None:
    box = await filed(database)
    tomorrow = ManualClock(box.setup.clock())
    tomorrow.forward(24 * 3600)
    async with visiting_pages(database, tmp_path, clock=tomorrow) as page:
        assert await today(page) == "nothing changed yet"


async def test_an_undo_without_a_time_undoes_nothing(database: Database, tmp_path: Path) -> None:
    box = await filed(database)
    async with visiting_pages(database, tmp_path, clock=box.setup.clock) as page:
        for since in ("", "soon"):
            await submit(page, "/today/undo", {"since": since})
        assert await today(page) == "1 message archived, 1 labelled"


async def test_a_viewer_sees_it_and_undoes_nothing(database: Database, tmp_path: Path) -> None:
    box = await filed(database)
    async with visiting_pages(database, tmp_path, visitor("viewer"), box.setup.clock) as page:
        assert await today(page) == "1 message archived, 1 labelled"
        assert "/today/undo" not in (await page.get("/")).text
        assert (await submit(page, "/today/undo", {"since": "today"})).status_code == 403

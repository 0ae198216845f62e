"""An empty installation leads: each step with a link that works, ticked when it is done, gone after the first act."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from postroom.intake.intake import Intake
from postroom.operations.actions.kill_switch import pause_changes, resume_changes
from postroom.operations.caller import Caller
from postroom.operations.people.audit import signature
from postroom.store.accounts.accounts import act_from
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from support.page_app import visiting_pages, visitor
from support.page_setup import ARCHIVED, EVENT, PARCEL, SHOPS, new_mailbox
from support.store.mail_setup import ENDPOINT, OWNER, Sample

TITLES = ["Connect your mailbox", "Look at your newest mail", "Choose rules", "Turn Postroom on"]


@pytest.fixture
async def page(sqlite: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting_pages(sqlite, tmp_path) as client:
        yield client


async def shown(page: httpx2.AsyncClient) -> str:
    answer = await page.get("/")
    assert answer.status_code == 200
    return answer.text


async def steps(page: httpx2.AsyncClient) -> list[str]:
    """The state of each step, as it is shown; none if nobody is led."""
    text = await shown(page)
    if '<ol class="steps"' not in text:
        return []
    found = re.findall(
        r"<li( data-done| aria-current=\"step\"|)><div", text.split('<ol class="steps"')[1].split("</ol>")[0]
    )
    return [{" data-done": "done", "": "later"}.get(each, "next") for each in found]


async def test_a_fresh_folder_leads_and_every_link_works(page: httpx2.AsyncClient) -> None:
    text = (await shown(page)).split('<ol class="steps"')[1].split("</ol>")[0]
    assert re.findall(r"<h2>(.*?)</h2>", text) == TITLES
    assert await steps(page) == ["next", "later", "later", "later"]
    links = re.findall(r'href="([^"]+)"', text)
    assert {"/connectors/imap", "/rules/starter", "/rules/new", "/rules/import"} <= set(links)
    for link in links:
        assert (await page.get(link)).status_code == 200, link
    assert "No mailbox is connected yet" not in await shown(page), "said once"


async def test_steps_are_ticked_as_they_are_done_and_end_with_the_first_act(
    page: httpx2.AsyncClient, sqlite: Database
) -> None:
    box = await new_mailbox(sqlite)
    assert await steps(page) == ["done", "next", "later", "later"]
    await box.decide(Sample("m1"))
    assert await steps(page) == ["done", "done", "next", "later"]
    await box.rules(replace(SHOPS, shadow=True))
    assert await steps(page) == ["done", "done", "done", "next"]
    assert "All rules are off or in shadow" in await shown(page)
    await box.rules(replace(SHOPS, name="really"))
    assert await steps(page) == []
    assert "is decided in shadow" not in await shown(page)

    signed = signature("person:ida", "operator", "wait")
    await pause_changes(Caller(sqlite, signed), None, "wait")
    assert await steps(page) == ["done", "done", "done", "next"]
    await resume_changes(Caller(sqlite, signature("person:ida", "operator", "go on")), None)
    await box.acted(PARCEL, ARCHIVED)
    await pause_changes(Caller(sqlite, signature("person:ida", "operator", "wait")), None, "wait")
    assert await steps(page) == [], "who has used it before is not led again"


async def test_the_last_step_is_to_switch_acting_on(page: httpx2.AsyncClient, sqlite: Database) -> None:
    id = new_id()
    await sqlite.run(keep_account(id, "gmail", ENDPOINT, OWNER, wall_clock(), acts_from=None))
    box = await new_mailbox(sqlite)
    await box.decide(Sample("m1"))
    await box.rules(SHOPS)
    assert await steps(page) == ["done", "done", "done", "next"]
    text = await shown(page)
    assert '<a class="btn primary" href="/start">Turn Postroom on</a>' in text
    assert "is decided in shadow" in text
    await sqlite.run(act_from(id, wall_clock(), signature("person:ida", "operator", "go"), wall_clock()))
    assert await steps(page) == []


async def test_who_uses_it_without_a_mailbox_is_not_led(page: httpx2.AsyncClient, sqlite: Database) -> None:
    await Intake(sqlite, None, wall_clock).ingest(EVENT)
    assert await steps(page) == []


async def test_a_viewer_is_shown_the_way_and_no_button(sqlite: Database, tmp_path: Path) -> None:
    async with visiting_pages(sqlite, tmp_path, visitor("viewer")) as page:
        assert await steps(page) == ["next", "later", "later", "later"]
        assert 'href="/connectors/imap"' not in await shown(page)

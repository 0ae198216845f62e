"""The audit page: who did what, filtered, page by page, and as a file."""

import csv
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import httpx2
import pytest

from postroom.core.audited_actions import AuditedAction
from postroom.core.short_ids import short_id
from postroom.operations.actions.protection import protect
from postroom.operations.caller import Caller
from postroom.operations.people.audit import signature
from postroom.operations.people.tokens import make_token
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.people.audit import AuditEntry, record_audit
from postroom.system.wall_clock import wall_clock
from support.page_app import visiting_pages

ATTACK = "<script>alert(1)</script>\"'>"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def client(database: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting_pages(database, tmp_path) as client:
        yield client


async def record(database: Database, actor: str, action: str, reason: str = "", object_id: str = "1") -> None:
    kind = cast("AuditedAction", action)  # entries of older versions have others
    entry = AuditEntry(new_id(), actor, "admin", kind, "thing", object_id, {"on": False}, {"on": True}, reason)
    await database.run(record_audit(entry, wall_clock()))


async def test_entries_are_filtered_by_who_and_what(client: httpx2.AsyncClient, database: Database) -> None:
    await record(database, "person:ada", "token.create", "for the build server")
    await record(database, "person:bob", "rule.disable", "too eager")
    everything = (await client.get("/audit")).text
    assert "for the build server" in everything
    assert "too eager" in everything
    assert "{&#34;on&#34;:true}" in everything
    for address in (
        "/audit?actor=person:ada",
        "/audit?action=token.create",
        "/audit?actor=person:ada&action=token.create",
    ):
        found = (await client.get(address)).text
        assert "for the build server" in found
        assert "too eager" not in found
    assert "Nothing found" in (await client.get("/audit?actor=person:ada&action=rule.disable")).text


async def test_the_log_is_read_page_by_page_without_a_gap(client: httpx2.AsyncClient, database: Database) -> None:
    for number in range(120):
        await record(database, "cli:ada", f"thing.{number:03}")
    address, seen = "/audit", list[str]()
    while True:
        page = (await client.get(address)).text
        seen += [f"thing.{n:03}" for n in range(119, -1, -1) if f">thing.{n:03}<" in page]
        if 'rel="next"' not in page:
            break
        address = page.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0]
    assert seen == [f"thing.{number:03}" for number in range(119, -1, -1)]


async def test_who_and_what_are_shown_as_people_know_them(client: httpx2.AsyncClient, database: Database) -> None:
    made = await make_token(Caller(database, signature("cli:ada", "admin")), "agent", name="errand agent")
    object_id = new_id()
    await record(database, f"token:{made.token.id}", "action.ask", object_id=str(object_id))
    page = (await client.get("/audit?action=action.ask")).text
    assert ">errand agent</bdi>" in page
    assert f'<bdi class="sub mono">{short_id(object_id)}</bdi>' in page
    assert f"<code>{object_id}</code>" in page


async def test_hostile_words_are_text_on_the_page_and_no_formula_in_the_file(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await record(database, ATTACK, ATTACK, ATTACK, ATTACK)
    await record(database, "=HYPERLINK(0)", "thing.done", "+1", "@sum")
    assert "<script>alert" not in (await client.get("/audit")).text
    answer = await client.get("/audit.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="postroom-audit.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert (rows[0]["actor"], rows[0]["reason"], rows[0]["object_id"]) == ("'=HYPERLINK(0)", "'+1", "'@sum")
    assert rows[1]["actor"] == ATTACK


async def test_the_file_has_what_the_filters_leave(client: httpx2.AsyncClient, database: Database) -> None:
    await protect(Caller(database, signature("cli:ada", "admin", "mine")), "sender", "a@x.example")
    await record(database, "person:ada", "token.create")
    lines = (await client.get("/audit.jsonl?action=token.create")).text.splitlines()
    assert len(lines) == 1
    assert '"actor":"person:ada"' in lines[0]
    assert len((await client.get("/audit.jsonl")).text.splitlines()) == 2


async def test_a_place_that_is_no_number_is_refused_with_its_name(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/audit?before=x")
    assert answer.status_code == 400
    assert "before" in answer.text

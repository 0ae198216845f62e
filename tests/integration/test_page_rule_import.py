"""Rules from elsewhere: starter rules with their figures, and files of Gmail, Sieve and YAML; off until enabled."""

from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx2
import pytest

from postroom.interfaces.dashboard.visiting import OWNER
from postroom.operations.people.form_tokens import masked_form_token
from postroom.store.engine.database import Database
from postroom.store.people.audit import list_audit
from support.page_app import visiting_pages
from support.page_forms import OWN_PAGE, submit
from support.rule_pages import ATTACKS, SHOP, SIEVE, mailbox, page_with, stored
from support.sqlite import new_sqlite
from support.store.mail_setup import Sample

GMAIL = """<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns='http://www.w3.org/2005/Atom' xmlns:apps='http://schemas.google.com/apps/2006'>
<title>Mail Filters</title>
<entry><category term='filter'></category><title>Mail Filter</title><content></content>
<apps:property name='from' value='ida@shop.example'/><apps:property name='label' value='Shop'/></entry>
</feed>"""

YAML = """
- {name: new, if: {to_me: true}, then: star}
- {name: shop, if: {to_me: true}, then: star}
"""


@pytest.fixture
async def database(migrated_sqlite: Path, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await new_sqlite(tmp_path, migrated_sqlite)
    yield opened
    await opened.close()


@pytest.fixture
async def client(database: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting_pages(database, tmp_path) as client:
        yield client


async def text(client: httpx2.AsyncClient, address: str) -> str:
    answer = await client.get(address)
    assert answer.status_code == 200
    return unescape(answer.text)


async def given(client: httpx2.AsyncClient, content: str, format: str = "") -> str:
    """The address of the table for a pasted text."""
    answer = await submit(client, "/rules/import/read", {"pasted": content, "format": format}, back="/rules/import")
    assert answer.status_code == 303
    return answer.headers["location"]


async def test_starters_say_what_they_would_have_done_and_are_added(
    client: httpx2.AsyncClient, database: Database
) -> None:
    box = await mailbox(database)
    await box.deliver(
        Sample("m1", "no-reply@bank.example", "Security alert: new sign-in"),
        Sample("m2", "ida@home.example", "Lunch?"),
    )
    page = await page_with(client, "/rules/starter", "it would have matched")
    assert "Last 7 days: it would have matched <b>1</b> of 2 messages; 0 would have left the inbox." in page
    await submit(client, "/rules/starter/security/add", back="/rules/starter")
    view = (await stored(database))["Security alerts"]
    assert (view.enabled, view.origin) == (True, "starter")
    page = await text(client, "/rules/starter")
    assert "Added and on: “Security alerts”." in page
    assert 'action="/rules/starter/security/add"' not in page
    assert (await database.run(list_audit(1)))[0].actor == "person:owner"
    await submit(client, "/rules/starter/nothing/add", back="/rules/starter")
    assert "there are no starter rules 'nothing'" in await text(client, "/rules/starter")


async def test_a_sieve_script_comes_over_in_steps(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database)
    address = await given(client, SIEVE)
    page = await text(client, address)
    assert "1 came over, 1 came over with a note, 1 refused" in page
    assert "vacation on line 4: it has no counterpart among actions" in page
    assert await stored(database) == {}
    file = address.partition("file=")[2]
    kept = (await submit(client, "/rules/import/keep", {"file": file}, back=address)).headers["location"]
    views = await stored(database)
    assert [view.enabled for view in views.values()] == [False, False]
    page = await text(client, kept)
    assert "2 rules came over. What came over is off until you turn it on." in page
    assert "added, off" in page
    await submit(client, "/rules/import/enable", {"file": kept.partition("file=")[2]}, back=kept)
    enabled = [view.action for view in (await stored(database)).values() if view.enabled]
    assert len(enabled) == 1, "the rule that forwards stays off"
    assert [entry.action for entry in await database.run(list_audit(2))] == ["rules.enable", "rules.import"]


async def test_yaml_comes_over_off_and_leaves_known_names_as_they_are(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await mailbox(database, SHOP)
    address = await given(
        client, "- {name: new, if: {to_me: true}, then: star}\n- {name: shop, if: {to_me: true}, then: star}\n"
    )
    kept = (await submit(client, "/rules/import/keep", {"file": address.partition("file=")[2]}, back=address)).headers[
        "location"
    ]
    views = await stored(database)
    assert (views["new"].enabled, views["new"].disabled_reason) == (False, "imported; review and enable")
    assert (views["shop"].enabled, views["shop"].draft) == (True, SHOP)
    assert "there is a rule of this name" in await text(client, kept)


async def test_a_file_is_uploaded_and_its_format_told_by_its_name(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await mailbox(database)
    fields = {"form_token": masked_form_token(OWNER), "back": "/rules/import", "pasted": "", "format": ""}
    files = {"upload": ("mailFilters.xml", GMAIL.encode(), "text/xml")}
    answer = await client.post("/rules/import/read", data=fields, files=files, headers=OWN_PAGE)
    assert "1 came over" in await text(client, answer.headers["location"])


@pytest.mark.parametrize(
    ("content", "format", "said"),
    [
        ("", "", "choose a file, or paste its text"),
        ("<feed", "gmail", "is not"),
        ("if if if", "sieve", "line 1"),
        ("name: [", "yaml", "are not valid YAML"),
        ("# " + "x" * 300_000, "yaml", "is larger than 256 KiB"),
        ("# " + "x" * 1_100_000, "sieve", "is larger than 1024 KiB"),
    ],
    ids=["nothing", "gmail", "sieve", "yaml", "large yaml", "large sieve"],
)
async def test_what_cannot_be_read_says_why(
    client: httpx2.AsyncClient, database: Database, content: str, format: str, said: str
) -> None:
    await mailbox(database)
    await given(client, content, format)
    assert said in await text(client, "/rules/import")


async def test_hostile_files_stay_text(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database)
    for attack in ATTACKS:
        quoted = attack.replace("\\", "").replace('"', "")
        address = await given(
            client, f'require ["fileinto"];\nif header :is "subject" "{quoted}" {{ fileinto "{quoted}"; }}\n', "sieve"
        )
        raw = (await client.get(address)).text
        for sign in ("<script>alert", "<img src=x", "<svg onload", "<h1>Postroom was", "<div hx-get"):
            assert sign not in raw

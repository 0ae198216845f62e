"""The editor: checked while it is written, never losing what was written, saved and signed; and simulations."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import httpx2
import pytest

from postroom.core.rules.draft import RuleDraft
from postroom.operations.rules.rule_matches import RuleMatcher
from postroom.store.engine.database import Database
from postroom.store.people.audit import list_audit
from support.page_app import visiting_pages
from support.page_forms import submit
from support.rule_pages import ATTACKS, CLUB, INVOICE, LUNCH, PARCEL, SHOP, mailbox, page_with, stored, written
from support.sqlite import new_sqlite
from support.store.mail_setup import Sample

NESTED = {"and": [{"or": [{"from": "@a.example"}, {"to_me": True}]}, {"has_attachment": False}]}


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


async def follow(client: httpx2.AsyncClient, address: str, fields: dict[str, str | list[str]]) -> str:
    """The page that is shown after the form."""
    answer = await submit(client, address, fields, back="/rules/new")
    assert answer.status_code == 303
    return await text(client, answer.headers["location"])


async def checked(client: httpx2.AsyncClient, **changes: str | list[str]) -> str:
    answer = await submit(client, "/rules/check", written(**changes))
    assert answer.status_code == 200
    assert "<html" not in answer.text
    return unescape(answer.text)


async def test_a_check_says_what_is_wrong_or_what_matches(client: httpx2.AsyncClient, database: Database) -> None:
    box = await mailbox(database)
    await box.deliver(PARCEL, INVOICE, LUNCH)
    found = await checked(client)
    assert "valid" in found
    assert "If it is from @shop.example, archive it." in found
    assert "2 <small>of the newest 3 messages" in found
    assert found.index("Your invoice") < found.index("Your parcel")
    assert "Lunch?" not in found
    assert f'href="/mail/{box.ids["m2"]}"' in found
    assert "from: '@shop.example'" in found
    assert "is not an address" in await checked(client, value=["nobody", ""])
    assert "there is no condition" in await checked(client, kind=["", ""])
    assert "fix that line" in await checked(client, way="text", text="name: [")
    assert "has 2 rules" in await checked(client, way="text", text=TWO)
    assert "longer than 64 KiB" in await checked(client, way="text", text="#" * 70_000)
    assert "there is no account nobody@x.example" in await checked(
        client, scope="account", scope_ref="nobody@x.example"
    )


async def test_a_rule_for_mail_like_a_message_names_its_sender_its_list_and_its_domain(
    client: httpx2.AsyncClient, database: Database
) -> None:
    box = await mailbox(database)
    senders = {
        "s": ("Ida <ida@shop.example>", ["sender_email ida@shop.example", "sender_domain shop.example"]),
        "g": ("uta@gmail.com", ["sender_email uta@gmail.com"]),
        "i": ("x@bücher.example", ["sender_email x@xn--bcher-kva.example", "sender_domain xn--bcher-kva.example"]),
        "n": ("no address at all", []),
        "a": ("'><script>alert(1)</script> <x@evil.example>", []),
        "w": (f"{'W' * 400} <x@evil.example>", ["sender_email x@evil.example", "sender_domain evil.example"]),
    }
    await box.deliver(*(Sample(id, sender) for id, (sender, _) in senders.items()))
    for id, (_, expected) in senders.items():
        answer = await client.get(f"/rules/about/{box.ids[id]}", params={"back": "/mail?state=asking"})
        assert answer.status_code == 200
        assert re.findall(r'name="about" value="([^"]*)"', answer.text) == expected, id
        assert "<script" not in answer.text
        assert ("nothing here that a rule could tell such mail by" in answer.text) == (not expected)
        page = await text(client, f"/rules/new?message={box.ids[id]}")
        assert f'value="{expected[0].partition(" ")[2] if expected else ""}"' in page
    assert (await client.get("/rules/about/nothing")).status_code == 404
    about = {"about": senders["s"][1][1], "action": "file", "argument": ["Shops", ""], "stay": "yes"}
    kept = await follow(client, "/rules/draft", {**about, "turn": "check"})
    for value in ("shop.example", "Shops", "Apply the label Shops and archive: shop.example"):
        assert f'value="{value}"' in kept
    assert "1 <small>of the newest 6 messages" in kept


TWO = "- {name: a, if: {to_me: true}, then: star}\n- {name: b, if: {to_me: true}, then: star}\n"


async def test_a_check_counts_only_the_newest_and_what_can_be_told(database: Database) -> None:
    box = await mailbox(database)
    await box.deliver(*(Sample(f"m{n}", subject=f"Parcel {n}") for n in range(8)))
    await box.deliver(Sample("m8", subject="Parcel 8", is_whole=False))
    by_subject = RuleDraft("x", {"subject_words": "parcel"}, "star")
    found = await RuleMatcher(database, newest=6).find(by_subject)
    assert (found.matched, found.tried, found.unknown) == (6, 6, 0)
    assert [each.subject for each in found.newest] == [f"Parcel {n}" for n in (8, 7, 6, 5, 4)]
    by_text = replace(by_subject, conditions={"body_words": "hello"}, shadow=True, enabled=False)
    found = await RuleMatcher(database).find(by_text)
    assert (found.matched, found.tried, found.unknown) == (8, 9, 1)
    elsewhere = replace(by_subject, scope="domain", scope_ref="y.example")
    assert (await RuleMatcher(database).find(elsewhere)).matched == 0
    late = await RuleMatcher(database, longest_s=-1).find(by_subject)
    assert (late.tried, late.total, late.is_cut_short) == (0, 9, True)


async def test_a_new_rule_is_saved_and_signed(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database)
    page = await follow(client, "/rules/save", written(description="From the shop", needs_approval="yes"))
    assert "“shop” is a rule now." in page
    view = (await stored(database))["shop"]
    assert view.draft == replace(
        SHOP, conditions={"from": "@shop.example"}, description="From the shop", needs_approval=True
    )
    [entry] = [each for each in await database.run(list_audit(5)) if each.action == "rules.add"]
    assert (entry.actor, entry.role, entry.object_id) == ("person:owner", "admin", "shop")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, "name: is not one line of text"),
        ({"name": "club"}, "there is already a rule 'club'"),
        ({"kind": ["label_present", ""], "value": ["Nowhere", ""]}, "which no mailbox has"),
        ({"way": "text", "text": "name: ["}, "fix that line"),
    ],
)
async def test_what_cannot_be_saved_is_kept_and_shown_again(
    client: httpx2.AsyncClient, database: Database, changes: dict[str, str | list[str]], said: str
) -> None:
    await mailbox(database, CLUB)
    page = await follow(client, "/rules/save", written(**{"description": "do not lose me", **changes}))
    assert said in page
    assert ("name: [" if "text" in changes else "do not lose me") in page
    assert list(await stored(database)) == ["club"]


async def test_a_label_that_no_mailbox_has_may_be_accepted(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database)
    fields = {"kind": ["label_present", ""], "value": ["Nowhere", ""]}
    assert "No mailbox has the label “<bdi>Nowhere</bdi>”" in await checked(client, **fields)
    await follow(client, "/rules/save", written(**fields, allow_missing="yes"))
    assert list(await stored(database)) == ["shop"]


async def test_a_change_needs_the_version_it_is_based_on(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database, SHOP)
    view = (await stored(database))["shop"]
    assert "“shops” is saved." in await follow(client, "/rules/save", written(view, name="shops"))
    page = await follow(client, "/rules/save", written(view, name="others"))
    assert "was changed meanwhile" in page
    assert 'value="others"' in page
    assert list(await stored(database)) == ["shops"]
    shown = re.search(r'name="version" value="(\d+)"', page)
    assert shown is not None
    again = replace(view, version=int(shown[1]))
    assert "“others” is saved." in await follow(client, "/rules/save", written(again, name="others"))


async def test_what_was_written_outlives_the_rule(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database, SHOP)
    view = (await stored(database))["shop"]
    await follow(client, f"/rules/{view.id}/remove", {})
    page = await follow(client, "/rules/save", written(view, name="shop", description="do not lose me"))
    assert "was removed meanwhile" in page
    assert "do not lose me" in page
    assert "“shop” is a rule now." in await follow(client, "/rules/save", written(name="shop"))


async def test_a_rule_is_written_as_a_form_or_as_text(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database, SHOP, replace(SHOP, name="nested", conditions=NESTED))
    views = await stored(database)
    assert 'name="kind"' in await text(client, f"/rules/{views['shop'].id}")
    assert "<textarea" in await text(client, f"/rules/{views['nested'].id}")
    as_text = await follow(client, "/rules/draft", written(views["shop"], turn="text"))
    assert "from: '@shop.example'" in as_text
    fields = {"way": "text", "text": "name: x\nif: {to_me: true}\nthen: star\n"}
    as_form = await follow(client, "/rules/draft", written(**fields, turn="form"))
    assert '<option value="to_me" selected' in as_form
    unfit = await follow(
        client,
        "/rules/draft",
        written(
            way="text",
            text=f"name: x\nif: {NESTED}\nthen: star\n".replace("False", "false").replace("True", "true"),
            turn="form",
        ),
    )
    assert "has no fields for conditions inside others" in unfit
    assert "<textarea" in unfit


async def test_without_javascript_a_button_checks(client: httpx2.AsyncClient, database: Database) -> None:
    box = await mailbox(database)
    await box.deliver(PARCEL)
    page = await follow(client, "/rules/draft", written(turn="check"))
    assert "1 <small>of the newest 1 messages" in page
    assert 'value="@shop.example"' in page
    five = {"kind": ["from"] * 5, "how": ["is"] * 5, "value": ["@a.example"] * 5}
    more = await follow(client, "/rules/draft", written(turn="rows", **five))
    assert more.count('name="kind"') == 6


async def test_a_new_rule_begins_with_the_message_it_is_about(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database)
    page = await text(client, "/rules/new?from=ida%40shop.example&subject=Your+parcel")
    assert 'value="ida@shop.example"' in page
    assert 'value="Your parcel"' in page
    for attack in ATTACKS:
        raw = (await client.get("/rules/new", params={"from": attack, "subject": attack})).text
        assert "<script>alert" not in raw
        assert "<img src=x" not in raw
        assert "<h1>Postroom was" not in raw


async def test_a_simulation_shows_the_difference_and_saves(client: httpx2.AsyncClient, database: Database) -> None:
    box = await mailbox(database, CLUB)
    await box.decide(PARCEL, INVOICE, LUNCH)
    fields = written(standing="off", days="7")
    address = (await submit(client, "/rules/simulate", fields)).headers["location"]
    page = await page_with(client, address, "Decided differently")
    assert "of 3 in 7 days" in page
    assert "stay → archive: 2" in page
    assert "Your parcel" in page
    assert list(await stored(database)) == ["club"]
    back = page.split('<a href="/rules/new?draft=')[1].split('"')[0]
    assert 'value="@shop.example"' in await text(client, f"/rules/new?draft={back}")
    again = await follow(client, f"{address}/cancel", {})
    assert "Canceled; nothing was changed." in again


async def test_a_simulation_of_a_renamed_rule_replaces_it(client: httpx2.AsyncClient, database: Database) -> None:
    box = await mailbox(database, SHOP)
    await box.decide(PARCEL)
    view = (await stored(database))["shop"]
    fields = written(view, name="shops", action=["star", ""])
    address = (await submit(client, "/rules/simulate", fields)).headers["location"]
    assert "archive → star: 1" in await page_with(client, address, "Decided differently")


async def test_what_cannot_be_simulated_is_kept_and_shown_again(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database)
    page = await follow(client, "/rules/simulate", written(value=["nobody", ""], description="do not lose me"))
    assert "is not an address" in page
    assert "do not lose me" in page

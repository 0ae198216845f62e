"""The list of rules and one rule's page: what they show, each act and its entry in the audit log, and who may act."""

from collections.abc import AsyncIterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature, list_audit
from postroom.store.rules.proposals import list_proposals
from postroom.store.rules.rules import disable_rule, keep_rules, list_rules, unconfirmed_rules
from postroom.system.wall_clock import wall_clock
from support.page_app import visiting_pages, visitor
from support.page_forms import submit
from support.rule_pages import ATTACKS, CLUB, INVOICE, LUNCH, PARCEL, SHOP, mailbox, stored
from support.store.mail_setup import Sample


@pytest.fixture
async def client(database: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting_pages(database, tmp_path) as client:
        yield client


async def text(client: httpx2.AsyncClient, address: str, status: int = 200) -> str:
    answer = await client.get(address)
    assert answer.status_code == status
    return unescape(answer.text)


async def audited(database: Database) -> list[tuple[str, str, str]]:
    return [(entry.actor, entry.action, entry.object_id) for entry in await database.run(list_audit(5))]


async def test_rules_are_shown_in_words_and_in_order_with_their_hits(
    client: httpx2.AsyncClient, database: Database
) -> None:
    box = await mailbox(database, SHOP, replace(CLUB, priority=5, needs_approval=True))
    await box.decide(PARCEL, INVOICE, LUNCH)
    page = await text(client, "/rules")
    assert page.index("club") < page.index("if the sender is from shop.example → archive it")
    assert "2 decisions in 7 days" in page
    assert "hits by day, oldest first: 0, 0, 0, 0, 0, 0, 2" in page
    assert "asks each time" in page
    assert "All 2" in page
    assert page.count("never") == 1


async def test_a_rule_that_a_token_wrote_and_that_sends_is_confirmed_on_the_page_as_it_was_shown(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await mailbox(database, SHOP)
    sends = RuleDraft("invoices", {"subject_contains": "invoice"}, "forward", {"to": "eve@example.net"})
    by_token = Signature(new_id(), "token:7", "admin")
    await database.run(keep_rules([(new_id(), sends)], "refuse", "user", by_token, wall_clock()))
    page = await text(client, "/rules")
    assert "Rules to confirm" in page
    assert "eve@example.net" in page
    assert "1 rule to confirm" in await text(client, "/")
    rule = next(each for each in await database.run(list_rules()) if each.name == "invoices")
    assert "does nothing until you confirm it" in await text(client, f"/rules/{rule.id}")
    await submit(client, f"/rules/{rule.id}/confirm", {"shown": "0" * 64})
    assert await database.run(unconfirmed_rules()), "another hash is another rule"
    await submit(client, f"/rules/{rule.id}/confirm", {"shown": sends.content_hash})
    assert await database.run(unconfirmed_rules()) == []
    assert (await audited(database))[0][1:] == ("rules.confirm", "invoices")
    assert "Rules to confirm" not in await text(client, "/rules")


async def test_an_empty_list_leads_to_the_first_rule(client: httpx2.AsyncClient) -> None:
    page = await text(client, "/rules")
    assert "No rules yet." in page
    for address in ("/rules/starter", "/rules/import", "/rules/new"):
        assert f'href="{address}"' in page


async def test_what_is_off_says_why_and_what_is_in_shadow_says_how_it_does(
    client: httpx2.AsyncClient, database: Database
) -> None:
    box = await mailbox(database, replace(SHOP, shadow=True), CLUB, replace(CLUB, name="broken"))
    views = await stored(database)
    await database.run(disable_rule(views["club"].id, "its label was deleted", box.setup.clock()))
    await box.decide(PARCEL)
    page = await text(client, "/rules")
    assert "its label was deleted" in page
    assert "1 in shadow since its last change: none could be compared with what you did" in page
    assert "its label was deleted" not in await text(client, "/rules?state=shadow")
    assert "No rule here." in await text(client, "/rules?scope=sender")
    detail = await text(client, f"/rules/{views['shop'].id}")
    assert "only 0 of its 1 decisions could be compared" in detail.lower()


async def test_many_rules_are_paged_by_key(client: httpx2.AsyncClient, database: Database) -> None:
    await mailbox(database, *(RuleDraft(f"rule {n:03}", SHOP.conditions, "star") for n in range(230)))
    address, seen = "/rules", list[str]()
    while True:
        page = await text(client, address)
        seen += [name for name in (f"rule {n:03}" for n in range(230)) if f">{name}<" in page]
        if 'rel="next"' not in page:
            break
        address = page.split('rel="next" href="')[1].split('"')[0]
    assert seen == [f"rule {n:03}" for n in range(230)]


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/rules?state=asleep", 400, "choose one of: all, on, shadow, off"),
        ("/rules?scope=moon", 400, "choose one of: all, global"),
        ("/rules?after=here", 400, "open the list from its beginning"),
        ("/rules/nothing", 404, "there is no such rule"),
        (f"/rules/{UUID(int=7)}", 404, "there is no such rule"),
        ("/rules/simulations/unknown", 404, "start it again"),
        ("/rules/import?file=unknown", 404, "give it again"),
    ],
)
async def test_an_address_that_makes_no_sense_says_so(
    client: httpx2.AsyncClient, address: str, status: int, said: str
) -> None:
    assert said in await text(client, address, status)


async def test_a_rule_moves_and_is_switched_and_every_change_is_signed(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await mailbox(database, SHOP, CLUB)
    views = await stored(database)
    at = f"/rules/{views['club'].id}"
    await submit(client, f"{at}/move", {"to": "up"}, back="/rules")
    assert list(await stored(database)) == ["club", "shop"]
    await submit(client, f"{at}/disable", back="/rules")
    assert (await stored(database))["club"].disabled_reason == "switched off on the page"
    await submit(client, f"{at}/enable", back="/rules")
    await submit(client, f"{at}/watch", back="/rules")
    assert (await stored(database))["club"].mode == "shadow"
    await submit(client, f"{at}/act", back="/rules")
    assert [action for _, action, _ in await audited(database)] == [
        "rules.edit",
        "rules.edit",
        "rules.enable",
        "rules.disable",
        "rules.move",
    ]
    removed = await submit(client, f"{at}/remove", back=at)
    assert removed.headers["location"] == "/rules"
    assert list(await stored(database)) == ["shop"]
    assert (await audited(database))[0] == ("person:owner", "rules.remove", "club")
    gone = await submit(client, f"{at}/enable", back="/rules")
    assert gone.status_code == 303
    assert "no such rule" in await text(client, "/rules")


async def test_a_proposal_becomes_a_rule_in_shadow_or_is_dismissed_for_good(
    client: httpx2.AsyncClient, database: Database
) -> None:
    box = await mailbox(database)
    for name, sender in (("a", "news@a.example"), ("b", "news@b.example")):
        for number in range(3):
            await box.decide(Sample(f"{name}{number}", sender, "News"))
            await box.user(f"{name}{number}", remove="INBOX")
    first, second = await database.run(list_proposals("open", 10))
    page = await text(client, "/rules")
    assert "you did it by hand 3 times" in page
    assert "the sender is news@a.example" in page
    await submit(client, f"/rules/proposals/{first.id}/accept", {"as": "shadow"}, back="/rules")
    await submit(client, f"/rules/proposals/{second.id}/dismiss", back="/rules")
    [rule] = (await stored(database)).values()
    assert (rule.mode, rule.origin) == ("shadow", "learned")
    assert "Proposed" not in await text(client, "/rules")
    again = await submit(client, f"/rules/proposals/{second.id}/accept", back="/rules")
    assert again.status_code == 303
    assert "it was dismissed already" in await text(client, "/rules")
    assert len(await stored(database)) == 1


async def test_a_viewer_reads_and_changes_nothing(database: Database, tmp_path: Path) -> None:
    await mailbox(database, SHOP)
    views = await stored(database)
    at = f"/rules/{views['shop'].id}"
    async with visiting_pages(database, tmp_path, visitor("viewer")) as client:
        for address in ("/rules", at, "/rules/new", "/rules/import", "/rules/starter", "/filters"):
            page = await text(client, address)
            assert "<form class" not in page or "form_token" not in page
            assert 'method="post"' not in page
        assert "Only operators write rules." in await text(client, "/rules/new")
        for act in ("move", "enable", "disable", "remove", "watch", "act"):
            assert (await submit(client, f"{at}/{act}")).status_code == 403
        for address in (
            *("/rules/check", "/rules/draft", "/rules/save", "/rules/simulate", "/rules/simulations/x/cancel"),
            *("/rules/starter/security/add", "/rules/import/read", "/rules/import/keep", "/rules/import/enable"),
            *(f"/rules/proposals/{new_id()}/accept", f"/rules/proposals/{new_id()}/dismiss"),
        ):
            assert (await submit(client, address)).status_code == 403
    assert await stored(database) == views


async def test_hostile_text_stays_text(client: httpx2.AsyncClient, database: Database) -> None:
    drafts = [
        replace(
            SHOP,
            name=f"{number} {attack}"[:200],
            description=attack,
            conditions={"or": [{"subject_contains": attack}, {"label_present": attack}]},
            action_type="apply_label",
            parameters={"label": attack},
            enabled=False,
            disabled_reason=attack,
        )
        for number, attack in enumerate(ATTACKS)
    ]
    box = await mailbox(database, *drafts)
    await box.decide(*(Sample(f"m{n}", f"{n}@x.example", attack) for n, attack in enumerate(ATTACKS)))
    views = (await stored(database)).values()
    for address in ("/rules", *(f"/rules/{view.id}" for view in views)):
        raw = (await client.get(address)).text
        for sign in ("<script>alert", "<img src=x", "<svg onload", "<h1>Postroom was", "<div hx-get", "' onmouseover"):
            assert sign not in raw
        assert "49{" not in raw

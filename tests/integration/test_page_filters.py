"""The filters page: how mail gets its tier, the guard, the contacts and how fresh they are, and the ingestion rules."""

from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape
from pathlib import Path

import httpx2
import pytest

from postroom.core.heartbeat import parse_heartbeat
from postroom.core.mail.ingestion import parse_rule
from postroom.core.mail.tiers import Known, assign_tier
from postroom.operations.caller import Caller
from postroom.operations.connectors.filters import remove_filter
from postroom.operations.connectors.tier_rules import load_tier_rules
from postroom.operations.people.audit import signature
from postroom.settings.reading import load_settings
from postroom.store.engine.database import Database
from postroom.store.intake.connectors import record_heartbeat
from postroom.store.intake.ingestion_rules import add_ingestion_rule
from postroom.store.mail.contacts import note_correspondents
from postroom.system.wall_clock import wall_clock
from postroom.words.tiers import TIER_RULES
from support.page_app import visiting_pages


@pytest.fixture
async def client(database: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting_pages(database, tmp_path) as client:
        yield client


async def text(client: httpx2.AsyncClient, address: str = "/filters") -> str:
    answer = await client.get(address)
    assert answer.status_code == 200
    return unescape(answer.text)


async def heard(database: Database, identity: str, contacts_age: timedelta | None, uptime_s: float = 600) -> None:
    now = wall_clock()
    checkpoint = {"cursor": "1", "updated_at": now.isoformat()}
    if contacts_age is not None:
        checkpoint["contacts_generated_at"] = (now - contacts_age).isoformat()
    report = {
        "schema_version": "connector.heartbeat.v1",
        "connector": {"connector_type": "gmail", "endpoint_identity": identity, "instance_id": "i"},
        "status": {"state": "healthy", "uptime_s": uptime_s},
        "counters": {},
        "checkpoint": checkpoint,
        "sent_at": now.isoformat(),
    }
    await database.run(record_heartbeat(parse_heartbeat(report), now))


def test_the_rules_shown_are_those_that_are_applied() -> None:
    known = Known.of(["me@x.example"], ["ida@x.example"], ["<1@x.example>"])
    mail = {
        "known_contact": [("From", "ida@x.example")],
        "reply_to_outbound": [("From", "uta@x.example"), ("In-Reply-To", "<1@x.example>")],
        "direct_correspondence": [("From", "uta@x.example"), ("To", "me@x.example")],
        "fallback_default": [("From", "uta@x.example")],
    }
    assert [(rule.tier, rule.name) for rule in TIER_RULES] == [
        tuple(assign_tier(tuple(mail[rule.name]), known)) for rule in TIER_RULES
    ]


async def test_the_panel_shows_rules_guard_and_contacts(client: httpx2.AsyncClient, database: Database) -> None:
    page = await text(client)
    assert "Email priority tier rules" in page
    assert page.index("known_contact") < page.index("reply_to_outbound") < page.index("fallback_default")
    assert "The default is 10." in page
    assert "There are none: rules 2 to 4 remain." in page
    assert "No mail connector has reported yet." in page
    await database.run(note_correspondents(["ida@x.example", "uta@x.example"], wall_clock()))
    await heard(database, "gmail:user:fresh@x.example", timedelta(minutes=5))
    await heard(database, "gmail:user:old@x.example", timedelta(hours=2))
    await heard(database, "gmail:user:none@x.example", None)
    await heard(database, "gmail:user:starting@x.example", None, uptime_s=1)
    page = await text(client)
    assert "people you have written to" in page
    assert "2 addresses" in page
    for identity, state in (("fresh", "fresh"), ("old", "too old"), ("none", "missing"), ("starting", "being read")):
        row = page.split(f"gmail:user:{identity}@x.example")[1].split("</li>")[0]
        assert f"</svg>{state}</span>" in row


async def test_a_guard_from_the_settings_is_marked(database: Database, tmp_path: Path) -> None:
    given = {"data_dir": tmp_path, "queues": {"email": {"guards": {"interactive": 3}}}}
    found = await load_tier_rules(database, load_settings(given, environ={}, cwd=tmp_path))
    assert {guard.tier: (guard.most_in_a_row, guard.is_set) for guard in found.guards} == {
        "high_priority": (10, False),
        "interactive": (3, True),
        "default": (10, False),
        "history": (10, False),
    }


async def test_ingestion_rules_are_shown_in_order_and_paged(client: httpx2.AsyncClient, database: Database) -> None:
    page = await text(client)
    assert "it has the header list-unsubscribe" in page
    await remove_filter(Caller(database, signature("test", "admin")), "list-unsubscribe")
    hostile = "<script>alert(1)</script>"
    own = {"number": 5, "name": hostile, "kind": "header_contains", "header": "x-odd", "value": hostile, "tier": "skip"}
    await database.run(add_ingestion_rule(parse_rule(own), signature("test", "admin"), wall_clock()))
    raw = (await client.get("/filters")).text
    assert "<script>alert" not in raw
    page = unescape(raw)
    assert page.index(hostile) < page.index("text/calendar")
    assert "</svg>off</span>" in page
    for number in range(220):
        rule = {
            "number": 10,
            "name": f"f{number:03}",
            "kind": "sender_domain",
            "value": f"d{number:03}.example",
            "tier": "skip",
        }
        await database.run(add_ingestion_rule(parse_rule(rule), signature("test", "admin"), wall_clock()))
    first = await text(client)
    assert "d198.example" in first
    assert "precedence-junk" not in first
    rest = await text(client, first.split('rel="next" href="')[1].split('"')[0])
    assert "d219.example" in rest
    assert "precedence-junk" in rest
    assert (await client.get("/filters?after=x")).status_code == 400

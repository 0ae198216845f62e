"""The outbound page over both databases: what it shows, its filters and lists, each act, and who may act."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from postroom.core.outbound.priority import Throttle
from postroom.operations.outbound.suppressions import list_suppressions
from postroom.operations.outbound.tenants import load_tenant
from postroom.store.engine.database import Database, Transaction
from postroom.store.outbound import destinations, senders, suppressions
from postroom.store.outbound.outbound_views import load_conversation
from postroom.store.outbound.senders import load_sender
from postroom.store.people.audit import AuditView, list_audit
from postroom.system.wall_clock import wall_clock
from support.hostile_text import ATTACKS, smuggled, storable
from support.outgoing_traffic import FERRY, KETTLE, PARROT, Outgoing, fill_outbound, signed
from support.page_app import visiting_pages, visitor
from support.page_forms import submit

PROMO = f"promo@{PARROT}"


@pytest.fixture
async def page(database: Database, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting_pages(database, tmp_path) as client:
        yield client


async def shown(page: httpx2.AsyncClient, address: str = "/outbound") -> str:
    answer = await page.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


def panel(text: str, name: str) -> str:
    return text.partition(f'aria-label="{name}"')[2].partition("</section>")[0]


async def newest_audit(database: Database) -> AuditView:
    return (await database.run(list_audit(1)))[0]


async def test_an_empty_installation_says_why_it_is_empty(page: httpx2.AsyncClient) -> None:
    text = await shown(page)
    for sentence in ("No mail took its turn yet.", "No tenant had mail", "No sender is held back.", "Nothing bounced"):
        assert sentence in text


async def test_it_shows_lanes_tenants_results_senders_and_mail(page: httpx2.AsyncClient, database: Database) -> None:
    await fill_outbound(database, wall_clock())
    text = await shown(page)
    tenants = panel(text, "Tenants")
    assert tenants.index(KETTLE) < tenants.index(FERRY) < tenants.index(PARROT)
    assert "57.1 %" in tenants
    assert "1 held" in tenants
    assert "over 3 tenants" in panel(text, "Fairness over time")
    bounces = panel(text, "Bounces by class")
    assert all(words in bounces for words in ("No such address", "Mailbox full", "Content refused"))
    assert "2 of 12 recipients" in bounces
    senders = panel(text, "Throttled senders")
    assert all(words in senders for words in (PROMO, "score 60", "40 of 80 bounced", "+60", "held back until"))
    assert "slow.example" in panel(text, "Destinations")
    assert "no@large-mail.example" in panel(text, "Suppressed addresses")
    assert panel(text, "Lanes").count("<tr") == 1 + 5


async def test_mail_is_filtered_by_its_state(page: httpx2.AsyncClient, database: Database) -> None:
    await fill_outbound(database, wall_clock())
    for state, subjects in (
        ("failed", {"You have won", "Two of you"}),
        ("deferred", {"You have won again"}),
        ("unknown", {"Lost on the way"}),
        ("canceled", set[str]()),
    ):
        found = panel(await shown(page, f"/outbound?state={state}"), "Outgoing mail")
        assert found.count("data-row") == len(subjects)
        assert all(subject in found for subject in subjects)


async def test_every_list_pages_by_key(page: httpx2.AsyncClient, database: Database) -> None:
    traffic, now = Outgoing(database, wall_clock()), wall_clock()
    for number in range(27):
        await traffic.put(f"t{number:02}.example", f"r@d{number:02}.example", subject=f"Mail {number:02}")
    for number in range(17):
        await database.run(suppressions.suppress(KETTLE, f"a{number:02}@x.example", signed(), now))
    text = await shown(page)
    assert "25 of 27 shown" in panel(text, "Tenants")
    for name, rows, rest in (("Tenants", "t-", 2), ("Outgoing mail", "o-", 2)):
        first = panel(text, name)
        second = panel(await shown(page, _next(first)), name)
        assert first.count(f'id="{rows}') == 25
        assert second.count(f'id="{rows}') == rest
        assert not _ids(first) & _ids(second)
        assert 'rel="prev"' in second
    first = panel(text, "Suppressed addresses")
    second = panel(await shown(page, _next(first)), "Suppressed addresses")
    assert (first.count("Allow again"), second.count("Allow again")) == (15, 2)
    assert "a00@x.example" in second


def _next(text: str) -> str:
    link = text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
    return link.replace("&amp;", "&")


def _ids(text: str) -> set[str]:
    return {part.partition('"')[0] for part in text.split('<tr role="row" id="')[1:]}


async def test_the_longest_wait_comes_first_where_that_is_asked(page: httpx2.AsyncClient, database: Database) -> None:
    now = wall_clock()
    await Outgoing(database, now - timedelta(minutes=50)).put("late.example", "a@x.example")
    for number in range(3):
        await Outgoing(database, now).sent("busy.example", f"r{number}@x.example")
    await Outgoing(database, now - timedelta(minutes=50)).put("late.example", "b@x.example")
    tenants = panel(await shown(page, "/outbound?order=wait&window=1h"), "Tenants")
    assert tenants.index("late.example") < tenants.index("busy.example")


async def test_one_tenant_is_shown_with_its_senders(page: httpx2.AsyncClient, database: Database) -> None:
    await fill_outbound(database, wall_clock())
    found = panel(await shown(page, f"/outbound?tenant={PARROT}"), "One tenant")
    assert PROMO in found
    assert f"post@{PARROT}" in found
    assert "2 of 2 senders shown" in found


async def test_what_makes_no_sense_is_refused_with_words(sqlite: Database, tmp_path: Path) -> None:
    nonsense = ("window=3d", "order=name", "state=sent'", "after=x", "after=nan/1", "before=-1", "older=yesterday")
    async with visiting_pages(sqlite, tmp_path) as page:
        for rest, status in (
            *((f"?{each}", 400) for each in nonsense),
            ("?tenant=nobody", 404),
            ("/none", 404),
            (f"/{uuid4()}", 404),
            ("/simulate?source=other", 400),
            ("/simulate?flood=1000000", 400),
        ):
            answer = await page.get(f"/outbound{rest}")
            assert answer.status_code == status, rest
            assert "<p>" in answer.text


async def test_the_conversation_of_a_mail_is_shown(page: httpx2.AsyncClient, database: Database) -> None:
    ids = await fill_outbound(database, wall_clock())
    text = await shown(page, f"/outbound/{ids['partial']}")
    recipients = panel(text, "Recipients")
    assert recipients.index("gone@large-mail.example") < recipients.index("ida@inbox.example")
    assert "550 5.1.1 no such user here" in recipients
    assert "250 2.0.0 ok" in recipients
    assert "No such address" in recipients


class TestActs:
    async def test_a_sender_is_throttled_and_released(self, page: httpx2.AsyncClient, database: Database) -> None:
        await fill_outbound(database, wall_clock())
        username = f"post@{KETTLE}"
        fields = {"username": username, "hours": "3", "reason": "a wave"}
        answer = await submit(page, "/outbound/senders/throttle", fields, back="/outbound")
        assert answer.headers["location"] == "/outbound"
        throttled = await database.run(load_sender(username, wall_clock()))
        assert throttled.throttle_reason == "a wave"
        assert abs(_not_none(throttled.throttled_until) - wall_clock() - timedelta(hours=3)) < timedelta(minutes=30)
        entry = await newest_audit(database)
        assert (entry.action, entry.actor, entry.reason) == ("sender.throttle", "person:owner", "a wave")
        assert username in panel(await shown(page), "Throttled senders")
        await submit(page, "/outbound/senders/release", {"username": username}, back="/outbound")
        assert (await database.run(load_sender(username, wall_clock()))).throttled_until is None
        assert (await newest_audit(database)).action == "sender.release"

    async def test_nonsense_hours_throttle_nobody(self, sqlite: Database, tmp_path: Path) -> None:
        await fill_outbound(sqlite, wall_clock())
        before = await newest_audit(sqlite)
        async with visiting_pages(sqlite, tmp_path) as page:
            for hours in ("", "0", "x", "-1", "1e3", "9999999"):
                await submit(page, "/outbound/senders/throttle", {"username": f"post@{KETTLE}", "hours": hours})
        assert (await newest_audit(sqlite)).id == before.id

    async def test_an_address_is_suppressed_and_allowed_again(
        self, page: httpx2.AsyncClient, database: Database
    ) -> None:
        await fill_outbound(database, wall_clock())
        fields = {"tenant": KETTLE, "address": "uta@x.example"}
        await submit(page, "/outbound/suppress", {**fields, "reason": "she asked"})
        entry = await newest_audit(database)
        assert (entry.action, entry.actor, entry.reason) == ("suppression.add", "person:owner", "she asked")
        assert "uta@x.example" in [
            each.address for each in (await list_suppressions(database, wall_clock, KETTLE)).lines
        ]
        await submit(page, "/outbound/unsuppress", fields)
        assert "uta@x.example" not in [
            each.address for each in (await list_suppressions(database, wall_clock, KETTLE)).lines
        ]
        assert (await newest_audit(database)).action == "suppression.remove"

    async def test_nothing_is_suppressed_for_a_tenant_that_is_none(
        self, page: httpx2.AsyncClient, database: Database
    ) -> None:
        await submit(page, "/outbound/suppress", {"tenant": "nobody.example", "address": "uta@x.example"})
        assert (await list_suppressions(database, wall_clock)).lines == []

    async def test_a_destination_is_paused_and_resumed(self, page: httpx2.AsyncClient, database: Database) -> None:
        await submit(page, "/outbound/destinations/pause", {"destination": "Post.Example", "reason": "421s"})
        [paused] = await database.run(destinations.list_destination_pauses())
        assert (paused.destination, paused.reason, paused.paused_by) == ("post.example", "421s", "person:owner")
        await submit(page, "/outbound/destinations/resume", {"destination": "post.example"})
        assert await database.run(destinations.list_destination_pauses()) == []
        assert (await newest_audit(database)).action == "destination.resume"

    async def test_a_tenant_is_paused_and_resumed(self, page: httpx2.AsyncClient, database: Database) -> None:
        await fill_outbound(database, wall_clock())
        await submit(page, "/outbound/tenants/pause", {"tenant": PARROT})
        assert (await load_tenant(database, PARROT)).state == "paused"
        assert (await newest_audit(database)).actor == "person:owner"
        await submit(page, "/outbound/tenants/resume", {"tenant": PARROT})
        assert (await load_tenant(database, PARROT)).state == "active"

    async def test_a_mail_is_hastened_canceled_and_resolved(self, page: httpx2.AsyncClient, database: Database) -> None:
        ids = await fill_outbound(database, wall_clock())
        for mail, act, fields, state in (
            ("deferred", "send-now", {}, "deferred"),
            ("deferred", "cancel", {"reason": "no more"}, "canceled"),
            ("unknown", "resolve", {"outcome": "sent"}, "sent"),
        ):
            await submit(page, f"/outbound/{ids[mail]}/{act}", fields)
            assert (await database.run(load_conversation(ids[mail], 9))).mail.state == state
            assert (await newest_audit(database)).actor == "person:owner"
        await submit(page, f"/outbound/{ids['sent']}/resolve", {"outcome": "maybe"})
        assert (await database.run(load_conversation(ids["sent"], 9))).mail.state == "sent"


FORMS: list[tuple[str, dict[str, str]]] = [
    ("/outbound/senders/throttle", {"username": f"post@{KETTLE}", "hours": "3"}),
    ("/outbound/senders/release", {"username": PROMO}),
    ("/outbound/suppress", {"tenant": KETTLE, "address": "uta@x.example"}),
    ("/outbound/unsuppress", {"tenant": KETTLE, "address": "no@large-mail.example"}),
    ("/outbound/destinations/pause", {"destination": "post.example"}),
    ("/outbound/destinations/resume", {"destination": "slow.example"}),
    ("/outbound/tenants/pause", {"tenant": KETTLE}),
    ("/outbound/tenants/resume", {"tenant": KETTLE}),
    ("/outbound/simulate", {"source": "flood"}),
    ("/outbound/simulate/cancel", {"source": "flood"}),
]


async def test_a_viewer_reads_and_may_do_nothing(sqlite: Database, tmp_path: Path) -> None:
    ids = await fill_outbound(sqlite, wall_clock())
    before = await newest_audit(sqlite)
    mail = [(f"/outbound/{ids['deferred']}/{act}", {"outcome": "sent"}) for act in ("cancel", "send-now", "resolve")]
    async with visiting_pages(sqlite, tmp_path, visitor("viewer")) as page:
        for rest in ("", f"?tenant={PARROT}", f"/{ids['deferred']}", "/simulate"):
            assert 'method="post"' not in await shown(page, f"/outbound{rest}")
        for address, fields in (*FORMS, *mail):
            assert (await submit(page, address, fields)).status_code == 403
    assert (await newest_audit(sqlite)).id == before.id


async def test_resuming_asks_for_a_fresh_proof(sqlite: Database, tmp_path: Path) -> None:
    await fill_outbound(sqlite, wall_clock())
    async with visiting_pages(sqlite, tmp_path, visitor("admin", is_fresh=False)) as page:
        for address, fields in FORMS:
            if address.endswith("/resume"):
                answer = await submit(page, address, fields, back="/outbound?window=1h")
                assert answer.headers["location"] == "/sign-in/again?to=/outbound%3Fwindow%3D1h"
    assert len(await sqlite.run(destinations.list_destination_pauses())) == 1


async def test_a_strangers_words_stay_words(sqlite: Database, tmp_path: Path) -> None:
    traffic, now = Outgoing(sqlite, wall_clock()), wall_clock()
    ids: list[UUID] = []
    for number, attack in enumerate(ATTACKS):
        text = storable(attack)
        mail = await traffic.put(KETTLE, f"r{number}@x.example", subject=text)
        outcome: tuple[Any, ...] = ("bounced", text, None, None)
        ids.append(await traffic.end(mail, outcome))
        await sqlite.run(destinations.pause_destination(f"d{number}.example", signed()._replace(reason=text), now))
        suppressing = signed()._replace(reason=text)
        await sqlite.run(suppressions.suppress(KETTLE, f"s{number}@x.example", suppressing, now))
    await sqlite.run(_throttling(f"post@{KETTLE}", ATTACKS[1], now))
    async with visiting_pages(sqlite, tmp_path) as page:
        for address in ("/outbound", f"/outbound?tenant={KETTLE}", *(f"/outbound/{id}" for id in ids)):
            assert smuggled(await shown(page, address)) == []


def _throttling(username: str, reason: str, now: datetime) -> Transaction[Any]:
    return senders.throttle_sender(username, Throttle(now + timedelta(hours=1), reason), signed(), now)


def _not_none(moment: datetime | None) -> datetime:
    assert moment is not None
    return moment


async def suppressed_addresses(database: Database) -> list[str]:
    return [each.address for each in (await list_suppressions(database, wall_clock, KETTLE)).lines]

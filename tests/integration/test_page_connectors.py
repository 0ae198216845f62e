"""The pages of connectors: cards with health, tiers in a window, what was left out, the acts, and connecting."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
import pytest

from postroom.interfaces.dashboard.pages.connecting import ConnectPage
from postroom.interfaces.dashboard.site import Site
from postroom.interfaces.http.application import create_application
from postroom.operations.accounts.accounts import find_account, list_accounts
from postroom.operations.accounts.pending_consents import PendingConsents
from postroom.operations.parts import Parts
from postroom.settings.reading import load_settings
from postroom.store.engine.database import Database
from postroom.store.jobs import jobs
from support.attacks import ATTACKS, assert_harmless
from support.clocks import ManualClock
from support.google import ADA, running_google
from support.intake_pages import ENDPOINT, MARA, IntakeSetup, said_in, visiting
from support.page_app import as_visitor, visitor
from support.page_forms import submit
from support.patience import PATIENCE_S
from support.store.inbox_setup import event, mail

DETAIL = f"/connectors/gmail/{quote(ENDPOINT, safe='')}"


@pytest.fixture
def setup(sqlite: Database, tmp_path: Path, clock: ManualClock) -> IntakeSetup:
    return IntakeSetup(sqlite, tmp_path, clock)


@pytest.fixture
async def page(setup: IntakeSetup) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting(setup) as client:
        yield client


async def text(page: httpx2.AsyncClient, address: str) -> str:
    answer = await page.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_cards_show_the_health_of_mailboxes_and_of_other_sources(
    setup: IntakeSetup, page: httpx2.AsyncClient
) -> None:
    assert "No connector has reported yet." in await text(page, "/connectors")
    await setup.connect()
    assert "No connector reads this mailbox." in await text(page, "/connectors")
    await setup.report(counters={"refused": 2})
    await setup.report("redis:orders/eu", "redis-stream", state="error", error_message="cannot reach Redis")
    shown = await text(page, "/connectors")
    assert "2 connectors, 1 to look at" in shown
    assert "2 refused, 0 set aside" in shown
    assert "cannot reach Redis" in shown
    address = re.search(r'href="(/connectors/redis-stream/[^"]+)"', shown)
    assert address is not None
    assert "redis:orders/eu" in await text(page, address[1])
    setup.clock.forward(300)
    assert "No contact for 4 minutes" in await text(page, "/connectors")


async def test_the_tiers_of_a_window_are_shown_with_counts_and_percentages(
    setup: IntakeSetup, page: httpx2.AsyncClient
) -> None:
    await setup.connect()
    await setup.report()
    await setup.inbox.ingest(*(mail(number) for number in range(3)))
    setup.clock.forward(3 * 3600)
    await setup.inbox.ingest(mail("a", "high_priority"), event("elsewhere"))
    day = await text(page, DETAIL)
    assert 'aria-label="high priority 1 (25%), default 3 (75%)"' in day
    for cell in ("25.0 %", "75.0 %", "0.0 %", ">4<"):
        assert cell in day
    assert "Last updated" in day
    assert "Volume" in day
    hour = await text(page, f"{DETAIL}?window=1h")
    assert 'aria-label="high priority 1 (100%)"' in hour
    assert (await page.get(f"{DETAIL}?window=5m")).status_code == 400


async def test_quota_contacts_and_what_was_left_out_are_shown(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    await setup.connect()
    await setup.report()
    setup.spend(2140)
    setup.refuse("18c0a", "18c0b", reason="TooLarge: payload")
    shown = await text(page, DETAIL)
    assert "<b>2,140</b> of 6,000 units" in shown
    assert shown.index("18c0b") < shown.index("18c0a")
    assert "TooLarge: payload" in shown
    assert "Contacts are out of date" not in shown
    setup.clock.forward(3601)
    assert "Contacts are out of date" in await text(page, DETAIL)


async def test_a_mailbox_is_synced_paused_resumed_and_its_left_out_mail_retried(
    setup: IntakeSetup, page: httpx2.AsyncClient
) -> None:
    id = await setup.connect()
    fields = {"account": MARA}
    assert "looking for new mail" in said_in(await submit(page, "/connectors/sync", fields)).sentence
    types = {each.type for each in await setup.database.run(jobs.list_jobs())}
    assert types == {"history.sync.gmail", "labels.sync.gmail"}
    await submit(page, "/connectors/pause", fields)
    assert (await find_account(setup.database, MARA)).state == "paused"
    assert "Resume" in await text(page, DETAIL)
    assert said_in(await submit(page, "/connectors/sync", fields)).mood == "bad"
    await submit(page, "/connectors/resume", fields)
    assert (await find_account(setup.database, str(id))).state == "active"
    setup.refuse("18c0a", "18c0b", "18c0c")
    one = await submit(page, "/connectors/retry", {**fields, "messages": "18c0a"})
    assert said_in(one).sentence == "Fetching 1 message once more."
    assert said_in(await submit(page, "/connectors/retry", fields)).sentence == "Fetching 3 messages once more."
    assert said_in(await submit(page, "/connectors/retry", {**fields, "messages": "<x>"})).mood == "bad"
    assert await setup.audited() == [
        "account.sync",
        "account.pause",
        "account.resume",
        "account.retry_ingest",
        "account.retry_ingest",
    ]


async def test_acting_is_switched_on_by_a_person_who_has_proved_who_they_are(
    setup: IntakeSetup, page: httpx2.AsyncClient
) -> None:
    await setup.connect()
    assert "not yet: decided in shadow" in await text(page, "/connectors")
    assert "It changes nothing until you turn Postroom on." in await text(page, DETAIL)
    async with visiting(setup, visitor("operator", is_fresh=False)) as other:
        answer = await submit(other, "/connectors/act", {"account": MARA, "since": "now"}, back=DETAIL)
        assert answer.headers["location"].startswith("/sign-in/again?to=")
    assert (await find_account(setup.database, MARA)).acts_from is None
    for wrong in ("", "soon", "2030-01-01"):
        assert said_in(await submit(page, "/connectors/act", {"account": MARA, "since": wrong})).mood == "bad"
    said = said_in(await submit(page, "/connectors/act", {"account": MARA, "since": "now"})).sentence
    assert said == f"Postroom acts on mail of {MARA}."
    assert (await find_account(setup.database, MARA)).acts_from == setup.clock()
    assert "until you turn Postroom on" not in await text(page, DETAIL)
    assert "not yet: decided" not in await text(page, "/connectors")
    assert (await setup.audited())[0] == "account.act"


async def test_resuming_asks_for_a_fresh_proof(setup: IntakeSetup) -> None:
    await setup.connect()
    async with visiting(setup, visitor("operator", is_fresh=False)) as page:
        await submit(page, "/connectors/pause", {"account": MARA})
        answer = await submit(page, "/connectors/resume", {"account": MARA}, back=DETAIL)
        assert answer.headers["location"].startswith("/sign-in/again?to=")
    assert (await find_account(setup.database, MARA)).state == "paused"


async def test_a_viewer_sees_no_button_and_may_press_none(setup: IntakeSetup) -> None:
    await setup.connect()
    setup.refuse("18c0a")
    async with visiting(setup, visitor("viewer")) as page:
        for address in ("/connectors", DETAIL):
            assert '<form class="act"' not in await text(page, address)
        for act in ("sync", "pause", "resume", "retry"):
            assert (await submit(page, f"/connectors/{act}", {"account": MARA})).status_code == 403
    assert await setup.audited() == []


async def test_an_unknown_connector_or_account_is_refused_with_words(page: httpx2.AsyncClient) -> None:
    answer = await page.get("/connectors/gmail/nobody")
    assert answer.status_code == 404
    assert "there is no connector gmail for nobody" in answer.text
    assert said_in(await submit(page, "/connectors/sync", {"account": "nobody@x.example"})).mood == "bad"
    assert said_in(await submit(page, "/connectors/sync")).mood == "bad"


async def test_hostile_identities_and_reports_are_shown_as_text(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    storable = [attack.replace("\0", "").encode("utf-8", "replace").decode() for attack in ATTACKS]
    identities = [each.strip()[:300] for each in storable if each.strip().isprintable()]
    for identity in identities:
        await setup.report(identity, "redis-stream", state="error", error_message=identity[:500])
    await setup.connect()
    await setup.report(state="degraded", error_message=storable[7][:500])
    setup.refuse("18c0a", reason=storable[0])
    assert_harmless(await text(page, "/connectors"))
    assert_harmless(await text(page, DETAIL))
    for identity in identities:
        if not set("?#%") & set(identity):
            assert_harmless(await text(page, f"/connectors/redis-stream/{quote(identity, safe='')}"))


async def test_a_mailbox_is_connected_step_by_step(setup: IntakeSetup, tmp_path: Path) -> None:
    """With a pasted answer, from an emulated Google over real HTTP."""
    async with running_google() as google:
        settings = load_settings({"data_dir": tmp_path}, environ=google.settings(), cwd=tmp_path)
        site = Site(Parts(settings, setup.database, setup.clock), "owner@example.org")
        whole = create_application(site, [ConnectPage(site)], allowed_hosts=("127.0.0.1",))
        transport = httpx2.ASGITransport(app=as_visitor(whole, visitor("admin")))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8025") as page:
            assert said_in(await submit(page, "/connectors/new/finish", {"answer": "x"})).mood == "bad"
            assert said_in(await submit(page, "/connectors/new/begin", {"level": "all"})).mood == "bad"
            await submit(page, "/connectors/new/begin", {"level": "organise", "email": ADA})
            shown = await text(page, "/connectors/new")
            link = re.search(r'class="btn primary" href="([^"]+)"', shown)
            assert link is not None
            address = link[1].replace("&amp;", "&")
            async with httpx2.AsyncClient(timeout=PATIENCE_S) as browser:
                ended_at = (await browser.get(address)).headers["location"]
            assert parse_qs(urlsplit(ended_at).query)["state"] == parse_qs(urlsplit(address).query)["state"]
            answer = await submit(page, "/connectors/new/finish", {"answer": ended_at})
            assert said_in(answer).mood == "good", said_in(answer).sentence
    (account,) = await list_accounts(setup.database)
    assert answer.headers["location"] == f"/start?account={account.id}", "a look at its mail comes next"
    assert (account.email, account.state) == (ADA, "active")
    assert (await setup.audited())[-1].startswith("account.")


async def test_a_request_for_consent_is_forgotten_after_ten_minutes(setup: IntakeSetup, tmp_path: Path) -> None:
    app = {"POSTROOM_GOOGLE_CLIENT_ID": "app", "POSTROOM_GOOGLE_CLIENT_SECRET": "x"}
    settings = load_settings({"data_dir": tmp_path}, environ=app, cwd=tmp_path)
    consents = PendingConsents(setup.database, settings, setup.clock)
    consents.begin("ann", None, "read")
    assert consents.of("bob") is None
    assert consents.of("ann") is not None
    setup.clock.forward(timedelta(minutes=10).total_seconds())
    assert consents.of("ann") is None

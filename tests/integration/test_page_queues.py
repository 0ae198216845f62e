"""The page of queues, on both databases: what waits, what ended unread, dismissals and replays."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import httpx2
import pytest

from postroom.core.queue.queues import Queues
from postroom.core.tally import Gauges
from postroom.operations.backfill.keeper import Keeper
from postroom.store.engine.database import Database
from support.attacks import ATTACKS, assert_harmless
from support.clocks import ManualClock
from support.intake_pages import IntakeSetup, said_in, visiting
from support.page_app import visitor
from support.page_forms import submit
from support.store.inbox_setup import event, kind, mail

LONG = timedelta(days=30)


@pytest.fixture
def setup(database: Database, tmp_path: Path, clock: ManualClock) -> IntakeSetup:
    return IntakeSetup(database, tmp_path, clock)


@pytest.fixture
async def page(setup: IntakeSetup) -> AsyncIterator[httpx2.AsyncClient]:
    async with visiting(setup) as client:
        yield client


async def text(page: httpx2.AsyncClient, address: str) -> str:
    answer = await page.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text


def row(shown: str, tier: str) -> list[str]:
    """The numbers in the line of a tier: waiting, in work, leased and overrides."""
    line = next(each for each in shown.split("<tr ") if f"</svg>{tier}</span>" in each and "Streak" in each)
    cells = dict(re.findall(r'data-l="([^"]+)">(?:<b>)?([^<]+)', line))
    return [cells[name] for name in ("Waiting", "In work", "Leased", "Overrides")]


async def test_each_tier_shows_what_waits_how_long_and_its_overrides(
    setup: IntakeSetup, page: httpx2.AsyncClient
) -> None:
    await setup.inbox.open_account()
    await setup.inbox.ingest(*(mail(number, "high_priority") for number in range(12)), mail("low"))
    setup.clock.forward(3)
    await setup.inbox.next(12, "email")
    shown = await text(page, "/queues")
    assert row(shown, "high priority") == ["1", "11", "11", "0"]
    assert row(shown, "default") == ["0", "1", "1", "1"]
    assert "≤ 4.1 s" in shown
    assert "words 11" in shown
    assert "/queues/dismiss" not in shown, "mail is not dismissed: Postroom itself processes it"


async def test_the_depth_over_time_comes_from_the_keepers_samples(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    assert "No samples in this window yet." in await text(page, "/queues?queue=gateway")
    inbox = setup.inbox
    keeper = Keeper(setup.database, Queues(), inbox.buffer, Gauges(), keep=LONG, keep_rollups=LONG, clock=setup.clock)
    await inbox.ingest(*(event(number) for number in range(7)))
    await keeper.sample_depths()
    await inbox.ingest(event("more"))
    await keeper.sample_depths()
    assert "P2: from 7 to 7, last 7" in await text(page, "/queues?queue=gateway&window=1h")


async def test_a_summary_opens_with_its_members_which_can_be_replayed(
    setup: IntakeSetup, page: httpx2.AsyncClient
) -> None:
    await setup.inbox.ingest(*(event(number, event=kind("test.run")) for number in range(3)))
    await setup.inbox.ack(await setup.inbox.next(1))
    shown = await text(page, "/queues?queue=gateway")
    opened = re.search(r'href="(/queues\?queue=gateway&amp;summary=[0-9a-f-]+)#summary"', shown)
    assert opened is not None
    shown = await text(page, opened[1].replace("&amp;", "&"))
    assert "One summary for 3 events" in shown
    members = re.findall(r'name="messages" value="([0-9a-f-]+)"', shown.split('id="summary"')[1].split("</section>")[0])
    assert len(members) == 3
    setup.clock.forward(1)
    answer = await submit(page, "/queues/replay", {"queue": "gateway", "messages": members})
    assert said_in(answer).sentence == "3 of 3 queued once more in gateway, as copies."
    assert (await setup.inbox.states()).count("waiting") == 3
    assert await setup.audited() == ["queue.replay"]


async def test_a_waiting_event_is_dismissed_and_replayed(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    one, two = await setup.inbox.ingest(event(1), event(2))
    fields = {"queue": "gateway", "messages": str(one.request_id)}
    assert said_in(await submit(page, "/queues/dismiss", fields)).sentence.startswith("1 of 1 dismissed")
    assert await setup.inbox.states() == ["auto_acked", "waiting"]
    shown = await text(page, "/queues?queue=gateway&ended=auto_acked")
    assert "dismissed by a person" in shown
    assert f'id="e-{one.request_id}"' in shown
    setup.clock.forward(1)
    await submit(page, "/queues/replay", fields)
    assert (await setup.inbox.next_ids())[0] == two.request_id
    assert await setup.audited() == ["queue.dismiss", "queue.replay"]


async def test_what_ended_is_paged_by_key(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    made = await setup.inbox.ingest(*(event(number, event=kind("test.run")) for number in range(25)))
    setup.clock.forward(61)
    await setup.inbox.next(1)
    first = await text(page, "/queues?queue=gateway&ended=auto_acked")
    older = re.search(r'href="([^"]+before=\d+[^"]*)#ended" rel="next"', first)
    assert older is not None
    rest = await text(page, older[1].replace("&amp;", "&"))
    found = re.findall(r'id="e-([0-9a-f-]+)"', first + rest)
    assert found == [str(each.request_id) for each in reversed(made)]
    assert "25 auto-acked" in first


async def test_what_makes_no_sense_is_refused_with_words(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    await setup.inbox.open_account()
    (waiting,) = await setup.inbox.ingest(mail(1))
    for address, status, words in (
        ("/queues?queue=nowhere", 400, "choose one of: email, gateway"),
        ("/queues?ended=never", 400, "choose one of"),
        ("/queues?before=x", 400, "no number"),
        ("/queues?summary=x", 400, "no id"),
        (f"/queues?summary={uuid4()}", 404, "there is no summary"),
    ):
        answer = await page.get(address)
        assert (address, answer.status_code) == (address, status)
        assert words in answer.text
    for address, fields, words in (
        ("/queues/dismiss", {"queue": "email", "messages": str(waiting.request_id)}, "processed by Postroom itself"),
        ("/queues/dismiss", {"queue": "nowhere", "messages": str(waiting.request_id)}, "There is no queue"),
        ("/queues/dismiss", {"queue": "gateway"}, "Choose at least one"),
        ("/queues/replay", {"queue": "gateway", "messages": "x"}, "no id"),
    ):
        said = said_in(await submit(page, address, fields))
        assert said.mood == "bad"
        assert words in said.sentence
    assert await setup.inbox.states() == ["waiting"]


async def test_a_viewer_sees_no_button_and_may_press_none(setup: IntakeSetup) -> None:
    (waiting,) = await setup.inbox.ingest(event(1))
    async with visiting(setup, visitor("viewer")) as page:
        assert "/queues/dismiss" not in await text(page, "/queues?queue=gateway")
        for address in ("/queues/dismiss", "/queues/replay"):
            answer = await submit(page, address, {"queue": "gateway", "messages": str(waiting.request_id)})
            assert answer.status_code == 403
    assert await setup.inbox.states() == ["waiting"]


def _identity(attack: str) -> str:
    """The attack as far as a name may have it."""
    return re.sub(r"[\x00-\x1f\x7f]", "", attack)[:500]


async def test_hostile_events_are_shown_as_text(setup: IntakeSetup, page: httpx2.AsyncClient) -> None:
    storable = [attack.replace("\0", "").encode("utf-8", "replace").decode() for attack in ATTACKS]
    for number, attack in enumerate(storable):
        parts = {"payload": {"normalized_text": attack}, "sender": {"identity": _identity(attack)}}
        await setup.inbox.ingest(event(f"a{number}", **parts), event(f"t{number}", event=kind("test.x"), **parts))
    assert_harmless(await text(page, "/queues?queue=gateway"))
    await setup.inbox.next(30)
    shown = await text(page, "/queues?queue=gateway")
    assert_harmless(shown)
    opened = re.search(r"summary=([0-9a-f-]+)", shown)
    assert opened is not None
    assert_harmless(await text(page, f"/queues?queue=gateway&summary={opened[1]}"))
    setup.clock.forward(3600)
    await setup.inbox.ingest(
        *(event(f"l{n}", event=kind("test.y"), payload={"normalized_text": each}) for n, each in enumerate(storable))
    )
    setup.clock.forward(3600)
    await setup.inbox.next(1)
    assert_harmless(await text(page, "/queues?queue=gateway&ended=auto_acked"))

"""The sample of a backfill: a real connector counts and judges mail of a real emulator, and returns numbers only."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import MailboxError
from postroom.core.mail.categories import CATEGORIES, queries_of
from postroom.core.mail.ingestion import BULK_PACK, IngestionPolicy, parse_rule
from postroom.mailboxes.backfill import sample as backfill_sample
from postroom.mailboxes.backfill.sample import spread
from postroom.mailboxes.following.request_handlers import RequestHandlers, RequestTookTooLong
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.quota import Quota
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.faults import Fault
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.product import ENDPOINT, OWNER, TOKEN, raw_mail

NO_SHOP = parse_rule({"number": 1, "name": "no", "kind": "sender_domain", "value": "shop.example", "tier": "skip"})


@pytest.fixture
async def setup(sqlite: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    await sqlite.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    async with gmail_setup(sqlite, clock, tmp_path / "state") as found:
        yield found


def handlers(setup: GmailSetup, quota: Quota | None = None) -> RequestHandlers:
    async def token() -> str:
        return TOKEN

    return RequestHandlers(setup.connector(), GmailClient(setup.http, setup.address, token, quota=quota))


def deliver(setup: GmailSetup, count: int, subject: str, days_ago: int = 30, labels: Any = (), **headers: str) -> None:
    """Mail received one hour after the other, so many days ago."""
    first = setup.clock() - timedelta(days=days_ago)
    for number in range(count):
        raw = raw_mail(f"{subject} {number}", **headers)
        received = first + timedelta(hours=number)
        setup.mailbox.deliver(raw, labels or {"INBOX"}, received_at=received)


def days(setup: GmailSetup, since: int, until: int) -> dict[str, str]:
    today = setup.clock().date()
    first, last = today - timedelta(days=since), today - timedelta(days=until)
    return {"date_from": first.isoformat(), "date_to": last.isoformat()}


async def sampled(setup: GmailSetup, *categories: str, since: int = 365, until: int = 1) -> dict[str, Any]:
    arguments = {"categories": list(categories), **days(setup, since, until)}
    return dict(await handlers(setup).backfill_sample(arguments))


async def test_the_sample_is_judged_as_a_backfill_would(setup: GmailSetup):
    setup.policy = lambda: IngestionPolicy([NO_SHOP, *BULK_PACK])
    deliver(setup, 8, "invoice")
    deliver(setup, 5, "invoice number 7", List_Unsubscribe="<https://x.example>")
    deliver(setup, 4, "invoice number 7", sender="a@shop.example")
    deliver(setup, 3, "invoice", labels={"SENT"})
    deliver(setup, 7, "lunch")
    deliver(setup, 6, "invoice", days_ago=400)
    found = await sampled(setup, "finance")
    assert found["total"] == {"counted": 27, "about": 27}
    assert found["candidates"] == found["categories"]["finance"] == {"counted": 20, "about": 20}
    assert found["sample"] == {"read": 20, "in_category": 17, "full": 8, "metadata": 5, "skipped": 4}


async def test_categories_are_counted_each_and_together(setup: GmailSetup):
    deliver(setup, 4, "invoice")
    deliver(setup, 3, "boarding pass")
    deliver(setup, 2, "invoice for your hotel")
    found = await sampled(setup, "finance", "travel")
    counted = {name: count["counted"] for name, count in found["categories"].items()}
    assert counted == {"finance": 6, "travel": 5}
    assert found["candidates"]["counted"] == 9
    assert found["queries"] == sum(len(queries_of([CATEGORIES[name]], "mara@x.example")) for name in counted)
    assert found["sample"]["full"] == 9


async def test_it_returns_numbers_and_ingests_nothing(setup: GmailSetup):
    deliver(setup, 3, "invoice of a secret", sender="spy@x.example")
    text = json.dumps(await sampled(setup, "finance"))
    assert "secret" not in text
    assert "spy" not in text
    assert await setup.waiting() == {}


async def test_both_end_days_count_and_the_days_beside_them_do_not(setup: GmailSetup):
    start = setup.clock().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=10)
    for moment in (
        start - timedelta(seconds=1),
        start,
        start + timedelta(days=3, seconds=-1),
        start + timedelta(days=3),
    ):
        setup.mailbox.deliver(raw_mail("invoice"), received_at=moment)
    found = await sampled(setup, "finance", since=10, until=8)
    assert found["sample"]["in_category"] == 2


async def test_an_empty_window_is_counted_as_empty(setup: GmailSetup):
    found = await sampled(setup, "finance", "health")
    assert found["candidates"] == {"counted": 0, "about": 0}
    assert found["sample"] == {"read": 0, "in_category": 0, "full": 0, "metadata": 0, "skipped": 0}


async def test_a_list_too_long_to_count_is_guessed_from_how_far_it_reaches(
    setup: GmailSetup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backfill_sample, "PAGE", 20)
    monkeypatch.setattr(backfill_sample, "MOST_PAGES", 5)
    for number in range(400):
        received = setup.clock() - timedelta(days=2 + 2 * number)
        setup.mailbox.deliver(raw_mail(f"invoice {number}"), received_at=received)
    found = await sampled(setup, "finance", since=20_000)
    for count in (found["candidates"], found["total"]):
        assert count["counted"] == 100
        assert 360 <= count["about"] <= 440


async def test_without_time_for_a_sample_the_counts_are_still_there(setup: GmailSetup, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backfill_sample, "SAMPLES_UNTIL_S", 0.0)
    deliver(setup, 3, "invoice")
    found = await sampled(setup, "finance")
    assert found["candidates"] == {"counted": 3, "about": 3}
    assert found["sample"]["read"] == 0


async def test_without_time_to_list_anything_it_says_how_long_it_waited(
    setup: GmailSetup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backfill_sample, "LISTS_FOR_S", 0.0)
    deliver(setup, 3, "invoice")
    with pytest.raises(RequestTookTooLong, match=r"not done after \d s, .* try again later"):
        await sampled(setup, "finance")


async def test_a_message_that_fails_is_left_out_and_a_mailbox_that_fails_is_reported(setup: GmailSetup):
    ids = [setup.mailbox.deliver(raw_mail("invoice"), received_at=setup.clock() - timedelta(days=9)).id for _ in "abc"]
    setup.emulator.faults.order(Fault(503, path=ids[1], times=1))
    assert (await sampled(setup, "finance"))["sample"]["read"] == 2
    setup.emulator.faults.order(Fault(503, method="messages.list", times=100))
    with pytest.raises(MailboxError):
        await sampled(setup, "finance")


def test_a_sample_is_spread_evenly_and_so_is_each_batch_of_it():
    ids = [f"{number:05}" for number in range(10_000)]
    chosen = spread(ids, 200)
    assert len(set(chosen)) == 200
    assert sorted(chosen) == ids[::50]
    for start in range(0, 200, 25):
        batch = sorted(int(id) for id in chosen[start : start + 25])
        steps = {after - before for before, after in pairwise(batch)}
        assert steps == {400}


@pytest.mark.parametrize("count", [0, 1, 24, 25, 26, 199, 200])
def test_a_small_list_is_sampled_whole(count: int):
    ids = [f"{number}" for number in range(count)]
    assert sorted(spread(ids, 200)) == sorted(ids)

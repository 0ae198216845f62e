"""Requests to a Gmail connector: named messages are ingested, searches are counted and listed."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import BadInput
from postroom.core.mail.ingestion import IngestionPolicy, parse_rule
from postroom.mailboxes.following import request_handlers as asked
from postroom.mailboxes.following.refused import refused_in
from postroom.mailboxes.following.request_handlers import RequestHandlers
from postroom.mailboxes.following.set_aside import ROUNDS, set_aside_in
from postroom.mailboxes.gmail.client import GmailClient
from postroom.mailboxes.gmail.errors import GmailError, ServerError
from postroom.mailboxes.gmail.quota import Quota, Ticket
from postroom.mailboxes.gmail.terms import Use
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.long_poll import LONGEST_WAIT
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom.triage.handlers.asking import PATIENCE
from postroom_sandbox.faults import Fault
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.patience import PATIENCE_S
from support.product import ENDPOINT, OWNER, TOKEN, raw_mail
from support.switchboard import mail


@pytest.fixture
async def setup(sqlite: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    await sqlite.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    async with gmail_setup(sqlite, clock, tmp_path / "state") as found:
        yield found


def request_handlers(setup: GmailSetup) -> RequestHandlers:
    async def token() -> str:
        return TOKEN

    return RequestHandlers(setup.connector(), GmailClient(setup.http, setup.address, token))


async def ends(setup: GmailSetup, *ids: str) -> dict[str, Any]:
    answer = await request_handlers(setup).ingest({"message_ids": list(ids)})
    json.dumps(answer)
    return {each["id"]: (each["end"], each["reason"]) for each in answer["messages"]}


async def test_named_messages_are_ingested_and_each_tells_how_it_ended(setup: GmailSetup, clock: ManualClock):
    rule = parse_rule({"number": 1, "name": "no", "kind": "sender_domain", "value": "spam.example", "tier": "skip"})
    setup.policy = lambda: IngestionPolicy([rule])
    old = setup.mailbox.deliver(raw_mail("old"), received_at=clock() - timedelta(days=400)).id
    known = setup.mailbox.deliver(raw_mail("known")).id
    await setup.connector().sync()
    skipped = setup.mailbox.deliver(raw_mail("no", sender="a@spam.example")).id
    failing = setup.mailbox.deliver(raw_mail("failing")).id
    setup.emulator.faults.order(Fault(503, path=failing, times=2))
    told = await ends(setup, old, known, skipped, "18c0ffee", failing, old)
    assert told == {
        old: ("new", None),
        known: ("duplicate", None),
        skipped: ("skipped", "an ingestion rule leaves it out"),
        "18c0ffee": ("gone", None),
        failing: ("failed", "ServerError: 503"),
    }
    assert set(await setup.waiting()) == {old, known}


async def test_one_that_was_refused_is_refused_once_and_leaves_the_list_when_it_succeeds(setup: GmailSetup):
    id = setup.mailbox.deliver(raw_mail("hello")).id
    setup.emulator.faults.order(Fault(kind="missing_fields", fields=("internalDate",), path=id, times=10_000))
    await setup.connector().sync()
    assert await ends(setup, id) == {id: ("refused", "BadAnswer")}
    assert [each.id for each in refused_in(setup.folder)] == [id]
    assert setup.health.counters["refused"] == 1
    setup.emulator.faults.clear()
    assert await ends(setup, id) == {id: ("new", None)}
    assert refused_in(setup.folder) == []
    assert setup.health.counters["refused"] == 0


async def test_one_that_was_refused_stays_on_the_list_while_it_is_spam(setup: GmailSetup):
    id = setup.mailbox.deliver(raw_mail("hello")).id
    setup.emulator.faults.order(Fault(kind="missing_fields", fields=("internalDate",), path=id, times=10_000))
    await setup.connector().sync()
    setup.emulator.faults.clear()
    setup.mailbox.modify(id, add=["SPAM"], remove=["INBOX"])
    assert await ends(setup, id) == {id: ("skipped", "it is not incoming mail")}
    assert [each.id for each in refused_in(setup.folder)] == [id]
    setup.mailbox.modify(id, add=["INBOX"], remove=["SPAM"])
    assert await ends(setup, id) == {id: ("new", None)}
    assert refused_in(setup.folder) == []


async def test_what_the_switchboard_refuses_tells_why(setup: GmailSetup):
    id = setup.mailbox.deliver(raw_mail("hello")).id
    source = {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT}
    forged = mail(source=source, event={"external_event_id": id}, sender={"identity": "mallory@example.com"})
    await setup.services.intake.ingest(forged)
    [(end, reason)] = (await ends(setup, id)).values()
    assert end == "refused"
    assert reason


async def test_one_that_is_set_aside_is_tried_at_once_when_it_is_asked_for(setup: GmailSetup):
    setup.mailbox.deliver(raw_mail("the oldest, which a look back reads for its date too"))
    id = setup.mailbox.deliver(raw_mail("stubborn")).id
    for number in range(9):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    setup.emulator.faults.order(Fault(503, path=id, times=ROUNDS + 1))
    connector = setup.connector()
    for _ in range(ROUNDS - 1):
        with pytest.raises(ServerError):
            await connector.sync()
    await connector.sync()
    assert await ends(setup, id) == {id: ("failed", "ServerError: 503")}
    assert [each.tries for each in set_aside_in(setup.folder)] == [1]
    assert await ends(setup, id) == {id: ("new", None)}
    assert set_aside_in(setup.folder) == []


async def test_when_gmail_is_away_the_request_fails_as_a_whole(setup: GmailSetup):
    id = setup.mailbox.deliver(raw_mail("hello")).id
    setup.emulator.faults.order(Fault(kind="reset", path="/batch", times=10))
    with pytest.raises(GmailError):
        await ends(setup, id)


async def test_a_look_now_tells_how_much_was_new(setup: GmailSetup):
    setup.mailbox.deliver(raw_mail("hello"))
    assert await request_handlers(setup).sync_now({}) == {"new": 1}


async def test_a_look_that_takes_longer_than_anyone_waits_says_that_it_goes_on(
    setup: GmailSetup, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(asked, "LOOKS_FOR_S", 0.0)
    assert await request_handlers(setup).sync_now({}) == {"new": 0, "still_looking": True}


async def test_what_a_search_finds_is_counted(setup: GmailSetup, monkeypatch: pytest.MonkeyPatch):
    for number in range(7):
        setup.mailbox.deliver(raw_mail(f"invoice {number}"))
    setup.mailbox.deliver(raw_mail("other"))
    told = await request_handlers(setup).estimate({"query": "subject:invoice"})
    assert (told["messages"], told["exact"]) == (7, True)
    assert told["estimate"] >= 7
    monkeypatch.setattr(asked, "PAGE", 2)
    monkeypatch.setattr(asked, "MOST_PAGES", 2)
    told = await request_handlers(setup).estimate({"query": " subject:invoice "})
    assert (told["messages"], told["exact"]) == (4, False)
    assert await request_handlers(setup).estimate({"query": "subject:nothing"}) == {
        "messages": 0,
        "exact": True,
        "estimate": 0,
    }


async def test_what_a_search_finds_is_listed_to_choose_from(setup: GmailSetup, clock: ManualClock):
    old = clock() - timedelta(days=400)
    message = setup.mailbox.deliver(
        raw_mail("=?utf-8?q?Caf=C3=A9?= invoice", sender="Ida <ida@x.example>"), received_at=old
    )
    for number in range(4):
        setup.mailbox.deliver(raw_mail(f"invoice {number}"), received_at=clock() - timedelta(hours=4 - number))
    told = await request_handlers(setup).search({"query": "subject:invoice", "max": 4})
    assert [each["subject"] for each in told["messages"]] == [f"invoice {number}" for number in (3, 2, 1, 0)]
    assert told["more"] is True
    told = await request_handlers(setup).search({"query": "from:ida@x.example"})
    (found,) = told["messages"]
    assert told["more"] is False
    assert (found["id"], found["thread_id"], found["date"]) == (message.id, message.thread_id, old.isoformat())
    assert (found["from"], found["subject"]) == ("Ida <ida@x.example>", "Café invoice")
    assert await setup.waiting() == {}, "what is only listed is not taken in"


class Noting(Quota):
    """A quota that writes down which calls were admitted, and for what use."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[str, str]] = []

    @asynccontextmanager
    async def admitted(self, call: str, units: int, use: Use = "live") -> AsyncGenerator[Ticket]:
        self.noted.append((call, use))
        async with super().admitted(call, units, use) as ticket:
            yield ticket


async def test_counting_and_listing_leave_live_mail_its_share_of_the_quota(setup: GmailSetup):
    async def token() -> str:
        return TOKEN

    quota = Noting()
    bulk = RequestHandlers(setup.connector(), GmailClient(setup.http, setup.address, token, quota=quota))
    setup.mailbox.deliver(raw_mail("invoice"))
    await bulk.estimate({"query": "subject:invoice"})
    await bulk.search({"query": "subject:invoice"})
    assert quota.noted == [("messages.list", "bulk"), ("messages.list", "bulk"), ("batch", "bulk")]


async def test_one_that_cannot_be_read_hides_no_others_in_a_list(setup: GmailSetup):
    ids = [setup.mailbox.deliver(raw_mail(f"invoice {number}")).id for number in range(3)]
    setup.emulator.faults.order(Fault(503, path=ids[1], times=1))
    told = await request_handlers(setup).search({"query": "subject:invoice"})
    assert {each["id"] for each in told["messages"]} == {ids[0], ids[2]}
    setup.emulator.faults.order(Fault(503, method="messages.get", times=3))
    with pytest.raises(ServerError):
        await request_handlers(setup).search({"query": "subject:invoice"})


def test_everything_is_done_or_given_up_while_whoever_asks_still_waits():
    assert max(asked.LOOKS_FOR_S, asked.WORKS_FOR_S) < min(PATIENCE, LONGEST_WAIT).total_seconds()


async def test_what_takes_too_long_ends_before_its_lease(setup: GmailSetup, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(asked, "WORKS_FOR_S", 0.0)
    with pytest.raises(asked.RequestTookTooLong, match="try again later"):
        await request_handlers(setup).search({"query": "subject:invoice"})


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("sync_now", {"deep": True}, "deep", "known are: none"),
    ("ingest", {}, "message_ids", "1 to 100 ids"),
    ("ingest", {"message_ids": []}, "message_ids", "1 to 100 ids"),
    ("ingest", {"message_ids": "18c0"}, "message_ids", "a list"),
    ("ingest", {"message_ids": ["a"] * 101}, "message_ids", "1 to 100"),
    ("ingest", {"message_ids": ["18c0", "../labels"]}, "message_ids.1", "as a search lists them"),
    ("ingest", {"message_ids": [7]}, "message_ids.0", "as a search lists them"),
    ("ingest", {"message_id": ["18c0"]}, "message_id", "did you mean message_ids?"),
    ("estimate", {}, "query", "Gmail's own search box"),
    ("estimate", {"query": " "}, "query", "Gmail's own search box"),
    ("estimate", {"query": "x", "max": 3}, "max", "known are: query"),
    ("search", {"query": "a\nb"}, "query", "on one line"),
    ("search", {"query": "x" * 1001}, "query", "1 to 1,000"),
    ("search", {"query": ["x"]}, "query", "Gmail's own search box"),
    ("search", {"query": "x", "max": 51}, "max", "1 to 50"),
    ("search", {"query": "x", "max": 0}, "max", "1 to 50"),
    ("search", {"query": "x", "max": True}, "max", "1 to 50"),
    ("search", {"quer": "x"}, "quer", "did you mean query?"),
]


async def test_arguments_that_are_invalid_are_refused(setup: GmailSetup):
    handlers = request_handlers(setup).handlers()
    for kind, arguments, field, remedy in REFUSED:
        with pytest.raises(BadInput) as refused:
            await handlers[kind](arguments)
        assert refused.value.field == field
        assert remedy in refused.value.remedy, arguments
    assert setup.calls.total() == 0


async def test_a_round_under_way_holds_up_nobody_who_asks(setup: GmailSetup):
    """The connector's own rounds never overlap, and may take many minutes."""
    id = setup.mailbox.deliver(raw_mail("hello")).id
    connector = setup.connector()
    async with connector._one_at_a_time, asyncio.timeout(PATIENCE_S):  # pyright: ignore[reportPrivateUsage]
        assert (await connector.ingest([id]))[id].end == "new"

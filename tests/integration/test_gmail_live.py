"""Live sync from a mailbox to the switchboard: what is delivered, what is skipped, reports, and recovery."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.core.errors import Refused, SwitchboardUnavailable
from postroom.core.mail.ingestion import DEFAULT_POLICY, IngestionPolicy, parse_rule
from postroom.core.metrics import KNOWN_CONTACT_DEGRADED, TIER_1_INGESTED, TIER_2_METADATA, TIER_3_SKIPPED
from postroom.mailboxes.gmail.errors import EndlessPages, GmailError, RateLimited, ServerError, Unreachable
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.opening import open_database
from postroom.store.mail.mail import keep_account
from postroom.system.wall_clock import wall_clock
from postroom_sandbox.faults import Fault
from support.clocks import ManualClock
from support.gmail_setup import GmailSetup, gmail_setup
from support.product import ENDPOINT, OWNER, raw_mail
from support.switchboard import mail

FRIEND = "ida@lindqvist.example"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path, None)
    await opened.run(keep_account(new_id(), "gmail", ENDPOINT, OWNER, wall_clock()))
    yield opened
    await opened.close()


@pytest.fixture
async def setup(database: Database, clock: ManualClock, tmp_path: Path) -> AsyncIterator[GmailSetup]:
    async with gmail_setup(database, clock, tmp_path / "state") as found:
        yield found


async def test_the_first_look_takes_the_last_seven_days_and_nothing_older(setup: GmailSetup, clock: ManualClock):
    old = setup.mailbox.deliver(raw_mail("old"), received_at=clock() - timedelta(days=8)).id
    ids = {setup.mailbox.deliver(raw_mail(f"{n}"), received_at=clock() - timedelta(days=n)).id for n in range(7)}
    assert await setup.connector().sync() == 7
    assert set(await setup.waiting()) == ids
    assert old not in ids
    assert setup.health.counters["look_back.messages"] == 7
    assert setup.health.cursor is not None


async def test_the_first_look_reaches_back_to_the_time_from_which_its_owner_wants_mail_acted_on(
    setup: GmailSetup, clock: ManualClock
):
    """The owner said "the last 7 days" two days ago, and nothing has run since."""
    chosen = clock() - timedelta(days=9)
    setup.mailbox.deliver(raw_mail("older"), received_at=chosen - timedelta(hours=1))
    inside = setup.mailbox.deliver(raw_mail("inside"), received_at=chosen + timedelta(hours=1)).id
    assert await setup.connector(acts_from=chosen).sync() == 1
    assert set(await setup.waiting()) == {inside}


async def test_the_first_look_delivers_the_newest_first(setup: GmailSetup, clock: ManualClock):
    for number in range(60):
        setup.mailbox.deliver(raw_mail(f"{number}"), received_at=clock() - timedelta(hours=number))
    await setup.connector().sync()
    leased = await setup.services.buffer.next("email", 60)
    subjects = [int(dict(each.envelope["payload"]["raw"]["headers"])["Subject"]) for each in leased]
    assert subjects == list(range(60))


@pytest.mark.parametrize("count", [1, 100])
async def test_mail_that_the_search_does_not_find_yet_is_not_missed_and_read_once(
    database: Database, clock: ManualClock, tmp_path: Path, count: int
):
    async with gmail_setup(database, clock, tmp_path / "state", search_lag=timedelta(minutes=5)) as setup:
        setup.mailbox.deliver(raw_mail("indexed"), received_at=clock() - timedelta(hours=1))
        for number in range(count):
            setup.mailbox.deliver(raw_mail(f"{number}"))
        assert await setup.connector().sync() == 1 + count
        assert setup.calls["messages.get"] == 1 + count + 1, "each once, and the date of the last"


async def test_an_old_mailbox_in_which_nothing_has_come_lately_is_left_as_it_is(setup: GmailSetup, clock: ManualClock):
    for number in range(30):
        setup.mailbox.deliver(raw_mail(f"{number}"), received_at=clock() - timedelta(days=400 + number))
    assert await setup.connector().sync() == 0
    assert await setup.waiting() == {}


async def test_fresh_mail_is_found_in_an_old_mailbox_even_before_the_search_does(
    database: Database, clock: ManualClock, tmp_path: Path
):
    async with gmail_setup(database, clock, tmp_path / "state", search_lag=timedelta(minutes=5)) as setup:
        setup.mailbox.deliver(raw_mail("old"), received_at=clock() - timedelta(days=400))
        fresh = setup.mailbox.deliver(raw_mail("just now")).id
        assert await setup.connector().sync() == 1
        assert set(await setup.waiting()) == {fresh}


@pytest.mark.parametrize("days", [3650, -3650])
async def test_a_wrong_clock_here_hides_no_mail(setup: GmailSetup, days: int):
    setup.clock = ManualClock()
    setup.clock.forward(days * 86400)
    setup.mailbox.deliver(raw_mail("hello"))
    connector = setup.connector()
    assert await connector.sync() == 1
    setup.mailbox.deliver(raw_mail("again"))
    assert await connector.sync() == 1
    setup.mailbox.deliver(raw_mail("and again"))
    setup.mailbox.expire_history()
    assert await connector.sync() == 1


async def test_what_arrives_later_is_found_by_following_and_each_message_is_read_once(setup: GmailSetup):
    connector = setup.connector()
    await connector.sync()
    for number in range(30):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    assert await connector.sync() == 30
    assert await connector.sync() == 0
    assert setup.calls["messages.get"] == 30


async def test_drafts_spam_and_trash_are_not_mail_until_they_become_it(setup: GmailSetup):
    connector = setup.connector()
    await connector.sync()
    setup.mailbox.deliver(raw_mail("draft", sender=OWNER), ["DRAFT"])
    spam = setup.mailbox.deliver(raw_mail("spam?"), ["SPAM"]).id
    trash = setup.mailbox.deliver(raw_mail("trash"), ["TRASH"]).id
    assert await connector.sync() == 0
    assert setup.calls["messages.get"] == 0
    setup.mailbox.modify(spam, add=["INBOX"], remove=["SPAM"])
    assert await connector.sync() == 1
    assert set(await setup.waiting()) == {spam}
    assert trash not in await setup.waiting()


async def test_sent_mail_is_learned_from_and_not_delivered(setup: GmailSetup):
    connector = setup.connector()
    await connector.sync()
    setup.mailbox.deliver(
        raw_mail("to a friend", sender=OWNER, to=f"Ida <{FRIEND}>, {OWNER}", Message_ID="<sent@lindqvist.example>"),
        ["SENT"],
    )
    reply = setup.mailbox.deliver(raw_mail("Re: to a friend", In_Reply_To="<sent@lindqvist.example>")).id
    assert await connector.sync() == 1
    arrived = await setup.waiting()
    assert arrived[reply]["control"]["policy_tier"] == "high_priority"
    assert "<sent@lindqvist.example>" in setup.sent
    assert setup.board.people == [FRIEND]


async def test_on_the_first_look_a_reply_is_known_although_it_is_newer_than_what_it_replies_to(
    setup: GmailSetup, clock: ManualClock
):
    long_ago = clock() - timedelta(days=3)
    setup.mailbox.deliver(raw_mail("question", sender=OWNER, Message_ID="<q@x.example>"), ["SENT"], long_ago)
    for number in range(40):
        setup.mailbox.deliver(raw_mail(f"{number}"), received_at=clock() - timedelta(days=2))
    reply = setup.mailbox.deliver(raw_mail("answer", In_Reply_To="<q@x.example>")).id
    await setup.connector().sync()
    assert (await setup.waiting())[reply]["control"]["policy_tier"] == "high_priority"


async def test_what_the_user_writes_to_themselves_is_mail(setup: GmailSetup):
    note = setup.mailbox.deliver(raw_mail("note to self", sender=OWNER), ["SENT", "INBOX", "UNREAD"]).id
    assert await setup.connector().sync() == 1
    assert set(await setup.waiting()) == {note}


async def test_a_known_contact_goes_first_and_without_contacts_it_is_reported(setup: GmailSetup):
    setup.contacts = lambda: frozenset({FRIEND})
    connector = setup.connector()
    known = setup.mailbox.deliver(raw_mail("hi", sender=f"Ida <{FRIEND.upper()}>")).id
    await connector.sync()
    assert (await setup.waiting())[known]["control"]["policy_tier"] == "high_priority"
    setup.contacts = lambda: None
    connector = setup.connector()
    unknown = setup.mailbox.deliver(raw_mail("hi again", sender=FRIEND)).id
    await connector.sync()
    assert (await setup.waiting())[unknown]["control"]["policy_tier"] == "interactive"
    assert setup.tally.counts_of(KNOWN_CONTACT_DEGRADED) == {("gmail", ENDPOINT): 1}
    assert setup.health.counters["known_contact_degraded"] == 1


async def test_the_policy_decides_how_much_is_ingested(setup: GmailSetup):
    rule = parse_rule({"number": 1, "name": "no", "kind": "sender_domain", "value": "spam.example", "tier": "skip"})
    setup.policy = lambda: IngestionPolicy([rule, *DEFAULT_POLICY.rules])
    whole = setup.mailbox.deliver(raw_mail("whole")).id
    gist = setup.mailbox.deliver(raw_mail("gist", List_Unsubscribe="<https://x.example>")).id
    setup.mailbox.deliver(raw_mail("nothing", sender="a@spam.example"))
    assert await setup.connector().sync() == 2
    arrived = await setup.waiting()
    assert set(arrived) == {whole, gist}
    assert arrived[whole]["payload"]["normalized_text"] == "Hello."
    payload = arrived[gist]["payload"]
    assert (payload["raw"], payload["normalized_text"], payload["attachments"]) == (None, "gist", [])
    assert ["List-Unsubscribe", "<https://x.example>"] in payload["metadata"]["headers"]
    counted = [setup.tally.counts_of(each) for each in (TIER_1_INGESTED, TIER_2_METADATA, TIER_3_SKIPPED)]
    assert counted == [{("gmail", ENDPOINT): 1}] * 3
    assert await setup.connector().sync() == 0
    assert setup.calls["messages.get"] == 3 + 1, "what was skipped is not read again"


async def test_labels_and_deletions_are_reported_and_what_was_just_read_is_not(setup: GmailSetup):
    connector = setup.connector()
    ids = [setup.mailbox.deliver(raw_mail(f"{number}")).id for number in range(3)]
    await connector.sync()
    new = setup.mailbox.deliver(raw_mail("new")).id
    setup.mailbox.modify(new, add=["STARRED"])
    setup.mailbox.modify(ids[0], remove=["UNREAD"])
    setup.mailbox.modify(ids[0], add=["UNREAD"])
    setup.mailbox.modify(ids[0], add=["STARRED"], remove=["INBOX"])
    setup.mailbox.delete(ids[1])
    await connector.sync()
    told = {each.pop("message_id"): each for each in setup.board.reports}
    assert told == {
        ids[0]: {"labels_added": ["STARRED", "UNREAD"], "labels_removed": ["INBOX"], "deleted": False},
        ids[1]: {"labels_added": [], "labels_removed": [], "deleted": True},
    }
    assert "STARRED" in (await setup.waiting())[new]["payload"]["raw"]["labels"]


async def test_mail_that_is_gone_before_it_is_read_holds_up_nobody(setup: GmailSetup):
    connector = setup.connector()
    await connector.sync()
    setup.emulator.faults.order(Fault(404, "notFound", method="messages.get", times=1))
    for number in range(3):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    assert await connector.sync() == 2
    assert await connector.sync() == 0


async def test_history_that_has_expired_is_looked_at_again_without_reading_anything_twice(setup: GmailSetup):
    connector = setup.connector()
    for number in range(20):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    assert await connector.sync() == 20
    late = [setup.mailbox.deliver(raw_mail(f"late {number}")).id for number in range(5)]
    setup.mailbox.expire_history()
    assert await connector.sync() == 5
    assert set(late) <= set(await setup.waiting())
    assert setup.calls["messages.get"] == 25 + 2, "each once, and the date of the last in both looks back"
    setup.mailbox.deliver(raw_mail("after"))
    assert await connector.sync() == 1


async def test_after_a_long_absence_it_looks_back_to_where_it_was(setup: GmailSetup, clock: ManualClock):
    connector = setup.connector()
    await connector.sync()
    clock.forward(20 * 86400)
    missed = setup.mailbox.deliver(raw_mail("missed"), received_at=clock() - timedelta(days=15)).id
    setup.mailbox.expire_history()
    assert await connector.sync() == 1
    assert set(await setup.waiting()) == {missed}


async def test_a_look_back_that_is_interrupted_goes_on_where_it_was(setup: GmailSetup, clock: ManualClock):
    for number in range(60):
        setup.mailbox.deliver(raw_mail(f"{number}"), received_at=clock() - timedelta(minutes=number))
    setup.emulator.faults.order(Fault(kind="reset", path="/batch", times=2))
    with pytest.raises(Unreachable):
        await setup.connector().sync()
    setup.emulator.faults.order(Fault(503, method="messages.get", times=3))
    with pytest.raises(ServerError):
        await setup.connector().sync()
    between = setup.mailbox.deliver(raw_mail("between")).id
    await setup.connector().sync()
    await setup.connector().sync()
    arrived = await setup.waiting()
    assert len(arrived) == 61
    assert between in arrived
    # Three were refused, one told a date, and nine that had come before the refusal were read again as a test.
    assert setup.calls["messages.get"] == 61 + 3 + 1 + 9, "something was read twice"


async def test_page_tokens_that_lead_in_a_circle_lose_nothing(setup: GmailSetup, clock: ManualClock):
    connector = setup.connector()
    await connector.sync()
    for number in range(520):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    setup.emulator.faults.order(Fault(kind="loop_pages", method="history.list", times=2))
    with pytest.raises(EndlessPages):
        await connector.sync()
    await connector.sync()
    assert setup.health.counters["ingested"] == 520


@pytest.mark.parametrize("kind", ["reset", "drop_reply", "truncate"])
@pytest.mark.parametrize(("path", "times"), [("/history", 1), ("/batch", 2)])
async def test_a_broken_connection_costs_a_round_and_no_mail(setup: GmailSetup, kind: Any, path: str, times: int):
    connector = setup.connector()
    await connector.sync()
    ids = {setup.mailbox.deliver(raw_mail(f"{number}")).id for number in range(5)}
    setup.emulator.faults.order(Fault(kind=kind, path=path, times=times))
    with pytest.raises(GmailError):
        await connector.sync()
    assert await connector.sync() == 5
    assert set(await setup.waiting()) == ids


@pytest.mark.parametrize("kind", ["reset", "drop_reply", "truncate"])
async def test_a_connection_that_breaks_once_while_messages_are_read_costs_no_round(setup: GmailSetup, kind: Any):
    connector = setup.connector()
    await connector.sync()
    ids = {setup.mailbox.deliver(raw_mail(f"{number}")).id for number in range(5)}
    setup.emulator.faults.order(Fault(kind=kind, path="/batch", times=1))
    assert await connector.sync() == 5
    assert set(await setup.waiting()) == ids
    assert setup.calls["history.list"] == 1


async def test_an_outage_is_asked_about_with_one_call_a_round(setup: GmailSetup):
    connector = setup.connector()
    await connector.sync()
    for number in range(30):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    setup.emulator.faults.order(Fault(503, path="/gmail/", share=0.9999, times=4))
    before = setup.calls.total()
    for _ in range(4):
        with pytest.raises(ServerError):
            await connector.sync()
    assert setup.calls.total() - before == 4
    assert await connector.sync() == 30


async def test_what_the_rate_limit_keeps_back_is_raised_and_the_rest_is_delivered(setup: GmailSetup):
    connector = setup.connector()
    await connector.sync()
    for number in range(5):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    setup.emulator.faults.order(Fault(429, "rateLimitExceeded", method="messages.get", times=7))
    with pytest.raises(RateLimited):
        await connector.sync()
    assert len(await setup.waiting()) == 3
    assert await connector.sync() == 2


async def test_an_answer_without_its_fields_is_asked_for_in_another_form(setup: GmailSetup):
    id = setup.mailbox.deliver(raw_mail("hello")).id
    broken = Fault(kind="missing_fields", fields=("mimeType", "threadId"), method="messages.get", times=2)
    setup.emulator.faults.order(broken)
    assert await setup.connector().sync() == 1
    raw = (await setup.waiting())[id]["payload"]["raw"]
    assert "could not be parsed" in raw["problems"][0]
    assert raw["rfc822"]
    assert (await setup.waiting())[id]["payload"]["normalized_text"] == "Hello."


async def test_a_message_that_is_invalid_in_any_form_is_remembered_and_holds_up_nobody(setup: GmailSetup):
    ids = [setup.mailbox.deliver(raw_mail(f"{number}")).id for number in range(3)]
    fault = Fault(kind="missing_fields", fields=("internalDate",), path=ids[1], share=0.9999)
    setup.emulator.faults.order(fault)
    assert await setup.connector().sync() == 2
    assert set(await setup.waiting()) == {ids[0], ids[2]}
    (line,) = (setup.folder / "refused.jsonl").read_text().splitlines()
    assert json.loads(line) == {"id": ids[1], "reason": "BadAnswer", "at": setup.clock().isoformat()}
    restarted = setup.connector()
    assert setup.health.counters["refused"] == 1
    assert await restarted.sync() == 0


async def test_what_the_switchboard_refuses_for_good_is_remembered_without_its_content(setup: GmailSetup):
    ids = [setup.mailbox.deliver(raw_mail(f"secret {number}")).id for number in range(3)]
    source = {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT}
    forged = mail(source=source, event={"external_event_id": ids[1]}, sender={"identity": "mallory@example.com"})
    await setup.services.intake.ingest(forged)
    assert await setup.connector().sync() == 2
    told = (setup.folder / "refused.jsonl").read_text()
    assert json.loads(told)["id"] == ids[1]
    assert "secret" not in told
    assert setup.health.counters["refused"] == 1


async def test_whatever_has_ended_counts_also_beside_what_has_not(setup: GmailSetup, monkeypatch: pytest.MonkeyPatch):
    ids = [setup.mailbox.deliver(raw_mail(f"{number}")).id for number in range(4)]
    setup.emulator.faults.order(Fault(kind="missing_fields", fields=("internalDate",), path=ids[0], share=0.9999))
    as_it_is = setup.board.ingest_batch

    async def without_the_last(envelopes: Sequence[Any]) -> Any:
        return [*await as_it_is(envelopes[:-1]), SwitchboardUnavailable("away")]

    connector = setup.connector()
    with monkeypatch.context() as patched:
        patched.setattr(setup.board, "ingest_batch", without_the_last)
        with pytest.raises(SwitchboardUnavailable):
            await connector.sync()
    assert connector._ingester.ended == 3
    assert await connector.sync() == 1
    assert connector._ingester.ended == 4


async def test_a_token_for_another_mailbox_delivers_nothing(setup: GmailSetup):
    setup.mailbox.deliver(raw_mail("hello"))
    with pytest.raises(Refused, match=f"opens the mailbox {OWNER}, but this connector is for {FRIEND}"):
        await setup.connector(FRIEND).sync()
    assert await setup.waiting() == {}


async def test_the_loop_goes_on_after_trouble_and_ends_when_told(setup: GmailSetup):
    setup.emulator.faults.order(Fault(503, times=2))
    setup.mailbox.deliver(raw_mail("hello"))
    stop = asyncio.Event()
    running = asyncio.create_task(setup.connector().run(timedelta(milliseconds=1), stop))
    await setup.health.until(lambda: setup.health.counters["ingested"] == 1 and setup.health.state == "healthy")
    stop.set()
    await running
    assert len(await setup.waiting()) == 1


async def test_whoever_asks_for_a_round_need_not_wait_for_the_next(setup: GmailSetup):
    stop, connector = asyncio.Event(), setup.connector()
    running = asyncio.create_task(connector.run(timedelta(hours=1), stop))
    await setup.health.until(lambda: setup.health.cursor is not None)
    setup.mailbox.deliver(raw_mail("hello"))
    connector.sync_now()
    await setup.health.until(lambda: setup.health.counters["ingested"] == 1)
    stop.set()
    await running


async def test_rounds_never_overlap(setup: GmailSetup):
    for number in range(10):
        setup.mailbox.deliver(raw_mail(f"{number}"))
    connector = setup.connector()
    assert sorted(await asyncio.gather(connector.sync(), connector.sync(), connector.sync())) == [0, 0, 10]
    assert setup.calls["messages.get"] == 10 + 1, "each once, and the date of the last"

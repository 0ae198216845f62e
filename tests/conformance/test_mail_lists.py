"""Lists of mail and events, on both databases: what they hold, their filters, and their pages."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.errors import NotFound
from postroom.core.mail.search import read_query
from postroom.core.rules.draft import RuleDraft
from postroom.intake.intake import Intake
from postroom.store.actions import approvals
from postroom.store.engine.cursors import Cursor
from postroom.store.engine.database import Database, Script, Text, transaction
from postroom.store.mail import mail_lists
from postroom.store.mail.mail_lists import ListedEvent, ListedPage, MailFilter
from postroom.store.mail.mail_views import MailRow
from postroom.store.people.audit import list_audit
from postroom.store.rules.outcomes import outcomes_of, record_mistake
from postroom.store.rules.proposals import list_proposals
from support.clocks import ManualClock
from support.mail import keep_mail
from support.store.fault_cases_approvals import pending
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

SHOPS = RuleDraft("shops", {"sender_domain": "shop.example"}, "archive")
BILLS = RuleDraft("bills", {"sender_domain": "bills.example"}, "trash", needs_approval=True)
ARCHIVED = frozenset({"UNREAD"})


@transaction
def alter(statement: str) -> Script[None]:
    yield Text(statement)


def event(number: int, kind: str = "ci.note", text: str = "Build") -> dict[str, Any]:
    return {
        "schema_version": "ingest.v1",
        "source": {"channel": "webhook", "provider": "webhook", "endpoint_identity": "ci"},
        "event": {"external_event_id": f"event-{number}", "observed_at": "2026-11-15T08:00:00Z", "kind": kind},
        "sender": {"identity": "ci-bot"},
        "payload": {"raw": {}, "normalized_text": f"{text} {number}"},
    }


async def send(database: Database, clock: ManualClock, *numbers: int, kind: str = "ci.note") -> None:
    for number in numbers:
        await Intake(database, None, clock).ingest(event(number, kind))
        clock.forward(1)


async def mailbox(setup: JobSetup) -> MailSetup:
    """One message archived by a rule, one that waits for a yes, and one that no rule knows."""
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(SHOPS, BILLS)
    await mail_setup.acted(Sample("done", subject="Parcel"), ARCHIVED)
    for sample in (Sample("asked", "pay@bills.example", "Bill"), Sample("kept", "ida@home.example", "Lunch")):
        await mail_setup.decide(sample)
        setup.clock.forward(1)
    return mail_setup


def names(page: ListedPage) -> list[str]:
    return [each.subject if isinstance(each, MailRow) else each.text for each in page.items]


async def listed(setup: JobSetup, most: int = 50, **wanted: Any) -> list[str]:
    return names(await setup.database.run(mail_lists.list_mail(MailFilter(**wanted), most)))


async def test_mail_and_events_stand_in_one_list_newest_first(setup: JobSetup) -> None:
    await mailbox(setup)
    await send(setup.database, setup.clock, 1, 2)
    page = await setup.database.run(mail_lists.list_arrived(50))
    assert names(page) == ["Build 2", "Build 1", "Lunch", "Bill", "Parcel"]
    assert page.following is None
    found = page.items[0]
    assert isinstance(found, ListedEvent)
    assert (found.tier, found.state, found.kind, found.is_mail) == ("P2", "waiting", "ci.note", False)


async def test_its_pages_hold_everything_once(setup: JobSetup) -> None:
    await mailbox(setup)
    await send(setup.database, setup.clock, *range(4))
    seen: list[str] = []
    page = await setup.database.run(mail_lists.list_arrived(2))
    while True:
        seen += names(page)
        assert len(page.items) <= 2
        if page.following is None:
            break
        page = await setup.database.run(mail_lists.list_arrived(2, page.following))
    assert seen == ["Build 3", "Build 2", "Build 1", "Build 0", "Lunch", "Bill", "Parcel"]


async def test_mail_that_is_not_stored_yet_is_listed_without_events(database: Database, clock: ManualClock) -> None:
    await keep_mail(database, clock, 1, subject="Stored")
    clock.forward(1)
    envelope = event(9) | {
        "source": {"channel": "email", "provider": "gmail", "endpoint_identity": "gmail:user:ada@example.com"},
        "payload": {"raw": {"headers": [["Subject", "On its way"]], "labels": []}, "normalized_text": "Words"},
    }
    await Intake(database, None, clock).ingest(envelope)
    clock.forward(1)
    await send(database, clock, 1)
    page = await database.run(mail_lists.list_arrived(50, with_events=False))
    waiting, stored = page.items
    assert isinstance(waiting, ListedEvent)
    assert (waiting.subject, waiting.state, stored.subject) == ("On its way", "waiting", "Stored")
    found = await database.run(mail_lists.find_event(waiting.id))
    assert found is not None
    assert found.text == "Words"
    assert await database.run(mail_lists.find_event(UUID(int=7))) is None


async def test_a_row_has_the_decision_the_action_and_its_undo(setup: JobSetup) -> None:
    await mailbox(setup)
    rows = {each.subject: each for each in (await setup.database.run(mail_lists.list_arrived(9))).items}
    parcel, bill, lunch = (rows[name] for name in ("Parcel", "Bill", "Lunch"))
    assert isinstance(parcel, MailRow)
    assert isinstance(bill, MailRow)
    assert isinstance(lunch, MailRow)
    assert (parcel.rule_name, parcel.action_state, parcel.undone, parcel.state) == ("shops", "completed", None, "done")
    assert (bill.action_state, bill.state) == ("approved_pending", "asking")
    assert (lunch.source, lunch.action_id, lunch.state) == ("none", None, None)


async def test_each_filter_keeps_what_fits(setup: JobSetup) -> None:
    mail_setup = await mailbox(setup)
    assert await listed(setup, tier="default") == ["Lunch", "Bill", "Parcel"]
    assert await listed(setup, tier="history") == []
    assert await listed(setup, by="rule") == ["Bill", "Parcel"]
    assert await listed(setup, by="model") == []
    assert await listed(setup, by="you") == []
    assert await listed(setup, state="done") == ["Parcel"]
    assert await listed(setup, state="asking") == ["Bill"]
    assert await listed(setup, state="asking", by="model") == []
    assert await listed(setup, state="failed") == []
    assert await listed(setup, account_id=mail_setup.account.id) == ["Lunch", "Bill", "Parcel"]
    assert await listed(setup, account_id=UUID(int=1)) == []
    assert await listed(setup, since=setup.clock() - timedelta(seconds=1)) == ["Lunch"]


async def test_mail_is_listed_by_category(setup: JobSetup) -> None:
    mail_setup = await mailbox(setup)
    for name, category in (("done", "finance"), ("done", "travel"), ("asked", "finance")):
        values = f"('{mail_setup.ids[name]}', '{category}')"
        await setup.database.run(alter(f"INSERT INTO message_categories VALUES {values} ON CONFLICT DO NOTHING"))
    assert await listed(setup, category="finance") == ["Bill", "Parcel"]
    assert await listed(setup, category="travel") == ["Parcel"]
    assert await listed(setup, category="health") == []
    assert await listed(setup, category="finance", state="asking") == ["Bill"]
    assert await listed(setup, category="travel", state="asking") == []
    words = read_query("from:bills.example")
    for category, found in (("finance", ["Bill"]), ("travel", [])):
        verb = mail_lists.list_matching(words, setup.database.dialect, MailFilter(category=category), 50)
        assert names(await setup.database.run(verb)) == found


async def test_what_failed_or_was_undone_is_listed_by_its_action(setup: JobSetup) -> None:
    mail_setup = await mailbox(setup)
    await setup.database.run(
        alter("UPDATE actions SET state = 'failed', error = 'gone' WHERE state = 'approved_pending'")
    )
    assert await listed(setup, state="failed") == ["Bill"]
    assert (await setup.database.run(mail_lists.count_states(setup.clock() - timedelta(days=1)))) == (0, 1, 0)
    await setup.database.run(alter(f"UPDATE actions SET actor = 'undo' WHERE message_id = '{mail_setup.ids['done']}'"))
    assert await listed(setup, state="undone") == ["Parcel"]
    assert await listed(setup, state="done") == []
    assert (await setup.database.run(mail_lists.count_states(setup.clock() - timedelta(days=1)))).undone == 1
    assert (await setup.database.run(mail_lists.count_states(setup.clock() + timedelta(days=1)))) == (0, 0, 0)


async def test_a_stretch_without_a_match_says_how_far_it_looked(
    setup: JobSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mailbox(setup)
    monkeypatch.setattr(mail_lists, "STRETCH", 1)
    first = await setup.database.run(mail_lists.list_mail(MailFilter(state="done"), 50))
    assert names(first) == []
    assert first.looked_back_to is not None
    seen, page = list[str](), first
    while page.following is not None:
        page = await setup.database.run(mail_lists.list_mail(MailFilter(state="done"), 50, page.following))
        seen += names(page)
    assert seen == ["Parcel"]


async def test_events_are_listed_by_tier(setup: JobSetup) -> None:
    await mailbox(setup)
    await send(setup.database, setup.clock, 1, kind="deploy.failed")
    await send(setup.database, setup.clock, 2, 3)
    assert names(await setup.database.run(mail_lists.list_events(50))) == ["Build 3", "Build 2", "Build 1"]
    assert names(await setup.database.run(mail_lists.list_events(50, "P1"))) == ["Build 1"]
    first = await setup.database.run(mail_lists.list_events(2))
    assert first.following is not None
    assert names(await setup.database.run(mail_lists.list_events(2, None, first.following))) == ["Build 1"]


async def test_a_search_is_filtered_too(setup: JobSetup) -> None:
    await mailbox(setup)
    asked = read_query("from:bills.example")

    async def found(**wanted: Any) -> list[str]:
        verb = mail_lists.list_matching(asked, setup.database.dialect, MailFilter(**wanted), 50)
        return names(await setup.database.run(verb))

    assert await found() == ["Bill"]
    assert await found(state="asking", by="rule", tier="default") == ["Bill"]
    assert await found(state="done") == []
    assert await found(by="you") == []


async def test_waiting_approvals_are_counted_and_paged_by_when_they_lapse(setup: JobSetup) -> None:
    ids: list[UUID] = []
    for _ in range(3):
        ids.append(await pending(setup))
        setup.clock.forward(1)
    assert await setup.database.run(approvals.count_waiting()) == 3
    first = await setup.database.run(approvals.list_waiting(1))
    assert first[0].expires_at is not None
    rest = await setup.database.run(approvals.list_waiting_after(Cursor(first[0].expires_at, first[0].id), 9))
    assert [each.id for each in (*first, *rest)] == ids


async def test_answers_are_listed_newest_first(setup: JobSetup) -> None:
    first, second, third = [await pending(setup) for _ in range(3)]
    await setup.database.run(approvals.reject_action(first, signed(), setup.clock()))
    setup.clock.forward(1)
    await setup.database.run(approvals.reject_action(second, signed(), setup.clock()))
    found = await setup.database.run(approvals.list_answered(setup.clock() - timedelta(hours=1), 9))
    assert [each.id for each in found] == [second, first]
    assert await setup.database.run(approvals.list_answered(setup.clock() + timedelta(hours=1), 9)) == []
    assert (await setup.database.run(approvals.show_approval(third))).is_waiting


async def test_a_decision_that_is_called_wrong_proposes_an_exception_once(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(SHOPS)
    done = await mail_setup.acted(Sample("m1"), ARCHIVED)
    assert done.decision_id is not None
    for _ in range(2):
        named = await setup.database.run(record_mistake(done.decision_id, done.message_id, signed(), setup.clock()))
        assert named == "No archive for mail from ida@shop.example"
    [outcome] = await setup.database.run(outcomes_of(done.message_id))
    assert (outcome.agreed, outcome.what) == (False, "called it wrong")
    [proposed] = await setup.database.run(list_proposals("open", 9))
    assert proposed.draft.action_type == "none"
    assert [entry.action for entry in await setup.database.run(list_audit(2))] == ["decision.wrong"] * 2


async def test_a_decision_that_did_nothing_cannot_be_called_wrong(setup: JobSetup) -> None:
    mail_setup = await mailbox(setup)
    kept = await mail_setup.decision("kept")
    with pytest.raises(NotFound, match="no action by the decision"):
        await setup.database.run(record_mistake(kept.id, kept.message_id, signed(), setup.clock()))

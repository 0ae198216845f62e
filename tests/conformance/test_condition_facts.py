"""The facts that conditions look at are stored with mail and read back, for deciding and for simulating alike."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from postroom.core.mail.contacts import Contact
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.facts import MessageFacts
from postroom.store.engine.database import Script, sql, transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail.contacts import EVERY_MAILBOX, keep_contacts
from postroom.store.mail.mail import StoredMessage, load_message
from postroom.store.mail.retention import ExpiredMessage, prune_messages
from postroom.store.mail.simulation import BEGINNING, MessageSelection, NeededFields, past_after
from postroom.store.people.audit import Signature
from postroom.triage.decide.engine import unknown_conditions
from support.store.job_setup import JobSetup
from support.store.mail_setup import ENDPOINT, OWNER, MailSetup, Sample

ALL = MessageSelection(datetime(2000, 1, 1, tzinfo=UTC), 1_000)
FILES = (
    {"filename": "Invoice 42.pdf", "mime_type": "Application/PDF", "size": 9},
    {"filename": None, "mime_type": None},
)
FACTS = (
    "size",
    "attachments",
    "own_addresses",
    "categories",
    "sender_in_contacts",
    "sender_seen_before",
    "reply_to_mine",
)


@pytest.fixture
async def mailbox(setup: JobSetup) -> MailSetup:
    return await MailSetup(setup).opened()


async def stored(mailbox: MailSetup, id: str) -> StoredMessage:
    return await mailbox.setup.database.run(load_message(mailbox.ids[id]))


async def simulated(mailbox: MailSetup) -> dict[UUID, StoredMessage]:
    found = await mailbox.setup.database.run(past_after(BEGINNING, ALL, NeededFields(), 100, 10**9))
    return {each.message.id: each.message for each in found}


def told(facts: MessageFacts) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in FACTS}


def a_sample(id: str, **more: Any) -> Sample:
    return Sample(id, files=FILES, size=5_000, reply_to_mine=True, **more)


async def test_facts_are_read_for_a_decision_and_for_a_simulation(mailbox: MailSetup) -> None:
    await mailbox.deliver(a_sample("one"))
    expected = {
        "size": 5_000,
        "attachments": (("Invoice 42.pdf", "application/pdf"), ("", "")),
        "own_addresses": frozenset({OWNER}),
        "categories": frozenset(),
        "sender_in_contacts": False,
        "sender_seen_before": False,
        "reply_to_mine": True,
    }
    message = await stored(mailbox, "one")
    assert told(message.facts) == expected
    assert unknown_conditions(message) == frozenset()
    past = (await simulated(mailbox))[message.id]
    assert told(past.facts) == expected


async def test_categories_are_those_that_are_stored(mailbox: MailSetup) -> None:
    await mailbox.deliver(Sample("one", headers={"List-Unsubscribe": "<x>"}))
    await mailbox.setup.database.run(_categorise(mailbox.ids["one"], ["finance", "newsletters"]))
    assert (await stored(mailbox, "one")).facts.categories == {"finance", "newsletters"}
    assert [each.facts.categories for each in (await simulated(mailbox)).values()] == [{"finance", "newsletters"}]


@transaction
def _categorise(id: UUID, categories: list[str]) -> Script[None]:
    yield sql("insert_message_categories", id, categories)


@pytest.mark.parametrize(
    ("endpoint", "known"), [(EVERY_MAILBOX, True), (ENDPOINT, True), ("gmail:user:x@y.example", False)]
)
async def test_a_contact_counts_for_its_mailbox(mailbox: MailSetup, endpoint: str, known: bool) -> None:
    await mailbox.deliver(Sample("one", sender="ida@shop.example"), Sample("two", sender="uta@shop.example"))
    signed = Signature(new_id(), "test", "admin")
    now = mailbox.setup.clock()
    await mailbox.setup.database.run(keep_contacts([Contact("ida@shop.example", "Ida")], "csv", endpoint, signed, now))
    assert (await stored(mailbox, "one")).facts.sender_in_contacts is known
    assert (await stored(mailbox, "two")).facts.sender_in_contacts is False


async def test_a_sender_was_seen_before_if_earlier_mail_was_accepted(mailbox: MailSetup) -> None:
    """Whatever the dates of the messages: what came in later does not count."""
    await mailbox.deliver(
        Sample("first", sent_at=datetime(2026, 11, 15, tzinfo=UTC)),
        Sample("second", sent_at=datetime(2020, 1, 1, tzinfo=UTC)),
        Sample("other", sender="uta@shop.example"),
    )
    seen = {id: (await stored(mailbox, id)).facts.sender_seen_before for id in mailbox.ids}
    assert seen == {"first": False, "second": True, "other": False}
    past = await simulated(mailbox)
    assert {id: past[mailbox.ids[id]].facts.sender_seen_before for id in mailbox.ids} == seen


async def test_mail_as_metadata_has_a_size_and_no_attachments(mailbox: MailSetup) -> None:
    await mailbox.deliver(a_sample("one", is_whole=False))
    facts = (await stored(mailbox, "one")).facts
    assert (facts.size, facts.reply_to_mine) == (5_000, True)
    assert "attachment_name" in unknown_conditions(await stored(mailbox, "one"))


async def test_rules_skip_mail_whose_connector_did_not_tell(mailbox: MailSetup) -> None:
    """As with mail that was stored before these facts were: neither the condition nor its opposite holds."""
    await mailbox.rules(
        RuleDraft("large", {"not": {"larger": "1G"}}, "trash", priority=1),
        RuleDraft("answers", {"reply_to_mine": False}, "trash", priority=2),
        RuleDraft("words", {"subject_words": "hello"}, "archive", priority=3),
    )
    [told_nothing] = await mailbox.decide(Sample("old"))
    [told_all] = await mailbox.decide(a_sample("new"))
    assert (told_nothing.rule_name, told_all.rule_name) == ("words", "large")


async def test_pruned_mail_keeps_no_names_of_attachments(mailbox: MailSetup) -> None:
    await mailbox.deliver(a_sample("one"))
    id, now = mailbox.ids["one"], mailbox.setup.clock()
    past = ExpiredMessage(id, "full", ())
    await mailbox.setup.database.run(prune_messages([past], Signature(new_id(), "test", "admin"), now))
    assert (await stored(mailbox, "one")).facts.attachments is None

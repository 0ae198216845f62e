"""The live page's data: each message from acceptance to action, and the totals."""

from postroom.core.queue.envelope import envelope_text
from postroom.core.queue.queues import EMAIL
from postroom.core.rules.draft import RuleDraft
from postroom.store.engine.ids import new_id
from postroom.store.intake import acceptance
from postroom.store.mail import feed
from support.store.job_setup import JobSetup
from support.store.mail_setup import MailSetup, Sample

RECEIPTS = RuleDraft("receipts", {"sender_domain": "shop.example"}, "apply_label", {"label": "Receipts"})


async def test_a_message_is_shown_by_its_subject_before_and_after_it_is_stored(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.deliver(Sample("1", subject="Stored"))
    envelope = Sample("2", subject="Accepted").envelope(mail_setup.endpoint)
    waiting = acceptance.RoutedEnvelope(new_id(), envelope, envelope_text(envelope), EMAIL, EMAIL.tier_of(envelope))
    await setup.database.run(acceptance.accept_many([waiting], setup.clock()))
    newest, older = await setup.database.run(feed.recent_messages(9))
    assert (newest.subject, newest.action_type, newest.parameters) == ("Accepted", None, {})
    assert (older.subject, older.action_type, older.parameters) == ("Stored", None, {})
    assert [row.subject for row in await setup.database.run(feed.recent_messages(1))] == ["Accepted"]


async def test_what_was_decided_is_shown_with_its_rule_and_its_state(setup: JobSetup) -> None:
    mail_setup = await MailSetup(setup).opened()
    await mail_setup.rules(RECEIPTS)
    await mail_setup.decide(Sample("1"), Sample("2", sender="ann@other.example"))
    other, shop = await setup.database.run(feed.recent_messages(9))
    assert (shop.action_type, shop.parameters, shop.rule_name) == ("apply_label", {"label": "Receipts"}, "receipts")
    assert (shop.action_state, other.action_state) == ("executing", None)

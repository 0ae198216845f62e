"""What the live page reads: each message from its acceptance to its action, and how many there are."""

from conformance.desk import Desk
from conformance.mailroom import Letter, Mailroom
from postroom.core.queue.envelope import envelope_text
from postroom.core.queue.queues import EMAIL
from postroom.core.rules.draft import RuleDraft
from postroom.store import acceptance, feed
from postroom.store.engine.ids import new_id

RECEIPTS = RuleDraft("receipts", {"sender_domain": "shop.example"}, "apply_label", {"label": "Receipts"})


async def test_a_message_is_shown_by_its_subject_before_and_after_it_is_stored(desk: Desk) -> None:
    room = await Mailroom(desk).opened()
    await room.deliver(Letter("1", subject="Stored"))
    envelope = Letter("2", subject="Accepted").envelope(room.endpoint)
    waiting = acceptance.RoutedEnvelope(new_id(), envelope, envelope_text(envelope), EMAIL, EMAIL.tier_of(envelope))
    await desk.database.run(acceptance.accept_many([waiting], desk.clock()))
    newest, older = await desk.database.run(feed.recent_messages(9))
    assert (newest.subject, newest.action_type, newest.parameters) == ("Accepted", None, {})
    assert (older.subject, older.action_type, older.parameters) == ("Stored", None, {})
    assert [row.subject for row in await desk.database.run(feed.recent_messages(1))] == ["Accepted"]


async def test_what_was_decided_is_shown_with_its_rule_and_counted_by_its_state(desk: Desk) -> None:
    room = await Mailroom(desk).opened()
    assert await desk.database.run(feed.count_decisions()) == 0
    assert await desk.database.run(feed.count_actions()) == {}
    await room.rules(RECEIPTS)
    await room.decide(Letter("1"), Letter("2", sender="ann@other.example"))
    other, shop = await desk.database.run(feed.recent_messages(9))
    assert (shop.action_type, shop.parameters, shop.rule_name) == ("apply_label", {"label": "Receipts"}, "receipts")
    assert (shop.action_state, other.action_state) == ("executing", None)
    assert await desk.database.run(feed.count_decisions()) == 2
    assert await desk.database.run(feed.count_actions()) == {"executing": 1}

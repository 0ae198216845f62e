"""For each writing verb of the inbox: a database in which it has something to do."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from conformance.desk import Desk
from conformance.fault_cases_jobs import Case
from postroom.core.mail.message import to_raw
from postroom.core.queue.content_hash import content_hash
from postroom.core.queue.envelope import Envelope, envelope_text, parse_envelope
from postroom.core.queue.queues import EMAIL, GATEWAY, Policy
from postroom.store import acceptance, history, inbox, rollups
from postroom.store import mail as mail_store
from postroom.store.audit import AuditEntry
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id

ENDPOINT = "gmail:user:me@example.com"
MOST = {"email": 1, "gateway": 1}


def mail(n: int, endpoint: str = ENDPOINT, **control: str) -> Envelope:
    sent_at = datetime(2026, 11, 15, 7, tzinfo=UTC)
    headers = (("From", "a@example.com"), ("Subject", "Hello"))
    raw = to_raw(thread_id="t", headers=headers, labels=frozenset({"INBOX"}), snippet="Hel", sent_at=sent_at)
    return parse_envelope(
        {
            "schema_version": "ingest.v1",
            "source": {"channel": "email", "provider": "gmail", "endpoint_identity": endpoint},
            "event": {"external_event_id": f"m{n}", "external_thread_id": "t", "observed_at": sent_at.isoformat()},
            "sender": {"identity": "a@example.com"},
            "payload": {
                "raw": None if control.get("ingestion_tier") == "metadata" else raw,
                "normalized_text": "Hello there",
            },
            "control": control,
        }
    )


def event(n: int, text: str | None = None, kind: str | None = None) -> Envelope:
    return parse_envelope(
        {
            "schema_version": "ingest.v1",
            "source": {"channel": "webhook", "provider": "webhook", "endpoint_identity": "ci"},
            "event": {"external_event_id": f"e{n}", "observed_at": "2026-11-15T08:00:00Z", "kind": kind},
            "sender": {"identity": "ci"},
            "payload": {"raw": {}, "normalized_text": text or f"event {n}"},
        }
    )


def incoming(envelope: Envelope, policy: Policy) -> acceptance.RoutedEnvelope:
    content = None if policy.same_text_within is None else content_hash(envelope)
    text = envelope_text(envelope)
    return acceptance.RoutedEnvelope(new_id(), envelope, text, policy, policy.tier_of(envelope), None, content)


def accepting(desk: Desk, envelopes: Sequence[Envelope], policy: Policy) -> Transaction[Any]:
    return acceptance.accept_many([incoming(each, policy) for each in envelopes], desk.clock())


async def keep_account(desk: Desk) -> None:
    await desk.database.run(mail_store.keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", desk.clock()))


async def accept_many(desk: Desk) -> Transaction[Any]:
    """Something of everything: new, known, upgraded, in conflict, said before, failed before, and without account."""
    await keep_account(desk)
    known = [mail(1), mail(2, ingestion_tier="metadata"), mail(3, idempotency_key="k")]
    await desk.database.run(accepting(desk, known, EMAIL))
    await desk.database.run(accepting(desk, [event(1, "same")], GATEWAY))
    batch = [mail(1), mail(2), mail(4, idempotency_key="k"), mail(5, policy_tier="high_priority")]
    await desk.database.run(accepting(desk, [event(4, "failed")], GATEWAY))
    for each in await _leased(desk, GATEWAY):
        await desk.database.run(inbox.give_up(each, "no", desk.clock()))
    events = [event(1, "same"), event(2, "same"), event(3), event(4, "failed"), event(5, "failed")]
    batch.append(mail(6, endpoint="gmail:user:nobody@example.com"))
    items = [incoming(each, EMAIL) for each in batch] + [incoming(each, GATEWAY) for each in events]
    return acceptance.accept_many(items, desk.clock())


async def lease(desk: Desk) -> Transaction[Any]:
    """Of a gateway with something stale, something to coalesce and something to promote."""
    await desk.database.run(accepting(desk, [event(0), event(1, kind="test.old")], GATEWAY))
    desk.clock.forward(600)
    await desk.database.run(accepting(desk, [event(n, kind="test.new") for n in (2, 3)], GATEWAY))
    return inbox.lease(GATEWAY, 9, new_id(), desk.clock(), new_id())


async def _leased(desk: Desk, policy: Policy) -> list[inbox.LeasedMessage]:
    return (await desk.database.run(inbox.lease(policy, 2, new_id(), desk.clock(), new_id()))).messages


async def leased_mails(desk: Desk) -> list[inbox.LeasedMessage]:
    await keep_account(desk)
    await desk.database.run(accepting(desk, [mail(1), mail(2)], EMAIL))
    return await _leased(desk, EMAIL)


async def leased_mail(desk: Desk) -> inbox.LeasedMessage:
    return (await leased_mails(desk))[0]


async def _held(desk: Desk) -> list[inbox.LeaseRef]:
    await desk.database.run(accepting(desk, [event(1), event(2)], GATEWAY))
    return [inbox.LeaseRef(each.id, each.token) for each in await _leased(desk, GATEWAY)]


async def ack(desk: Desk) -> Transaction[Any]:
    return inbox.ack(await _held(desk), desk.clock())


async def nack(desk: Desk) -> Transaction[Any]:
    """One is worn out, the other goes back."""
    first, second = await _held(desk)
    await desk.database.run(inbox.nack([first], "no", {}, desk.clock()))
    (again,) = await _leased(desk, GATEWAY)
    refs = [inbox.LeaseRef(again.id, again.token), second]
    return inbox.nack(refs, "no", {"gateway": 2}, desk.clock())


async def return_expired(desk: Desk) -> Transaction[Any]:
    """With what others hold, whose memory of the streaks changes."""
    held = await _held(desk)
    desk.clock.forward(1)
    await desk.database.run(accepting(desk, [event(3, kind="note"), event(4, kind="deploy.failed")], GATEWAY))
    await desk.database.run(inbox.nack(held[1:], "no", {}, desk.clock()))
    await _leased(desk, GATEWAY)
    return inbox.return_expired({}, desk.clock.forward(GATEWAY.lease.total_seconds() - 0.5))


async def give_up(desk: Desk) -> Transaction[Any]:
    return inbox.give_up(await leased_mail(desk), "unreadable", desk.clock())


async def adopt_strays(desk: Desk) -> Transaction[Any]:
    await desk.database.run(accepting(desk, [event(1)], GATEWAY))
    return inbox.adopt_strays(Policy("gateway", {"only": 10}), 100)


async def give_back(desk: Desk) -> Transaction[Any]:
    return inbox.give_back(await _held(desk), desk.clock())


async def sweep(desk: Desk) -> Transaction[Any]:
    await desk.database.run(accepting(desk, [event(1, kind="test.x")], GATEWAY))
    return inbox.sweep(GATEWAY, desk.clock.forward(61))


async def forget_texts(desk: Desk) -> Transaction[Any]:
    await desk.database.run(accepting(desk, [event(1)], GATEWAY))
    return inbox.forget_texts(desk.clock.forward(31))


async def prune_inbox(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await ack(desk))
    return inbox.prune_inbox("gateway", desk.clock() + timedelta(days=1), 10)


async def prune_rollups(desk: Desk) -> Transaction[Any]:
    await desk.database.run(accepting(desk, [event(1)], GATEWAY))
    return rollups.prune_rollups(desk.clock() + timedelta(days=1))


async def replay(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await ack(desk))
    span = history.Span("gateway", desk.clock() - timedelta(days=1), desk.clock() + timedelta(days=1))
    past = await desk.database.run(history.find_past(span, 10))
    entry = AuditEntry(new_id(), "cli", "admin", "queue.replay", "queue", "gateway", after={"count": len(past)})
    return history.replay([(id, new_id()) for id in past], "gateway", entry, desk.clock())


CASES: list[Case] = [
    accept_many,
    lease,
    ack,
    nack,
    return_expired,
    give_up,
    adopt_strays,
    give_back,
    sweep,
    forget_texts,
    prune_inbox,
    prune_rollups,
    replay,
]

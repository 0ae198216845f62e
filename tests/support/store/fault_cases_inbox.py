"""For each writing verb of the inbox: a database in which it has something to do."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from postroom.core.mail.message import to_raw
from postroom.core.queue.content_hash import content_hash
from postroom.core.queue.envelope import Envelope, envelope_text, parse_envelope
from postroom.core.queue.queues import EMAIL, GATEWAY, QueuePolicy
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.installation import rollups
from postroom.store.intake import acceptance, history, inbox
from postroom.store.mail import mail as mail_store
from postroom.store.people.audit import AuditEntry
from support.store.fault_cases_jobs import Case
from support.store.job_setup import JobSetup

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


def incoming(envelope: Envelope, policy: QueuePolicy) -> acceptance.RoutedEnvelope:
    content = None if policy.same_text_within is None else content_hash(envelope)
    text = envelope_text(envelope)
    return acceptance.RoutedEnvelope(new_id(), envelope, text, policy, policy.tier_of(envelope), None, content)


def accepting(setup: JobSetup, envelopes: Sequence[Envelope], policy: QueuePolicy) -> Transaction[Any]:
    return acceptance.accept_many([incoming(each, policy) for each in envelopes], setup.clock())


async def keep_account(setup: JobSetup) -> None:
    await setup.database.run(mail_store.keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", setup.clock()))


async def accept_many(setup: JobSetup) -> Transaction[Any]:
    """Something of everything: new, known, upgraded, in conflict, said before, failed before, and without account."""
    await keep_account(setup)
    known = [mail(1), mail(2, ingestion_tier="metadata"), mail(3, idempotency_key="k")]
    await setup.database.run(accepting(setup, known, EMAIL))
    await setup.database.run(accepting(setup, [event(1, "same")], GATEWAY))
    batch = [mail(1), mail(2), mail(4, idempotency_key="k"), mail(5, policy_tier="high_priority")]
    await setup.database.run(accepting(setup, [event(4, "failed")], GATEWAY))
    for each in await _leased(setup, GATEWAY):
        await setup.database.run(inbox.give_up(each, "no", setup.clock()))
    events = [event(1, "same"), event(2, "same"), event(3), event(4, "failed"), event(5, "failed")]
    batch.append(mail(6, endpoint="gmail:user:nobody@example.com"))
    items = [incoming(each, EMAIL) for each in batch] + [incoming(each, GATEWAY) for each in events]
    return acceptance.accept_many(items, setup.clock())


async def lease(setup: JobSetup) -> Transaction[Any]:
    """Of a gateway with something stale, something to coalesce and something to promote."""
    await setup.database.run(accepting(setup, [event(0), event(1, kind="test.old")], GATEWAY))
    setup.clock.forward(600)
    await setup.database.run(accepting(setup, [event(n, kind="test.new") for n in (2, 3)], GATEWAY))
    return inbox.lease(GATEWAY, 9, new_id(), setup.clock(), new_id())


async def _leased(setup: JobSetup, policy: QueuePolicy) -> list[inbox.LeasedMessage]:
    return (await setup.database.run(inbox.lease(policy, 2, new_id(), setup.clock(), new_id()))).messages


async def leased_mails(setup: JobSetup) -> list[inbox.LeasedMessage]:
    await keep_account(setup)
    await setup.database.run(accepting(setup, [mail(1), mail(2)], EMAIL))
    return await _leased(setup, EMAIL)


async def leased_mail(setup: JobSetup) -> inbox.LeasedMessage:
    return (await leased_mails(setup))[0]


async def _held(setup: JobSetup) -> list[inbox.LeaseRef]:
    await setup.database.run(accepting(setup, [event(1), event(2)], GATEWAY))
    return [inbox.LeaseRef(each.id, each.token) for each in await _leased(setup, GATEWAY)]


async def ack(setup: JobSetup) -> Transaction[Any]:
    return inbox.ack(await _held(setup), setup.clock())


async def nack(setup: JobSetup) -> Transaction[Any]:
    """One is worn out, the other goes back."""
    first, second = await _held(setup)
    await setup.database.run(inbox.nack([first], "no", {}, setup.clock()))
    (again,) = await _leased(setup, GATEWAY)
    refs = [inbox.LeaseRef(again.id, again.token), second]
    return inbox.nack(refs, "no", {"gateway": 2}, setup.clock())


async def return_expired(setup: JobSetup) -> Transaction[Any]:
    """With what others hold, whose memory of the streaks changes."""
    held = await _held(setup)
    setup.clock.forward(1)
    await setup.database.run(accepting(setup, [event(3, kind="note"), event(4, kind="deploy.failed")], GATEWAY))
    await setup.database.run(inbox.nack(held[1:], "no", {}, setup.clock()))
    await _leased(setup, GATEWAY)
    return inbox.return_expired({}, setup.clock.forward(GATEWAY.lease.total_seconds() - 0.5))


async def give_up(setup: JobSetup) -> Transaction[Any]:
    return inbox.give_up(await leased_mail(setup), "unreadable", setup.clock())


async def adopt_strays(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(accepting(setup, [event(1)], GATEWAY))
    return inbox.adopt_strays(QueuePolicy("gateway", {"only": 10}), 100)


async def give_back(setup: JobSetup) -> Transaction[Any]:
    return inbox.give_back(await _held(setup), setup.clock())


async def sweep(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(accepting(setup, [event(1, kind="test.x")], GATEWAY))
    return inbox.sweep(GATEWAY, setup.clock.forward(61))


async def forget_texts(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(accepting(setup, [event(1)], GATEWAY))
    return inbox.forget_texts(setup.clock.forward(31))


async def prune_inbox(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await ack(setup))
    return inbox.prune_inbox("gateway", setup.clock() + timedelta(days=1), 10)


async def prune_rollups(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(accepting(setup, [event(1)], GATEWAY))
    return rollups.prune_rollups(setup.clock() + timedelta(days=1))


async def replay(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await ack(setup))
    span = history.Span("gateway", setup.clock() - timedelta(days=1), setup.clock() + timedelta(days=1))
    past = await setup.database.run(history.find_past(span, 10))
    entry = AuditEntry(new_id(), "cli", "admin", "queue.replay", "queue", "gateway", after={"count": len(past)})
    return history.replay([(id, new_id()) for id in past], "gateway", entry, setup.clock())


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

"""For each writing verb of inbox, mail, rules and actions: a database in which it has something to do."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from conformance.desk import LEASE, Desk
from conformance.fault_cases_jobs import Case
from postroom.core.envelope import Envelope, envelope_text, parse_envelope
from postroom.core.mail import read_mail, to_raw
from postroom.core.picker import EMAIL
from postroom.store import actions, inbox, mail, rules
from postroom.store import jobs as store
from postroom.store.database import Transaction
from postroom.store.ids import new_id

ENDPOINT = "gmail:user:me@example.com"
LABELS = frozenset({"INBOX"})


def _envelope(n: int) -> Envelope:
    sent_at = datetime(2026, 11, 15, 7, tzinfo=UTC)
    headers = (("From", "a@example.com"), ("Subject", "Hello"))
    return parse_envelope(
        {
            "schema_version": "ingest.v1",
            "source": {"channel": "email", "provider": "gmail", "endpoint_identity": ENDPOINT},
            "event": {"external_event_id": f"m{n}", "external_thread_id": "t", "observed_at": sent_at.isoformat()},
            "sender": {"identity": "a@example.com"},
            "payload": {
                "raw": to_raw(thread_id="t", headers=headers, labels=LABELS, snippet="Hel", sent_at=sent_at),
                "normalized_text": "Hello there",
            },
        }
    )


def _accept(desk: Desk, n: int, tier: str) -> Transaction[Any]:
    envelope = _envelope(n)
    return inbox.accept(new_id(), envelope, envelope_text(envelope), "email", tier, desk.clock())


async def accept(desk: Desk) -> Transaction[Any]:
    return _accept(desk, 1, "default")


async def lease(desk: Desk) -> Transaction[Any]:
    for n, tier in enumerate(("default", "high_priority", "default")):
        await desk.database.run(_accept(desk, n, tier))
    return inbox.lease(EMAIL, 3, new_id(), desk.clock() + LEASE)


async def _leased(desk: Desk) -> inbox.Leased:
    return (await desk.database.run(await lease(desk)))[0]


async def give_up(desk: Desk) -> Transaction[Any]:
    return inbox.give_up(await _leased(desk), "unreadable", desk.clock())


async def return_expired(desk: Desk) -> Transaction[Any]:
    await _leased(desk)
    return inbox.return_expired(desk.clock.forward(LEASE.total_seconds() + 1))


async def keep_account(desk: Desk) -> Transaction[Any]:
    return mail.keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", desk.clock())


async def store_message(desk: Desk) -> Transaction[Any]:
    return await _store_as(desk, new_id())


async def _store_as(desk: Desk, id: UUID) -> Transaction[Any]:
    account = await desk.database.run(await keep_account(desk))
    leased = await _leased(desk)
    classify = desk.new(key=f"classify:{id}")
    return mail.store_message(leased, account, (new_id(), id), read_mail(leased.envelope), classify, desk.clock())


async def add_rules(desk: Desk) -> Transaction[Any]:
    new = [rules.NewRule(new_id(), name, "", {"subject": "x"}, "archive", {}) for name in ("a", "b")]
    return rules.add_rules(new, desk.clock())


async def disable_rule(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await add_rules(desk))
    (rule, *_) = await desk.database.run(rules.list_rules())
    return rules.disable_rule(rule.id, "broken", desk.clock())


async def _decision(desk: Desk, action_id: UUID) -> Transaction[Any]:
    """The classify job of a stored message is claimed and decides."""
    message_id = new_id()
    await desk.database.run(await _store_as(desk, message_id))
    account = await desk.database.run(mail.account_of(ENDPOINT))
    job = await desk.claim_one()
    decision = actions.Decision(
        new_id(), account.id, message_id, "deterministic", "archive", {}, 1.0, "a rule", rule_name="a"
    )
    action = actions.NewAction(action_id, "rule", "queued", "hash")
    return actions.record_decision(job, decision, action, desk.new(key="action"), desk.clock())


async def record_decision(desk: Desk) -> Transaction[Any]:
    return await _decision(desk, new_id())


async def begin_action(desk: Desk) -> Transaction[Any]:
    action = new_id()
    await desk.database.run(await _decision(desk, action))
    return actions.begin_action(await desk.claim_one(), action, desk.clock())


async def keep_pre_image(desk: Desk) -> Transaction[Any]:
    action = new_id()
    await desk.database.run(await _decision(desk, action))
    job = await desk.claim_one()
    await desk.database.run(actions.begin_action(job, action, desk.clock()))
    return actions.keep_pre_image(job, action, LABELS, desk.clock())


async def complete_action(desk: Desk) -> Transaction[Any]:
    action = new_id()
    await desk.database.run(await _decision(desk, action))
    job = await desk.claim_one()
    await desk.database.run(actions.begin_action(job, action, desk.clock()))
    return actions.complete_action(job, action, frozenset(), {"add": ["INBOX"]}, desk.clock())


async def fail_action(desk: Desk) -> Transaction[Any]:
    action = new_id()
    await desk.database.run(await _decision(desk, action))
    return actions.fail_action(await desk.claim_one(), action, "refused", desk.clock())


async def end_orphans(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await _decision(desk, new_id()))
    job = await desk.claim_one()
    await desk.database.run(store.fail(job, "given up", desk.clock()))
    return actions.end_orphans(desk.clock())


CASES: list[Case] = [
    accept,
    lease,
    give_up,
    return_expired,
    keep_account,
    store_message,
    add_rules,
    disable_rule,
    record_decision,
    begin_action,
    keep_pre_image,
    complete_action,
    fail_action,
    end_orphans,
]

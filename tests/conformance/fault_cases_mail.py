"""For each writing verb of mail, rules and actions: a database in which it has something to do."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from conformance.desk import Desk
from conformance.fault_cases_inbox import ENDPOINT, leased_mail, leased_mails
from conformance.fault_cases_jobs import Case
from postroom.core.jobs.job import NewJob
from postroom.core.mail.message import read_mail
from postroom.store import actions, decisions, labels, mail, rules, search_backlog
from postroom.store import jobs as store
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from support.search import unindex

LABELS = frozenset({"INBOX"})


async def keep_account(desk: Desk) -> Transaction[Any]:
    return mail.keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", desk.clock())


async def store_message(desk: Desk) -> Transaction[Any]:
    return await _store_as(desk, new_id())


async def _store_as(desk: Desk, id: UUID) -> Transaction[Any]:
    account = await desk.database.run(await keep_account(desk))
    leased = await leased_mail(desk)
    classify = desk.new(key=f"classify:{id}")
    content = read_mail(leased.envelope)
    return mail.store_message(leased, account, (new_id(), id), content, lambda _id: classify, desk.clock())


def _classifying(desk: Desk) -> Callable[[UUID], NewJob]:
    return lambda id: desk.new(key=f"classify:{id}")


async def store_messages(desk: Desk) -> Transaction[Any]:
    account = await desk.database.run(await keep_account(desk))
    handed_over: list[mail.HandOver] = []
    for each in await leased_mails(desk):
        ids = (new_id(), new_id())
        handed_over.append(mail.HandOver(each, account, ids, read_mail(each.envelope), _classifying(desk)))
    return mail.store_messages(handed_over, desk.clock())


async def add_rules(desk: Desk) -> Transaction[Any]:
    new = [rules.NewRule(new_id(), name, "", {"subject": "x"}, "archive", {}) for name in ("a", "b")]
    return rules.add_rules(new, desk.clock())


async def disable_rule(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await add_rules(desk))
    (rule, *_) = await desk.database.run(rules.list_rules())
    return rules.disable_rule(rule.id, "broken", desk.clock())


async def decided_action(desk: Desk, action_id: UUID) -> Transaction[Any]:
    """The classify job of a stored message is claimed and decides."""
    message_id = new_id()
    await desk.database.run(await _store_as(desk, message_id))
    account = await desk.database.run(mail.account_of(ENDPOINT))
    job = await desk.claim_one()
    decision = decisions.Decision(
        new_id(), account.id, message_id, "deterministic", "archive", {}, 1.0, "a rule", rule_name="a"
    )
    follow_up = desk.new(key="action")
    action = decisions.NewAction(action_id, "rule", "queued", "hash", follow_up.id)
    return decisions.record_decision(job, decision, action, follow_up, desk.clock())


async def record_decision(desk: Desk) -> Transaction[Any]:
    return await decided_action(desk, new_id())


async def begin_action(desk: Desk) -> Transaction[Any]:
    action = new_id()
    await desk.database.run(await decided_action(desk, action))
    return actions.begin_action(await desk.claim_one(), action, 20, desk.clock())


async def keep_pre_image(desk: Desk) -> Transaction[Any]:
    action = new_id()
    await desk.database.run(await decided_action(desk, action))
    job = await desk.claim_one()
    await desk.database.run(actions.begin_action(job, action, 20, desk.clock()))
    return actions.keep_pre_image(job, action, LABELS, desk.clock(), [desk.new(key="wake")])


async def complete_action(desk: Desk) -> Transaction[Any]:
    action = new_id()
    await desk.database.run(await decided_action(desk, action))
    job = await desk.claim_one()
    await desk.database.run(actions.begin_action(job, action, 20, desk.clock()))
    return actions.complete_action(job, action, frozenset(), {"add": ["INBOX"]}, desk.clock())


async def fail_action(desk: Desk) -> Transaction[Any]:
    action = new_id()
    await desk.database.run(await decided_action(desk, action))
    return actions.fail_action(await desk.claim_one(), action, "refused", desk.clock())


async def end_orphans(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await decided_action(desk, new_id()))
    job = await desk.claim_one()
    await desk.database.run(store.fail(job, "given up", desk.clock()))
    return actions.end_orphans(desk.clock())


async def sync_labels(desk: Desk) -> Transaction[Any]:
    """One is new, one is gone, and with it goes a rule."""
    account = await desk.database.run(await keep_account(desk))
    seen = [labels.SeenLabel("L1", "Receipts", "user")]
    await desk.database.run(labels.sync_labels(account.id, seen, desk.clock()))
    rule = rules.NewRule(new_id(), "receipts", "", {"subject_contains": "x"}, "apply_label", {"label": "Receipts"})
    await desk.database.run(rules.add_rules([rule], desk.clock()))
    return labels.sync_labels(account.id, [labels.SeenLabel("L2", "Travel", "user")], desk.clock())


async def keep_label(desk: Desk) -> Transaction[Any]:
    account = await desk.database.run(await keep_account(desk))
    return labels.keep_label(account.id, labels.SeenLabel("L1", "Receipts", "user"), desk.clock())


async def index_older_mail(desk: Desk) -> Transaction[Any]:
    await desk.database.run(await _store_as(desk, new_id()))
    await unindex(desk.database)
    return search_backlog.index_older_mail()


CASES: list[Case] = [
    index_older_mail,
    sync_labels,
    keep_label,
    keep_account,
    store_message,
    store_messages,
    add_rules,
    disable_rule,
    record_decision,
    begin_action,
    keep_pre_image,
    complete_action,
    fail_action,
    end_orphans,
]

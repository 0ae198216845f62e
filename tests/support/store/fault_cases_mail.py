"""For each writing verb of mail, rules and actions: a database in which it has something to do."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.jobs.job import NewJob
from postroom.core.mail.message import read_mail
from postroom.core.moments import LONG_AGO
from postroom.core.rules.draft import RuleDraft
from postroom.store.actions import actions, decisions, hiding
from postroom.store.actions.actions import FAR_AHEAD
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.jobs import jobs as store
from postroom.store.mail import labels, mail, search_backlog
from postroom.store.people.audit import Signature
from postroom.store.rules import rules
from support import storing
from support.search import unindex
from support.store.fault_cases_inbox import ENDPOINT, leased_mail, leased_mails
from support.store.fault_cases_jobs import Case
from support.store.job_setup import JobSetup

LABELS = frozenset({"INBOX"})


async def keep_account(setup: JobSetup) -> Transaction[Any]:
    return mail.keep_account(new_id(), "gmail", ENDPOINT, "me@example.com", setup.clock())


async def store_message(setup: JobSetup) -> Transaction[Any]:
    return await _store_as(setup, new_id())


async def _store_as(setup: JobSetup, id: UUID) -> Transaction[Any]:
    account = await setup.database.run(await keep_account(setup))
    leased = await leased_mail(setup)
    classify = setup.new(key=f"classify:{id}")
    content = read_mail(leased.envelope)
    return storing.store_message(leased, account, (new_id(), id), content, lambda _id: classify, setup.clock())


def _classifying(setup: JobSetup) -> Callable[[UUID], NewJob]:
    return lambda id: setup.new(key=f"classify:{id}")


async def store_messages(setup: JobSetup) -> Transaction[Any]:
    account = await setup.database.run(await keep_account(setup))
    new: list[mail.NewMessage] = []
    for each in await leased_mails(setup):
        ids = (new_id(), new_id())
        new.append(mail.NewMessage(each, account, ids, read_mail(each.envelope), new_id(), _classifying(setup)))
    return mail.store_messages(new, setup.clock())


async def add_rules(setup: JobSetup) -> Transaction[Any]:
    new = [(new_id(), RuleDraft(name, {"subject": "x"}, "archive", {})) for name in ("a", "b")]
    return rules.add_rules(new, setup.clock())


async def disable_rule(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await add_rules(setup))
    (rule, *_) = await setup.database.run(rules.list_rules())
    return rules.disable_rule(rule.id, "broken", setup.clock())


async def decided_action(setup: JobSetup, action_id: UUID) -> Transaction[Any]:
    """The classify job of a stored message is claimed and decides."""
    message_id = new_id()
    await setup.database.run(await _store_as(setup, message_id))
    account = await setup.database.run(mail.account_of(ENDPOINT))
    job = await setup.claim_one()
    decision = decisions.Decision(
        new_id(), account.id, message_id, "deterministic", "archive", {}, 1.0, "a rule", rule_name="a"
    )
    follow_up = setup.new(key="action")
    action = decisions.NewAction(action_id, "model", "queued", "hash", follow_up.id, hides=True)
    caps = Policy().hiding_caps(setup.clock())
    return decisions.record_decision(job, decision, action, follow_up, setup.clock(), hiding=caps)


async def record_decision(setup: JobSetup) -> Transaction[Any]:
    return await decided_action(setup, new_id())


async def cancel_hiding(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await decided_action(setup, new_id()))
    signed = Signature(new_id(), "test", "admin")
    return hiding.cancel_hiding(None, LONG_AGO, FAR_AHEAD, signed, setup.clock())


async def begin_action(setup: JobSetup) -> Transaction[Any]:
    action = new_id()
    await setup.database.run(await decided_action(setup, action))
    return actions.begin_action(await setup.claim_one(), action, 20, setup.clock())


async def keep_pre_image(setup: JobSetup) -> Transaction[Any]:
    action = new_id()
    await setup.database.run(await decided_action(setup, action))
    job = await setup.claim_one()
    await setup.database.run(actions.begin_action(job, action, 20, setup.clock()))
    return actions.keep_pre_image(job, action, {"labels": sorted(LABELS)}, setup.clock(), [setup.new(key="wake")])


async def complete_action(setup: JobSetup) -> Transaction[Any]:
    action = new_id()
    await setup.database.run(await decided_action(setup, action))
    job = await setup.claim_one()
    await setup.database.run(actions.begin_action(job, action, 20, setup.clock()))
    return actions.complete_action(job, action, actions.DoneChange(frozenset(), {"add": ["INBOX"]}), setup.clock())


async def fail_action(setup: JobSetup) -> Transaction[Any]:
    action = new_id()
    await setup.database.run(await decided_action(setup, action))
    return actions.fail_action(await setup.claim_one(), action, "refused", setup.clock())


async def end_orphans(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await decided_action(setup, new_id()))
    job = await setup.claim_one()
    await setup.database.run(store.fail(job, "given up", setup.clock()))
    return actions.end_orphans(setup.clock())


async def sync_labels(setup: JobSetup) -> Transaction[Any]:
    """One is new, one is gone, and with it goes a rule."""
    account = await setup.database.run(await keep_account(setup))
    seen = [labels.SeenLabel("L1", "Receipts", "user")]
    await setup.database.run(labels.sync_labels(account.id, seen, setup.clock()))
    rule = (new_id(), RuleDraft("receipts", {"subject_contains": "x"}, "apply_label", {"label": "Receipts"}))
    await setup.database.run(rules.add_rules([rule], setup.clock()))
    return labels.sync_labels(account.id, [labels.SeenLabel("L2", "Travel", "user")], setup.clock())


async def keep_label(setup: JobSetup) -> Transaction[Any]:
    account = await setup.database.run(await keep_account(setup))
    return labels.keep_label(account.id, labels.SeenLabel("L1", "Receipts", "user"), setup.clock())


async def index_older_mail(setup: JobSetup) -> Transaction[Any]:
    await setup.database.run(await _store_as(setup, new_id()))
    await unindex(setup.database)
    return search_backlog.index_older_mail()


CASES: list[Case] = [
    index_older_mail,
    sync_labels,
    keep_label,
    keep_account,
    store_messages,
    add_rules,
    disable_rule,
    record_decision,
    cancel_hiding,
    begin_action,
    keep_pre_image,
    complete_action,
    fail_action,
    end_orphans,
]

"""For each writing verb of rules, guidance and labels' words: a database in which it has work to do."""

from typing import Any

from conformance.desk import Desk
from conformance.fault_cases_jobs import Case
from conformance.fault_cases_mail import keep_account
from conformance.fault_cases_registry import signed
from postroom.core.rules.draft import RuleDraft
from postroom.store import guidance, labels, rules
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id

SHOP = RuleDraft("shop", {"sender_domain": "shop.example"}, "archive")
CLUB = RuleDraft("club", {"list_id": "chess"}, "apply_label", {"label": "Club"})


async def keep_rules(desk: Desk) -> Transaction[Any]:
    """One is new, one takes the place of another, one is there already."""
    stored = [RuleDraft("shop", {"sender_domain": "x.example"}, "star"), CLUB]
    await kept(desk, *stored)
    drafts = [(new_id(), each) for each in (SHOP, CLUB, RuleDraft("new", {"has_attachment": True}, "star"))]
    return rules.keep_rules(drafts, "replace", "import", signed(), desk.clock())


async def kept(desk: Desk, *drafts: RuleDraft) -> None:
    given = [(new_id(), each) for each in drafts]
    await desk.database.run(rules.keep_rules(given, "refuse", "user", signed(), desk.clock()))


async def edit_rule(desk: Desk) -> Transaction[Any]:
    await kept(desk, SHOP)
    view = await desk.database.run(rules.load_rule("shop"))
    renamed = RuleDraft("shops", SHOP.conditions, "trash")
    return rules.edit_rule(view.id, view.version, renamed, signed(), desk.clock())


async def switch_rule(desk: Desk) -> Transaction[Any]:
    await kept(desk, SHOP)
    return rules.switch_rule("shop", False, signed(), desk.clock())


async def remove_rule(desk: Desk) -> Transaction[Any]:
    await kept(desk, SHOP)
    return rules.remove_rule("shop", signed(), desk.clock())


async def add_guidance(desk: Desk) -> Transaction[Any]:
    rule = guidance.ModelRule("school", "What the school sends is important.", "domain", "School.example")
    return guidance.add_guidance(new_id(), rule, signed(), desk.clock())


async def edit_guidance(desk: Desk) -> Transaction[Any]:
    before = await desk.database.run(await add_guidance(desk))
    after = guidance.ModelRule("schools", "Star it.", position=3)
    return guidance.edit_guidance(before, after, signed(), desk.clock.forward(1))


async def remove_guidance(desk: Desk) -> Transaction[Any]:
    before = await desk.database.run(await add_guidance(desk))
    return guidance.remove_guidance("model_rule", before.id, signed(), desk.clock())


async def edit_labels(desk: Desk) -> Transaction[Any]:
    account = await desk.database.run(await keep_account(desk))
    seen = [labels.SeenLabel("L1", "Receipts", "user"), labels.SeenLabel("L2", "Travel", "user")]
    await desk.database.run(labels.sync_labels(account.id, seen, desk.clock()))
    found = await desk.database.run(labels.list_all_labels())
    return labels.edit_labels(found, "what I paid for", False, signed(), desk.clock())


CASES: list[Case] = [
    keep_rules,
    edit_rule,
    switch_rule,
    remove_rule,
    add_guidance,
    edit_guidance,
    remove_guidance,
    edit_labels,
]

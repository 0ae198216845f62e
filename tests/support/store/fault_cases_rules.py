"""For each writing verb of rules, guidance and labels' words: a database in which it has work to do."""

from typing import Any
from uuid import UUID

from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.plan import Plan, make_plan
from postroom.store.engine.database import Transaction
from postroom.store.engine.ids import new_id
from postroom.store.mail import labels
from postroom.store.rules import guidance, rule_lists, rule_plans, rules
from support.store.fault_cases_jobs import Case
from support.store.fault_cases_mail import keep_account
from support.store.fault_cases_registry import signed
from support.store.job_setup import JobSetup

SHOP = RuleDraft("shop", {"sender_domain": "shop.example"}, "archive")
CLUB = RuleDraft("club", {"list_id": "chess"}, "apply_label", {"label": "Club"})


async def keep_rules(setup: JobSetup) -> Transaction[Any]:
    """One is new, one takes the place of another, one is there already."""
    stored = [RuleDraft("shop", {"sender_domain": "x.example"}, "star"), CLUB]
    await kept(setup, *stored)
    drafts = [(new_id(), each) for each in (SHOP, CLUB, RuleDraft("new", {"has_attachment": True}, "star"))]
    return rules.keep_rules(drafts, "replace", "import", signed(), setup.clock())


async def kept(setup: JobSetup, *drafts: RuleDraft) -> None:
    given = [(new_id(), each) for each in drafts]
    await setup.database.run(rules.keep_rules(given, "refuse", "user", signed(), setup.clock()))


async def edit_rule(setup: JobSetup) -> Transaction[Any]:
    await kept(setup, SHOP)
    view = await setup.database.run(rules.load_rule("shop"))
    renamed = RuleDraft("shops", SHOP.conditions, "trash")
    return rules.edit_rule(view.id, view.version, renamed, signed(), setup.clock())


async def confirm_rule(setup: JobSetup) -> Transaction[Any]:
    sends = RuleDraft("sends", SHOP.conditions, "forward", {"to": "ida@example.com"})
    by_token = signed()._replace(actor="token:7")
    await setup.database.run(rules.keep_rules([(new_id(), sends)], "refuse", "user", by_token, setup.clock()))
    view = await setup.database.run(rules.load_rule("sends"))
    return rules.confirm_rule(view.id, view.content_hash, signed(), setup.clock())


async def switch_rule(setup: JobSetup) -> Transaction[Any]:
    await kept(setup, SHOP)
    return rules.switch_rule("shop", False, signed(), setup.clock())


async def remove_rule(setup: JobSetup) -> Transaction[Any]:
    await kept(setup, SHOP)
    return rules.remove_rule("shop", signed(), setup.clock())


async def move_rule(setup: JobSetup) -> Transaction[Any]:
    """There is no room between the others, so that one of them moves on."""
    await kept(setup, SHOP, CLUB, RuleDraft("new", {"has_attachment": True}, "star"))
    view = await setup.database.run(rules.load_rule("new"))
    return rule_lists.move_rule(view.id, False, signed(), setup.clock())


async def apply_plan(setup: JobSetup) -> Transaction[Any]:
    """One is new, one is changed, one moves behind the new one, one is removed."""
    moving, old = (
        RuleDraft("moving", {"has_attachment": True}, "star"),
        RuleDraft("old", {"has_attachment": True}, "star"),
    )
    first = make_plan([SHOP, moving, old], [])
    await setup.database.run(rule_plans.apply_plan(first, _ids(first), signed(), setup.clock()))
    wanted = [RuleDraft("shop", SHOP.conditions, "trash"), RuleDraft("new", {"has_attachment": True}, "star"), moving]
    plan = make_plan(wanted, await setup.database.run(rules.list_rules()))
    return rule_plans.apply_plan(plan, _ids(plan), signed(), setup.clock())


def _ids(plan: Plan) -> list[UUID]:
    return [new_id() for _ in plan.changes]


async def add_guidance(setup: JobSetup) -> Transaction[Any]:
    rule = guidance.ModelRule("school", "What the school sends is important.", "domain", "School.example")
    return guidance.add_guidance(new_id(), rule, signed(), setup.clock())


async def edit_guidance(setup: JobSetup) -> Transaction[Any]:
    before = await setup.database.run(await add_guidance(setup))
    after = guidance.ModelRule("schools", "Star it.", position=3)
    return guidance.edit_guidance(before, after, signed(), setup.clock.forward(1))


async def remove_guidance(setup: JobSetup) -> Transaction[Any]:
    before = await setup.database.run(await add_guidance(setup))
    return guidance.remove_guidance("model_rule", before.id, signed(), setup.clock())


async def edit_labels(setup: JobSetup) -> Transaction[Any]:
    account = await setup.database.run(await keep_account(setup))
    seen = [labels.SeenLabel("L1", "Receipts", "user"), labels.SeenLabel("L2", "Travel", "user")]
    await setup.database.run(labels.sync_labels(account.id, seen, setup.clock()))
    found = await setup.database.run(labels.list_all_labels())
    return labels.edit_labels(found, "what I paid for", False, signed(), setup.clock())


CASES: list[Case] = [
    keep_rules,
    confirm_rule,
    edit_rule,
    switch_rule,
    remove_rule,
    move_rule,
    apply_plan,
    add_guidance,
    edit_guidance,
    remove_guidance,
    edit_labels,
]

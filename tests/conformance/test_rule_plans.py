"""Rules as code: a plan is carried out for exactly the rules that it was made for, and then nothing differs."""

import asyncio
from collections.abc import Sequence

import pytest

from postroom.core.errors import Conflict
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.plan import Plan
from postroom.operations.caller import Caller
from postroom.operations.rules.rule_plans import apply_rules, plan_rules
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.people.audit import Signature
from postroom.store.rules.rules import keep_rules, list_rules, switch_rule
from support.clocks import ManualClock


def signed() -> Signature:
    return Signature(new_id(), "cli:ada", "admin")


def rules(*names: str) -> list[RuleDraft]:
    return [RuleDraft(name, {"subject_contains": name}, "archive") for name in names]


async def applied(database: Database, drafts: Sequence[RuleDraft]) -> None:
    await apply_rules(Caller(database, signed()), await plan_rules(database, drafts))


async def differs(database: Database, drafts: Sequence[RuleDraft]) -> bool:
    return bool((await plan_rules(database, drafts)).changes)


async def names(database: Database) -> list[str]:
    return [view.name for view in await database.run(list_rules())]


async def test_of_two_plans_for_the_same_rules_one_is_carried_out(database: Database) -> None:
    await applied(database, rules("a", "b"))
    plans = [await plan_rules(database, rules(*wanted)) for wanted in ("abc", "abd")]
    ends = await asyncio.gather(*(_tried(database, plan) for plan in plans))
    assert sorted(ends) == ["applied", "refused"]
    assert await names(database) == ["a", "b", "cd"[ends.index("applied")]]


async def _tried(database: Database, plan: Plan) -> str:
    try:
        await apply_rules(Caller(database, signed()), plan)
    except Conflict:
        return "refused"
    return "applied"


async def test_a_plan_is_not_carried_out_after_any_change_by_hand(database: Database, clock: ManualClock) -> None:
    wanted = rules("a", "b", "c")
    await applied(database, rules("a", "b"))
    plan = await plan_rules(database, wanted)
    await database.run(switch_rule("a", False, signed(), clock()))
    with pytest.raises(Conflict, match="look at the plan again"):
        await apply_rules(Caller(database, signed()), plan)
    plan = await plan_rules(database, wanted)
    await database.run(keep_rules([(new_id(), rules("mine")[0])], "refuse", "user", signed(), clock()))
    with pytest.raises(Conflict, match="look at the plan again"):
        await apply_rules(Caller(database, signed()), plan)
    assert await names(database) == ["a", "b", "mine"]
    await applied(database, wanted)
    assert not await differs(database, wanted)

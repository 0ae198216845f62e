"""Rules as code: compare the stored rules with those in a file, and make them equal."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from postroom.core.access import OPERATE, READ
from postroom.core.rules.documents import RuleFile
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.plan import Plan, make_plan
from postroom.core.rules.rule_tests import TestResult, run_tests
from postroom.operations.caller import Caller
from postroom.operations.installation.database import prepare
from postroom.operations.nouns import RULES
from postroom.operations.operation import dialogue
from postroom.operations.preview.preview_rules import rules_of
from postroom.operations.rules.rules import known_labels, refuse_unknown_labels, with_resolved_scopes
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.engine.migrate import applied_migrations
from postroom.store.rules.rule_plans import apply_plan
from postroom.store.rules.rules import list_rules


def check_rules(file: RuleFile, now: datetime) -> list[TestResult]:
    """Run the tests in a file against its rules. No database is needed."""
    return run_tests(file.tests, rules_of(file.drafts), now)


@RULES.operation(READ, dialogue("rules diff"))
async def plan_rules(
    database: Database, /, drafts: Sequence[RuleDraft], *, prune_all: bool = False, allow_missing: bool = False
) -> Plan:
    """Compare the stored rules with these. Nothing is changed."""
    if not await database.run(applied_migrations()):
        return make_plan(drafts, ())
    found = await with_resolved_scopes(database, drafts)
    if not allow_missing:
        refuse_unknown_labels(found, await known_labels(database))
    return make_plan(found, await database.run(list_rules()), prune_all=prune_all)


@RULES.operation(OPERATE, dialogue("rules apply"))
async def apply_rules(by: Caller, /, plan: Plan) -> None:
    """Carry out the plan in one transaction, unless a rule was changed since it was made."""
    await prepare(by.database)
    drafts = [each.draft for each in plan.changes if each.draft is not None]
    resolved = {draft.name: draft for draft in await with_resolved_scopes(by.database, drafts)}
    changes = tuple(replace(each, draft=resolved.get(each.name)) for each in plan.changes)
    ids = [new_id() for _ in changes]
    await by.run(apply_plan(replace(plan, changes=changes), ids, by.signature, by.clock()))

"""Rules by their ids, as pages and programs change them: each answers with the rule as a list shows it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from postroom.core.access import ANSWER_AGAIN, OPERATE
from postroom.core.rules.draft import read_draft
from postroom.core.views import Done
from postroom.operations.caller import Caller
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, command, delete, dialogue, flow, form, post, put
from postroom.operations.rules import rules, shadow
from postroom.operations.rules.rule_matches import RuleMatcher, RuleMatches
from postroom.operations.rules.rule_views import RuleId, RuleLine, read_rule
from postroom.operations.rules.shadow import EndedShadow, ShadowScope
from postroom.store.rules import rule_lists
from postroom.store.rules import rules as store

DOCUMENT = "A rule as in a file: `name`, `if`, `then` or `actions`, and more (reference/rules.md)."
Document = Annotated[Mapping[str, Any], Argument(DOCUMENT)]
AllowMissing = Annotated[bool, Argument("Also if it has a condition on a label that no mailbox has.")]


@RULES.operation(OPERATE, post("/rules", status=201, once=True), flow("/rules/save"), dialogue("rules add"))
async def add_rule(by: Caller, /, rule: Document, allow_missing: AllowMissing = False) -> RuleLine:
    """Add a rule. Its name must be new. One that a token adds and that sends or deletes mail decides nothing until a
    person confirms it."""
    draft = read_draft(rule)
    await rules.add_rules(by, [draft], allow_missing=allow_missing)
    return await _load(by, (await rules.load_rule(by.database, draft.name)).id)


@RULES.operation(OPERATE, post("/rules/check"), flow("/rules/check"))
async def check_rule(matcher: RuleMatcher, /, rule: Document) -> RuleMatches:
    """Check a rule, and find the stored mail that it would match. Nothing is changed."""
    return await matcher.find(read_draft(rule))


@RULES.operation(OPERATE, put("/rules/{rule}"), flow("/rules/save"), dialogue("rules edit"))
async def replace_rule(
    by: Caller,
    /,
    rule: RuleId,
    document: Annotated[Mapping[str, Any], Argument(DOCUMENT, sent_as="rule")],
    version: Annotated[int, Argument("The version that the change is based on.", 1, 2**31)],
    allow_missing: AllowMissing = False,
) -> RuleLine:
    """Replace a rule, if it is still the version that was read. A repeated request is refused by its version."""
    draft, name = read_draft(document), await _name(by, rule)
    await rules.edit_rule(by, name, draft, version=version, allow_missing=allow_missing)
    return await _load(by, rule)


@RULES.operation(OPERATE, delete("/rules/{rule}"), flow("/rules/{rule}/remove"), command("rules remove {rule}"))
async def delete_rule(by: Caller, /, rule: RuleId) -> Done:
    """Remove a rule for good. Its past decisions stay recorded under its name."""
    await rules.remove_rule(by, await _name(by, rule))
    return Done("The rule is removed.")


@RULES.operation(
    OPERATE,
    post("/rules/{rule}/enable"),
    form("/rules/{rule}/enable", "“{rule.name}” is on: it decides about mail that comes in from now on."),
    command("rules enable {rule}", outcome=("rule.name", "enabled")),
)
async def enable_rule(by: Caller, /, rule: RuleId) -> RuleLine:
    """Enable a rule. An invalid rule has to be fixed first. Safe to repeat."""
    await rules.switch_rule(by, await _name(by, rule), True)
    return await _load(by, rule)


@RULES.operation(
    ANSWER_AGAIN,
    post("/rules/{rule}/confirm"),
    form("/rules/{rule}/confirm", "“{rule.name}” is confirmed: it decides about mail that comes in from now on."),
    dialogue("rules confirm"),
)
async def confirm_rule(
    by: Caller,
    /,
    rule: RuleId,
    shown: Annotated[str, Argument("The `content_hash` of the rule that the person was shown.", 64, 64)],
) -> RuleLine:
    """Let a rule decide that a token wrote and that sends or deletes mail, if it is still as it was shown. Safe to
    repeat."""
    await by.run(store.confirm_rule(rule, shown, by.signature, by.clock()))
    return await _load(by, rule)


@RULES.operation(
    OPERATE,
    post("/rules/{rule}/disable"),
    form(
        "/rules/{rule}/disable",
        "“{rule.name}” is off. What it did before stays as it is.",
        reason="switched off on the page",
    ),
    command("rules disable {rule}", outcome=("rule.name", "disabled")),
    signs=True,
)
async def disable_rule(by: Caller, /, rule: RuleId) -> RuleLine:
    """Disable a rule; it is kept. Safe to repeat."""
    await rules.switch_rule(by, await _name(by, rule), False)
    return await _load(by, rule)


def _describe_move(line: RuleLine, given: Mapping[str, Any]) -> str:
    return f"“{line.rule.name}” is tried {'later' if given['to'] == 'down' else 'earlier'} now."


@RULES.operation(OPERATE, post("/rules/{rule}/move"), form("/rules/{rule}/move", _describe_move))
async def move_rule(by: Caller, /, rule: RuleId, to: Literal["up", "down"]) -> RuleLine:
    """Try a rule one place earlier or later."""
    await by.run(rule_lists.move_rule(rule, to == "down", by.signature, by.clock()))
    return await _load(by, rule)


@RULES.operation(
    OPERATE,
    post("/rules/{rule}/watch"),
    form("/rules/{rule}/watch", "“{rule.name}” is in shadow: it decides, and nothing is done."),
)
async def begin_shadow(by: Caller, /, rule: RuleId) -> RuleLine:
    """Put a rule in shadow: it decides, and nothing is done. Safe to repeat."""
    await shadow.begin(by, ShadowScope("rule", await _name(by, rule)))
    return await _load(by, rule)


@RULES.operation(OPERATE, post("/rules/{rule}/act"), flow("/rules/{rule}/act"))
async def end_shadow(by: Caller, /, rule: RuleId) -> EndedShadow:
    """Take a rule out of shadow: what it decides is done. Safe to repeat."""
    return await shadow.end(by, ShadowScope("rule", await _name(by, rule)))


async def _name(by: Caller, rule: UUID) -> str:
    return (await by.run(rule_lists.rule_with_id(rule))).rule.name


async def _load(by: Caller, rule: UUID) -> RuleLine:
    return await read_rule(by.database, by.clock, rule)

"""Rules: in their order, with their hits, and the rules that Postroom proposes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pydantic import Field

from postroom.core.access import ANSWER_AGAIN, OPERATE
from postroom.core.rules.draft import read_draft
from postroom.core.rules.rule import ScopeName
from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Arguments, Done, Json, Nothing, Paged, Reason, Text
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened, sealed
from postroom.operations.rules import proposals, shadow
from postroom.operations.rules.proposals import ProposalLine
from postroom.operations.rules.rule_matches import RuleMatches
from postroom.operations.rules.rule_views import (
    RuleCounts,
    RuleLine,
    RuleState,
    list_lines,
    load_line,
    move_rule,
    read_place,
)
from postroom.operations.rules.rules import add_rules, confirm_rule, edit_rule, load_rule, remove_rule, switch_rule
from postroom.operations.rules.shadow import EndedShadow

RULES = Noun("Rules")
LIST = "rules"
DOCUMENT = "A rule as in a file: `name`, `if`, `then` or `actions`, and more (reference/rules.md)."


class RulesQuery(Paged):
    scope: ScopeName | None = Field(None, description="Only rules of this scope.")
    state: RuleState | None = Field(None, description="Only rules that are on, in shadow, or off.")


class RulePath(Arguments):
    rule: UUID = Field(description="The id of the rule.")


class ProposalPath(Arguments):
    proposal: UUID = Field(description="The id of the proposal.")


class NewRuleBody(Arguments):
    rule: Json = Field(description=DOCUMENT)
    allow_missing: bool = Field(False, description="Also if it has a condition on a label that no mailbox has.")


class EditedRuleBody(NewRuleBody):
    version: int = Field(ge=1, le=2**31, description="The version that the change is based on.")


class CheckedRuleBody(Arguments):
    rule: Json = Field(description=DOCUMENT)


class ConfirmBody(Arguments):
    shown: Text = Field(
        min_length=64, max_length=64, description="The `content_hash` of the rule that the person was shown."
    )


class MoveBody(Arguments):
    to: Literal["up", "down"]


class AcceptBody(Arguments):
    active: bool = Field(False, description="Let it act at once; otherwise it begins in shadow.")


@dataclass(frozen=True, slots=True)
class RulePage(Page[RuleLine]):
    """In the order in which they are tried. `decided` is how many decisions rules made in 7 days."""

    counts: RuleCounts
    decided: int


@dataclass(frozen=True, slots=True)
class ProposalsAnswer:
    proposals: Sequence[ProposalLine]


@RULES.get("/rules")
async def read_rules(call: Call, query: RulesQuery) -> RulePage:
    """The rules in the order in which they are tried."""
    after = opened(LIST, query.next)
    found = await list_lines(
        call.database,
        call.clock(),
        scope=query.scope,
        state=query.state,
        after=None if after is None else read_place(after),
        most=query.limit,
    )
    last = found.more_after
    cursor = sealed(LIST, None if last is None else f"{last.priority}_{last.id}")
    return RulePage(found.lines, cursor, found.counts, found.decided)


@RULES.post("/rules", OPERATE, status=201, once=True)
async def add_rule(call: Call, body: NewRuleBody) -> RuleLine:
    """Add a rule. Its name must be new. One that a token adds and that sends or deletes mail decides nothing until a
    person confirms it."""
    draft = read_draft(body.rule)
    await add_rules(call.by(), [draft], allow_missing=body.allow_missing)
    return await _load(call, (await load_rule(call.database, draft.name)).id)


@RULES.post("/rules/check", OPERATE)
async def check_rule(call: Call, body: CheckedRuleBody) -> RuleMatches:
    """Check a rule, and find the stored mail that it would match. Nothing is changed."""
    return await call.parts.matcher.find(read_draft(body.rule))


@RULES.get("/rules/proposals")
async def read_proposals(call: Call) -> ProposalsAnswer:
    """The newest rules that Postroom proposes from what the owner did by hand."""
    return ProposalsAnswer(await proposals.open_lines(call.database))


@RULES.post("/rules/proposals/{proposal}/accept", OPERATE)
async def accept_proposal(call: Call, path: ProposalPath, body: AcceptBody) -> Done:
    """Make a rule of a proposal, in shadow unless `active`."""
    await proposals.accept(call.by(), path.proposal, active=body.active)
    return Done(done="The proposal is a rule now." if body.active else "The proposal is a rule now, in shadow.")


@RULES.post("/rules/proposals/{proposal}/dismiss", OPERATE)
async def dismiss_proposal(call: Call, path: ProposalPath, body: Nothing) -> Done:
    """Dismiss a proposal: it is not made again."""
    await proposals.dismiss(call.by(), path.proposal)
    return Done(done="Dismissed; this rule is not proposed again.")


@RULES.get("/rules/{rule}")
async def read_rule(call: Call, path: RulePath) -> RuleLine:
    """One rule with its hits."""
    return await _load(call, path.rule)


@RULES.put("/rules/{rule}", OPERATE)
async def edit_rule_document(call: Call, path: RulePath, body: EditedRuleBody) -> RuleLine:
    """Replace a rule, if it is still the version that was read. A repeated request is refused by its version."""
    draft, name = read_draft(body.rule), await _name(call, path)
    await edit_rule(call.by(), name, draft, version=body.version, allow_missing=body.allow_missing)
    return await _load(call, path.rule)


@RULES.delete("/rules/{rule}", OPERATE)
async def delete_rule(call: Call, path: RulePath) -> Done:
    """Remove a rule for good. Its past decisions stay, and its text is in the audit log."""
    await remove_rule(call.by(), await _name(call, path))
    return Done(done="The rule is removed.")


@RULES.post("/rules/{rule}/enable", OPERATE)
async def enable_rule(call: Call, path: RulePath, body: Nothing) -> RuleLine:
    """Switch a rule on. Safe to repeat."""
    await switch_rule(call.by(), await _name(call, path), True)
    return await _load(call, path.rule)


@RULES.post("/rules/{rule}/confirm", ANSWER_AGAIN)
async def confirm_rule_as_shown(call: Call, path: RulePath, body: ConfirmBody) -> RuleLine:
    """Let a rule decide that a token wrote and that sends or deletes mail, if it is still as it was shown. Safe to
    repeat."""
    await confirm_rule(call.by(), path.rule, body.shown)
    return await _load(call, path.rule)


@RULES.post("/rules/{rule}/disable", OPERATE)
async def disable_rule(call: Call, path: RulePath, body: Reason) -> RuleLine:
    """Switch a rule off. Safe to repeat."""
    await switch_rule(call.by(body.reason), await _name(call, path), False)
    return await _load(call, path.rule)


@RULES.post("/rules/{rule}/move", OPERATE)
async def move_rule_by_one(call: Call, path: RulePath, body: MoveBody) -> RuleLine:
    """Try a rule one place earlier or later."""
    await move_rule(call.by(), path.rule, down=body.to == "down")
    return await _load(call, path.rule)


@RULES.post("/rules/{rule}/watch", OPERATE)
async def begin_shadow(call: Call, path: RulePath, body: Nothing) -> RuleLine:
    """Put a rule in shadow: it decides, and nothing is done. Safe to repeat."""
    scope = shadow.ShadowScope("rule", await _name(call, path))
    await shadow.begin(call.by(), scope)
    return await _load(call, path.rule)


@RULES.post("/rules/{rule}/act", OPERATE)
async def end_shadow(call: Call, path: RulePath, body: Nothing) -> EndedShadow:
    """Take a rule out of shadow: what it decides is done. Safe to repeat."""
    scope = shadow.ShadowScope("rule", await _name(call, path))
    return await shadow.end(call.by(), scope)


async def _name(call: Call, path: RulePath) -> str:
    return (await load_line(call.database, path.rule, call.clock())).rule.name


async def _load(call: Call, id: UUID) -> RuleLine:
    return await load_line(call.database, id, call.clock())

"""Rules that Postroom proposes from what the user does by hand: list, accept or dismiss them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from postroom.core.access import OPERATE, READ
from postroom.core.lifecycle import ProposalState
from postroom.core.rules.documents import write_documents
from postroom.core.rules.in_words import conditions_in_words
from postroom.core.rules.rule import RuleMode
from postroom.core.views import Done, Untrusted
from postroom.operations.caller import Caller
from postroom.operations.nouns import RULES
from postroom.operations.operation import Argument, Limit, command, flow, form, get, post
from postroom.operations.short_ids import found_by_id
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules import proposals as store
from postroom.store.rules.proposals import ProposalView
from postroom.words.actions import rule_does

MOST_SHOWN = 20
COLUMNS = ("id", "account", "name", "then", "why", "count", "state", "created_at")
WHY = {"repeated": "you do it by hand", "taken_back": "you took it back"}
ProposalId = Annotated[
    UUID,
    Argument("The id of the proposal, as the list shows it."),
    found_by_id("proposal", "postroom proposals list", "proposals"),
]


@dataclass(frozen=True, slots=True)
class AcceptedProposal:
    """The proposal, and the rule created from it."""

    id: UUID
    rule: Untrusted[str]
    rule_id: UUID
    mode: RuleMode


@dataclass(frozen=True, slots=True)
class ProposalLine:
    """A proposed rule in words, and why it is proposed."""

    id: UUID
    name: Untrusted[str]
    account: str
    when: Untrusted[str]
    does: Untrusted[str]
    because: str
    at: datetime


@RULES.operation(READ, get("/rules/proposals"))
async def read_proposals(database: Database, /) -> list[ProposalLine]:
    """The newest rules that Postroom proposes from what the owner did by hand."""
    return [
        ProposalLine(
            each.id,
            each.draft.name,
            each.account,
            conditions_in_words(each.draft.conditions),
            rule_does(each.draft.action_type, each.draft.parameters),
            _because(each.evidence),
            each.updated_at,
        )
        for each in await list_proposals(database, "open", MOST_SHOWN)
    ]


def _because(evidence: Mapping[str, Any]) -> str:
    count = int(evidence.get("count", 0))
    times = "once" if count == 1 else f"{count:,} times"
    return f"you took it back {times}" if evidence.get("kind") == "taken_back" else f"you did it by hand {times}"


def _row(view: ProposalView) -> Mapping[str, object]:
    return {
        "id": view.id,
        "account": view.account,
        "name": view.rule["name"],
        "then": view.rule["then"],
        "why": WHY.get(str(view.evidence.get("kind")), "-"),
        "count": view.evidence.get("count"),
        "state": view.state,
        "created_at": view.created_at,
        "rule": view.rule,
        "messages": view.evidence.get("messages"),
        "evidence": view.evidence,
        "rule_id": view.rule_id,
    }


def _text(view: ProposalView) -> str:
    """The rule as it would stand in a file."""
    return write_documents([view.draft], "yaml")


@RULES.operation(READ, command("proposals list", *COLUMNS, row=_row))
async def list_proposals(
    database: Database,
    /,
    state: Annotated[Literal[ProposalState, "all"], Argument("Which proposals.")] = "open",
    limit: Limit = 100,
) -> list[ProposalView]:
    """List proposed rules, newest first, and how often you did by hand what each would do."""
    return await database.run(store.list_proposals(None if state == "all" else state, limit))


@RULES.operation(READ, command("proposals show {proposal}", *COLUMNS, "messages", "rule_id", cells=_row, below=_text))
async def load_proposal(database: Database, /, proposal: ProposalId) -> ProposalView:
    """Show one proposal: the rule as it would stand in a file, and the evidence for it."""
    return await database.run(store.load_proposal(proposal))


def _outcome(accepted: AcceptedProposal) -> str:
    return f"{accepted.rule}  {'acts now' if accepted.mode == 'active' else 'decides in shadow now'}"


@RULES.operation(
    OPERATE,
    post("/rules/proposals/{proposal}/accept"),
    command("proposals accept {proposal}", line=_outcome),
    flow("/rules/proposals/{proposal}/accept"),
)
async def accept_proposal(
    by: Caller,
    /,
    proposal: ProposalId,
    active: Annotated[bool, Argument("Let it act at once instead of in shadow first.")] = False,
) -> AcceptedProposal:
    """Make a rule of a proposal. It runs in shadow until you end that, unless `active`."""
    rule_id = new_id()
    _, name = await by.run(store.accept_proposal(proposal, rule_id, not active, by.signature, by.clock()))
    return AcceptedProposal(proposal, name, rule_id, "active" if active else "shadow")


@RULES.operation(
    OPERATE,
    post("/rules/proposals/{proposal}/dismiss"),
    form("/rules/proposals/{proposal}/dismiss"),
    command("proposals dismiss {proposal}"),
    signs=True,
)
async def dismiss_proposal(by: Caller, /, proposal: ProposalId) -> Done:
    """Dismiss a proposal: it is not made again."""
    await by.run(store.dismiss_proposal(proposal, by.signature, by.clock()))
    return Done("Dismissed; this rule is not proposed again.")

"""Actions that wait for a yes. Only people answer, never a token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from postroom.core.access import ANSWER, ANSWER_AGAIN
from postroom.core.lifecycle import ActionState
from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Arguments, Nothing, Paged, Reason, Text
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened, sealed
from postroom.operations.actions.approvals import (
    MOST_AT_ONCE,
    ApprovalLine,
    SettledLine,
    SeveralAnswers,
    ShownApproval,
    answer_several,
    approve_shown,
    draft_rule,
    in_words,
    list_settled,
    reject,
    show_waiting,
)

APPROVALS = Noun("Approvals")
LIST = "approvals"


class ApprovalPath(Arguments):
    action: UUID = Field(description="The id of the action.")


class ShownBody(Arguments):
    shown: Text = Field(max_length=200, description="`action_hash` of the action as it was shown: a yes to it alone.")


class ChosenForm(Arguments):
    action: UUID
    shown: Text = Field(max_length=200, description="`action_hash` of the action as it was shown.")


class SeveralBody(Arguments):
    answer: Literal["approve", "reject"]
    chosen: list[ChosenForm] = Field(min_length=1, max_length=MOST_AT_ONCE)


@dataclass(frozen=True, slots=True)
class SettledAnswer:
    lines: Sequence[SettledLine]


@dataclass(frozen=True, slots=True)
class Answered:
    state: ActionState
    said: Annotated[str, "What comes of the answer, as a sentence."]


@dataclass(frozen=True, slots=True)
class DraftedAnswer:
    """The name of the rule, which is off until somebody switches it on."""

    rule: str


@APPROVALS.get("/approvals")
async def read_approvals(call: Call, query: Paged) -> Page[ApprovalLine]:
    """The actions that wait for a yes: what would happen, to whom, and why it is asked."""
    found = await show_waiting(call.database, opened(LIST, query.next), call.clock, query.limit)
    return Page(found.lines, sealed(LIST, found.further))


@APPROVALS.get("/approvals/settled")
async def read_settled_approvals(call: Call) -> SettledAnswer:
    """The answers of the last day, the newest first."""
    return SettledAnswer(await list_settled(call.database, call.clock))


@APPROVALS.post("/approvals/answers", ANSWER_AGAIN)
async def answer_approvals(call: Call, body: SeveralBody) -> SeveralAnswers:
    """Approve or reject several at once. One that no longer waits, or was changed, does not hold up the others."""
    chosen = [ShownApproval(each.action, each.shown) for each in body.chosen]
    return await answer_several(call.by(), chosen, body.answer == "approve")


@APPROVALS.post("/approvals/{action}/approve", ANSWER)
async def approve(call: Call, path: ApprovalPath, body: ShownBody) -> Answered:
    """Approve the action as it was shown. A second answer is refused."""
    answered = await approve_shown(call.by(), ShownApproval(path.action, body.shown))
    return Answered(answered.state, in_words(answered))


@APPROVALS.post("/approvals/{action}/reject", ANSWER)
async def reject_approval(call: Call, path: ApprovalPath, body: Reason) -> Answered:
    """End the action without doing it. A second answer is refused."""
    answered = await reject(call.by(body.reason), path.action)
    return Answered(answered.state, in_words(answered))


@APPROVALS.post("/approvals/{action}/always", ANSWER)
async def draft_rule_of_approval(call: Call, path: ApprovalPath, body: Nothing) -> DraftedAnswer:
    """Draft the rule that does this for all mail of the sender. It is off until somebody switches it on."""
    return DraftedAnswer(await draft_rule(call.by(), path.action))

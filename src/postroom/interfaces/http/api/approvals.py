"""Actions that wait for a yes. Only people answer, never a token."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from postroom.core.access import ANSWER, ANSWER_AGAIN
from postroom.core.lifecycle import ActionState
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.cursors import opened, sealed
from postroom.interfaces.http.api.forms import Answer, Arguments, Json, Nothing, Page, Paged, Reason, Seconds, Text
from postroom.interfaces.http.api.operation import Noun
from postroom.operations.actions.approvals import (
    MOST_AT_ONCE,
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


class UntrustedApproval(Answer):
    sender: str
    subject: str
    snippet: str
    parameters: Json
    rationale: str
    rule_name: str | None


class WaitingForm(Answer):
    id: UUID
    account: str
    message_id: UUID
    actor: str
    asked_by: str | None
    agent: str | None = Field(description="The name of the token that asked for it, if a token did and has one.")
    action_type: str
    state: ActionState
    action_hash: str
    reasons: list[str]
    expires_at: datetime | None
    created_at: datetime
    confidence: float | None
    model: str | None
    policy_tier: str | None
    approved_by: str | None
    untrusted: UntrustedApproval


class UntrustedNotice(Answer):
    what: str
    to_whom: list[str]
    decided_by: str
    why: list[str]


class NoticeForm(Answer):
    """The action in words. `is_whole` says that everything that would be done is in them."""

    is_whole: bool
    untrusted: UntrustedNotice


class UntrustedContent(Answer):
    content: str = Field(description="The text that would be sent, or a note that goes with it.")


class ApprovalForm(Answer):
    """An action that waits. `has_lapsed` says that its time is over, and that no answer counts any more."""

    approval: WaitingForm
    notice: NoticeForm
    undo: str
    may_become_rule: bool
    has_lapsed: bool
    untrusted: UntrustedContent


class ApprovalPage(Page):
    """Those that expire first at the top."""

    lines: list[ApprovalForm]


class SettledForm(Answer):
    approval: WaitingForm
    notice: NoticeForm
    waited_s: Seconds = Field(validation_alias="waited")
    at: datetime


class SettledAnswer(Answer):
    lines: list[SettledForm]


class AnsweredForm(Answer):
    state: ActionState
    said: str = Field(description="What comes of the answer, as a sentence.")


class SeveralAnswer(Answer):
    """How many answers counted, and why the others did not."""

    counted: int
    refused: dict[UUID, str]


class DraftedAnswer(Answer):
    """The name of the rule, which is off until somebody switches it on."""

    rule: str


@APPROVALS.get("/approvals")
async def read_approvals(call: Call, query: Paged) -> ApprovalPage:
    """The actions that wait for a yes: what would happen, to whom, and why it is asked."""
    found = await show_waiting(call.database, opened(LIST, query.next), call.clock, query.limit)
    return ApprovalPage(lines=[ApprovalForm.of(each) for each in found.lines], next=sealed(LIST, found.further))


@APPROVALS.get("/approvals/settled")
async def read_settled_approvals(call: Call) -> SettledAnswer:
    """The answers of the last day, the newest first."""
    return SettledAnswer(lines=[SettledForm.of(each) for each in await list_settled(call.database, call.clock)])


@APPROVALS.post("/approvals/answers", ANSWER_AGAIN)
async def answer_approvals(call: Call, body: SeveralBody) -> SeveralAnswer:
    """Approve or reject several at once. One that no longer waits, or was changed, does not hold up the others."""
    chosen = [ShownApproval(each.action, each.shown) for each in body.chosen]
    answered = await answer_several(call.database, chosen, body.answer == "approve", call.signed(), call.clock)
    return SeveralAnswer(counted=answered.counted, refused=dict(answered.refused))


@APPROVALS.post("/approvals/{action}/approve", ANSWER)
async def approve(call: Call, path: ApprovalPath, body: ShownBody) -> AnsweredForm:
    """Approve the action as it was shown. A second answer is refused."""
    answered = await approve_shown(call.database, ShownApproval(path.action, body.shown), call.signed(), call.clock)
    return AnsweredForm(state=answered.state, said=in_words(answered))


@APPROVALS.post("/approvals/{action}/reject", ANSWER)
async def reject_approval(call: Call, path: ApprovalPath, body: Reason) -> AnsweredForm:
    """End the action without doing it. A second answer is refused."""
    answered = await reject(call.database, path.action, call.signed(body.reason), call.clock)
    return AnsweredForm(state=answered.state, said=in_words(answered))


@APPROVALS.post("/approvals/{action}/always", ANSWER)
async def draft_rule_of_approval(call: Call, path: ApprovalPath, body: Nothing) -> DraftedAnswer:
    """Draft the rule that does this for all mail of the sender. It is off until somebody switches it on."""
    return DraftedAnswer(rule=await draft_rule(call.database, path.action, call.signed(), call.clock))

"""Actions that wait for approval, and the answers to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.access import ANSWER, ANSWER_AGAIN, READ
from postroom.core.actions.action import IRREVERSIBLE, SENDING
from postroom.core.actions.steps import steps_of
from postroom.core.errors import BadInput, IllegalMove, NotFound, Refused
from postroom.core.jobs.types import CATALOGUE
from postroom.core.lifecycle import ActionState
from postroom.core.rules.draft import LONGEST_NAME, RuleDraft
from postroom.core.short_ids import short_id
from postroom.core.views import Page, Untrusted
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_ids import ActionId
from postroom.operations.nouns import APPROVALS
from postroom.operations.operation import Argument, Limit, Next, command, dialogue, flow, form, get, post
from postroom.operations.people.tokens import actors_named
from postroom.operations.rules.rules import add_rules
from postroom.store.actions import approvals as store
from postroom.store.actions.approvals import AnsweredApproval
from postroom.store.actions.approvals import Approval as Approval
from postroom.store.engine.cursors import Cursor, read_cursor
from postroom.store.engine.database import Database
from postroom.system.wall_clock import Clock
from postroom.triage.act.approval_notice import ApprovalNotice, whole_content
from postroom.triage.act.approval_notice import notice_of as notice_of
from postroom.triage.act.approvals import Approvals, in_words

PAGE = 50
LATELY = timedelta(hours=24)
MOST_SETTLED = 20
MOST_AT_ONCE = 200
MOST_WAITING = 10_000
LONGEST_CONTENT = 20_000
GRACE_S = store.GRACE.seconds
ShownHash = Annotated[str, Argument("`action_hash` of the action as it was shown: you approve this one alone.", 0, 200)]


@dataclass(frozen=True, slots=True)
class ApprovalLine:
    """An action that waits: the notice in words, whether it can be taken back once it is done, and its hash."""

    approval: Approval
    notice: ApprovalNotice
    content: Annotated[Untrusted[str], "The text that would be sent, or a note that goes with it."]
    undo: str
    may_become_rule: bool
    has_lapsed: bool
    """Whether its time is over, so that no answer counts any more."""


@dataclass(frozen=True, slots=True)
class SettledLine:
    """An action that was answered, or that nobody answered in time."""

    approval: Approval
    notice: ApprovalNotice
    waited: timedelta
    at: datetime
    may_be_taken_back: Annotated[bool, "Whether it was rejected so lately that it can wait for an answer again."]


class ApprovalGroup(NamedTuple):
    """Waiting actions that do the same, for the same cause, with mail of the same sender; in the order in which they
    expire."""

    what: str
    sender: str
    decided_by: str
    members: Sequence[ApprovalLine]


class ShownApproval(NamedTuple):
    """An action as a person saw it: the answer holds for this hash only."""

    action: UUID
    shown: ShownHash


@dataclass(frozen=True, slots=True)
class Answered:
    """The state of an action after an answer."""

    state: ActionState
    said: Annotated[str, "What comes of the answer, as a sentence."]


@dataclass(frozen=True, slots=True)
class DraftedRule:
    """The name of the rule, which is off until somebody switches it on."""

    rule: str


@dataclass(frozen=True, slots=True)
class SeveralAnswers:
    """How many answers counted, and the reasons why the others did not."""

    counted: int
    refused: Mapping[UUID, str]


async def count_waiting(database: Database) -> int:
    """Count the actions that wait for approval, up to a thousand."""
    return await database.run(store.count_waiting())


@APPROVALS.operation(READ, get("/approvals"))
async def list_approvals(
    database: Database, clock: Clock, /, limit: Limit = PAGE, next: Next = None
) -> Page[ApprovalLine]:
    """The actions that need your approval: what would happen, to whom, and why they need it."""
    if next is None:
        found = await database.run(store.list_waiting(limit + 1))
    else:
        found = await database.run(store.list_waiting_after(read_cursor(next), limit + 1))
    last = found[limit - 1] if len(found) > limit else None
    further = None if last is None or last.expires_at is None else str(Cursor(last.expires_at, last.id))
    return Page([_line(each, clock()) for each in found[:limit]], further)


@APPROVALS.operation(READ, get("/approvals/settled"))
async def list_settled_approvals(database: Database, clock: Clock, /) -> list[SettledLine]:
    """The answers of the last day, the newest first."""
    now = clock()
    found = await database.run(store.list_answered(now - LATELY, MOST_SETTLED))
    return [_settled_line(each, now) for each in found]


def group_lines(lines: Iterable[ApprovalLine]) -> list[ApprovalGroup]:
    """Put those together that one look decides; the group whose first member expires first comes first."""
    groups: dict[tuple[str, str, str], list[ApprovalLine]] = {}
    for each in lines:
        key = (each.notice.what, each.notice.sender, each.notice.decided_by)
        groups.setdefault(key, []).append(each)
    return [ApprovalGroup(*key, members) for key, members in groups.items()]


@APPROVALS.operation(READ, dialogue("approvals list"))
async def list_by(database: Database, clock: Clock, /, by: str | None, most: int | None = None) -> list[ApprovalLine]:
    """List what waits because an agent asked for it, or the model: named as in `actors_named`; without a name, all."""
    actors = None if by is None else set(await actors_named(database, by))
    found = await database.run(store.list_waiting(MOST_WAITING))
    asked = [each for each in found if actors is None or (each.asked_by or each.actor) in actors]
    return [_line(each, clock()) for each in asked[:most]]


def approval_row(approval: Approval) -> dict[str, Any]:
    """An approval with its notice, as commands show it."""
    return {**asdict(approval), **asdict(notice_of(approval)), "short_id": short_id(approval.id)}


def whole_row(approval: Approval) -> dict[str, Any]:
    """Everything about an approval, uncut, so that it can be answered."""
    row = approval_row(approval)
    names = ("id", "account", "what", "to_whom", "sender", "subject", "parameters", "decided_by", "why", "state")
    return {name: row[name] for name in (*names, "expires_at", "answer", "action_hash")}


@APPROVALS.operation(READ, command("approvals show {action}", row=approval_row, cells=whole_row))
async def show_approval(database: Database, /, action: ActionId) -> Approval:
    """Show one action in full: exactly what would be done, who would receive it, and why."""
    return await database.run(store.show_approval(action))


@APPROVALS.operation(
    ANSWER,
    post("/approvals/{action}/approve"),
    form("/approvals/{action}/approve", "{said}", opens="action"),
    dialogue("approvals approve"),
)
async def approve_action(by: Caller, /, action: ActionId, shown: ShownHash) -> Answered:
    """Approve the action as it was shown. A second answer is refused."""
    return _require_in_time(await Approvals(by.database, CATALOGUE, by.clock).approve(action, shown, by.signature))


@APPROVALS.operation(
    ANSWER,
    post("/approvals/{action}/reject"),
    flow("/approvals/{action}/reject"),
    dialogue("approvals reject"),
    signs=True,
)
async def reject_action(by: Caller, /, action: ActionId) -> Answered:
    """End the action without doing it. A second answer is refused. For ten seconds it can be taken back."""
    return _require_in_time(await by.run(store.reject_action(action, by.signature, by.clock())))


@APPROVALS.operation(
    ANSWER,
    post("/approvals/{action}/take-back"),
    flow("/approvals/take-back"),
    command("approvals take-back {action}", line="{said}"),
)
async def take_back_rejection(by: Caller, /, action: ActionId) -> Answered:
    """Take a rejection back, within ten seconds: the action needs an answer again. Safe to repeat."""
    await by.run(store.take_back_rejection(action, by.signature, by.clock()))
    return Answered("approved_pending", "It needs your approval again.")


@APPROVALS.operation(
    ANSWER_AGAIN,
    post("/approvals/answers"),
    flow("/approvals/reject-several"),
    flow("/approvals/approve-several"),
    dialogue("approvals reject"),
)
async def answer_approvals(
    by: Caller,
    /,
    answer: Literal["approve", "reject"],
    chosen: Annotated[Sequence[ShownApproval], Argument(least=1, most=MOST_AT_ONCE)],
) -> SeveralAnswers:
    """Approve or reject several at once. One that no longer waits, or was changed, does not hold up the others."""
    if not chosen:
        raise BadInput("actions", "none is selected", "select at least one")
    if len(chosen) > MOST_AT_ONCE:
        raise BadInput("chosen", f"has {len(chosen)} actions", f"answer at most {MOST_AT_ONCE} at once")
    refused: dict[UUID, str] = {}
    for action, shown in chosen:
        own = by.again()
        try:
            await (approve_action(own, action, shown) if answer == "approve" else reject_action(own, action))
        except Refused:
            raise
        except (BadInput, IllegalMove, NotFound) as error:
            refused[action] = str(error)
    return SeveralAnswers(len(chosen) - len(refused), refused)


@APPROVALS.operation(
    ANSWER,
    post("/approvals/{action}/always"),
    form("/approvals/{action}/always", "Drafted as a rule, which is off until you switch it on under Rules: {rule}"),
)
async def draft_rule_of_approval(by: Caller, /, action: ActionId) -> DraftedRule:
    """Draft the rule that does this for all mail of the sender. It is off until somebody switches it on."""
    approval = await show_approval(by.database, action)
    if not _may_become_rule(approval):
        raise BadInput("rule", "cannot be made from this action", "write one on the page of rules")
    what = notice_of(approval).what
    name = f"{what[:1].upper()}{what[1:]}: mail from {approval.sender}"[: LONGEST_NAME - 9]
    draft = RuleDraft(
        f"{name} {approval.id.hex[-8:]}",
        {"sender_email": approval.sender},
        approval.action_type,
        approval.parameters,
        "Drafted from an action that waited for approval.",
        "account",
        str(approval.account_id),
    ).for_review()
    added = await add_rules(by, [draft])
    return DraftedRule(added.names[0])


def _line(approval: Approval, now: datetime) -> ApprovalLine:
    return ApprovalLine(
        approval,
        notice_of(approval),
        whole_content(approval, LONGEST_CONTENT),
        _undo(approval),
        _may_become_rule(approval),
        approval.expires_at is not None and approval.expires_at <= now,
    )


def _settled_line(approval: Approval, now: datetime) -> SettledLine:
    at = approval.updated_at or approval.created_at
    waited = at - approval.created_at
    return SettledLine(approval, notice_of(approval), waited, at, approval.may_be_taken_back(now))


def _may_become_rule(approval: Approval) -> bool:
    """A rule decided it already, or nobody knows from whom the mail is."""
    return approval.actor in ("model", "agent") and bool(approval.sender)


def _undo(approval: Approval) -> str:
    steps = [each.action_type for each in steps_of(approval.action_type, approval.parameters)]
    if any(each in SENDING for each in steps):
        return "None: mail that was sent stays sent"
    if any(each in IRREVERSIBLE for each in steps):
        return "None: it is gone for good"
    return "Yes, once it is done"


def _require_in_time(answered: AnsweredApproval) -> Answered:
    """Raise for an answer that came too late: it failed for the person who gave it, though the action has ended."""
    if answered.state not in ("queued", "rejected"):
        raise IllegalMove(in_words(answered))
    return Answered(answered.state, in_words(answered))

"""Actions that wait for approval, and the answers to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple
from uuid import UUID

from postroom.core.actions.action import IRREVERSIBLE, SENDING
from postroom.core.actions.steps import steps_of
from postroom.core.errors import BadInput, IllegalMove, NotFound, Refused
from postroom.core.jobs.types import CATALOGUE
from postroom.core.rules.draft import LONGEST_NAME, RuleDraft
from postroom.core.views import Untrusted
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_ids import find_action
from postroom.operations.people.tokens import actors_named
from postroom.operations.rules.rules import add_rules
from postroom.store.actions import approvals as store
from postroom.store.actions.approvals import AnsweredApproval, Approval
from postroom.store.engine.clock import Clock, wall_clock
from postroom.store.engine.cursors import Cursor, read_cursor
from postroom.store.engine.database import Database
from postroom.triage.act.approval_notice import ApprovalNotice, notice_of, whole_content
from postroom.triage.act.approvals import Approvals, in_words

__all__ = [
    "AnsweredApproval",
    "Approval",
    "ApprovalGroup",
    "ApprovalLine",
    "ApprovalPage",
    "SettledLine",
    "SeveralAnswers",
    "ShownApproval",
    "answer_several",
    "approve",
    "approve_shown",
    "count_waiting",
    "draft_rule",
    "find",
    "group_lines",
    "in_words",
    "list_by",
    "list_settled",
    "list_waiting",
    "notice_of",
    "reject",
    "show",
    "show_waiting",
]

PAGE = 50
LATELY = timedelta(hours=24)
MOST_SETTLED = 20
MOST_AT_ONCE = 200
MOST_WAITING = 10_000
LONGEST_CONTENT = 20_000


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
class ApprovalPage:
    """The waiting actions, those that expire first at the top; `further` is where the next page begins."""

    lines: Sequence[ApprovalLine]
    further: str | None


@dataclass(frozen=True, slots=True)
class SettledLine:
    """An action that was answered, or that nobody answered in time."""

    approval: Approval
    notice: ApprovalNotice
    waited: timedelta
    at: datetime


class ApprovalGroup(NamedTuple):
    """Waiting actions that do the same, for the same cause, with mail of the same sender; in the order in which they
    expire."""

    what: str
    sender: str
    decided_by: str
    members: Sequence[ApprovalLine]


class ShownApproval(NamedTuple):
    """An action as a person saw it: the answer holds for this hash only."""

    id: UUID
    action_hash: str


@dataclass(frozen=True, slots=True)
class SeveralAnswers:
    """How many answers counted, and the reasons why the others did not."""

    counted: int
    refused: Mapping[UUID, str]


async def list_waiting(database: Database, limit: int) -> list[Approval]:
    """List actions that wait for approval, those that expire first at the top."""
    return await database.run(store.list_waiting(limit))


async def count_waiting(database: Database) -> int:
    """Count the actions that wait for approval, up to a thousand."""
    return await database.run(store.count_waiting())


async def show_waiting(
    database: Database, after: str | None = None, clock: Clock = wall_clock, most: int = PAGE
) -> ApprovalPage:
    """Return a page of the actions that wait. Raise BadInput for a place that is none."""
    if after is None:
        found = await database.run(store.list_waiting(most + 1))
    else:
        found = await database.run(store.list_waiting_after(read_cursor(after), most + 1))
    last = found[most - 1] if len(found) > most else None
    further = None if last is None or last.expires_at is None else str(Cursor(last.expires_at, last.id))
    return ApprovalPage([_line(each, clock()) for each in found[:most]], further)


async def list_settled(database: Database, clock: Clock = wall_clock) -> list[SettledLine]:
    """List the answers of the last day, newest first."""
    found = await database.run(store.list_answered(clock() - LATELY, MOST_SETTLED))
    return [
        SettledLine(each, notice_of(each), (at := each.updated_at or each.created_at) - each.created_at, at)
        for each in found
    ]


def group_lines(lines: Iterable[ApprovalLine]) -> list[ApprovalGroup]:
    """Put those together that one look decides; the group whose first member expires first comes first."""
    groups: dict[tuple[str, str, str], list[ApprovalLine]] = {}
    for each in lines:
        key = (each.notice.what, each.notice.sender, each.notice.decided_by)
        groups.setdefault(key, []).append(each)
    return [ApprovalGroup(*key, members) for key, members in groups.items()]


async def list_by(
    database: Database, by: str | None, most: int | None = None, clock: Clock = wall_clock
) -> list[ApprovalLine]:
    """List what waits because an agent asked for it, or the model: named as in `actors_named`; without a name, all."""
    actors = None if by is None else set(await actors_named(database, by))
    found = await database.run(store.list_waiting(MOST_WAITING))
    asked = [each for each in found if actors is None or (each.asked_by or each.actor) in actors]
    return [_line(each, clock()) for each in asked[:most]]


async def show(database: Database, id: UUID) -> Approval:
    return await database.run(store.show_approval(id))


async def find(database: Database, name: str) -> Approval:
    """Find the action with this id, of which some digits are enough. Raise BadInput if several may be meant."""
    return await show(database, await find_action(database, name, "ID"))


async def approve(by: Caller, shown: Approval) -> AnsweredApproval:
    """Approve the action as it was shown. Raise IllegalMove if the answer comes too late."""
    return await approve_shown(by, ShownApproval(shown.id, shown.action_hash))


async def approve_shown(by: Caller, shown: ShownApproval) -> AnsweredApproval:
    """Approve the action with the hash that was shown. Raise Conflict if it has another, IllegalMove if too late."""
    answered = await Approvals(by.database, CATALOGUE, by.clock).approve(shown.id, shown.action_hash, by.signature)
    return _counted(shown.id, answered)


async def reject(by: Caller, id: UUID) -> AnsweredApproval:
    """End the action without doing it. Raise IllegalMove if the answer comes too late."""
    return _counted(id, await by.run(store.reject_action(id, by.signature, by.clock())))


async def answer_several(by: Caller, shown: Sequence[ShownApproval], is_yes: bool) -> SeveralAnswers:
    """Answer each of them alike; one that no longer waits, or was changed, does not hold up the others."""
    if not shown:
        raise BadInput("actions", "none is selected", "select at least one")
    if len(shown) > MOST_AT_ONCE:
        raise BadInput("chosen", f"has {len(shown)} actions", f"answer at most {MOST_AT_ONCE} at once")
    refused: dict[UUID, str] = {}
    for each in shown:
        own = by.again()
        try:
            await (approve_shown(own, each) if is_yes else reject(own, each.id))
        except Refused:
            raise
        except (BadInput, IllegalMove, NotFound) as error:
            refused[each.id] = str(error)
    return SeveralAnswers(len(shown) - len(refused), refused)


async def draft_rule(by: Caller, id: UUID) -> str:
    """Write the rule that does this for all mail of the sender, switched off; return its name."""
    approval = await show(by.database, id)
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
    return added.names[0]


def _line(approval: Approval, now: datetime) -> ApprovalLine:
    return ApprovalLine(
        approval,
        notice_of(approval),
        whole_content(approval, LONGEST_CONTENT),
        _undo(approval),
        _may_become_rule(approval),
        approval.expires_at is not None and approval.expires_at <= now,
    )


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


def _counted(id: UUID, answered: AnsweredApproval) -> AnsweredApproval:
    """Raise for an answer that came too late: it failed for the person who gave it, though the action has ended."""
    if answered.state not in ("queued", "rejected"):
        raise IllegalMove(f"action {id}: {in_words(answered)}")
    return answered

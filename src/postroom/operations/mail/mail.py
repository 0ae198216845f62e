"""Mail and events, as callers ask for them: the list, one message, and what can be done about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from postroom.core.access import ANSWER, OPERATE, READ, STEER
from postroom.core.actions.safety import Policy
from postroom.core.lifecycle import ActionState
from postroom.core.mail.categories import CATEGORIES
from postroom.core.mail.search import LONGEST_QUERY
from postroom.core.views import Done
from postroom.operations.actions.corrections import Correction, undo_and_learn
from postroom.operations.actions.undo import undo_action, undo_words
from postroom.operations.caller import Caller
from postroom.operations.mail.mail_actions import ActionOutcome, read_actions, request_action
from postroom.operations.mail.mail_ids import ActionId, MessageName, find_message
from postroom.operations.mail.mail_lines import TIERS, MailPage, MailQuestion, count_states, list_lines, read_since
from postroom.operations.mail.mail_page import EventDetail, MailDetail, show_message
from postroom.operations.mail.reclassify import Reclassified, reclassify
from postroom.operations.nouns import MAIL
from postroom.operations.operation import Argument, Limit, Next, dialogue, flow, form, get, post
from postroom.store.engine.database import Database
from postroom.store.mail.mail_lists import StateCounts
from postroom.system.wall_clock import Clock

MOST_ACTIONS, LONGEST_ACTION = 10, 1_000


@dataclass(frozen=True, slots=True)
class UndoAnswer(Done):
    """The undo of an action: the same for every request, until it fails."""

    state: Annotated[ActionState, "queued, executing, or completed if it was undone before."]
    job: Annotated[UUID, "The job that undoes it."]


@dataclass(frozen=True, slots=True)
class MessageAnswer:
    message: MailDetail | EventDetail


@MAIL.operation(READ, get("/mail"))
async def list_mail(
    caller: Caller,
    policy: Policy,
    /,
    q: Annotated[str | None, Argument("Words to search for.", most=LONGEST_QUERY)] = None,
    kind: Annotated[Literal["all", "mail", "event"], Argument("Mail, events, or both.")] = "all",
    tier: Annotated[str | None, Argument(f"One of {', '.join(TIERS)}.")] = None,
    state: Annotated[Literal["asking", "failed", "undone", "done"] | None, Argument("What became of it.")] = None,
    by: Annotated[Literal["rule", "model", "you", "agent"] | None, Argument("Who decided.")] = None,
    account: Annotated[str | None, Argument("The address or the id of an account.")] = None,
    category: Annotated[str | None, Argument(f"One of {', '.join(CATEGORIES)}.")] = None,
    since: Annotated[str | None, Argument("1h, 24h, 7d, 30d, or a time such as 2026-11-01.")] = None,
    limit: Limit = 50,
    next: Next = None,
) -> MailPage:
    """List mail and events, the newest first, with what was decided and what became of it."""
    begin = None if since is None else read_since(since, caller.clock(), policy.zone)
    asked = MailQuestion(q, kind, tier, state, by, account, begin, next, category)
    page = await list_lines(caller.database, asked, limit)
    await caller.audit_read("mail.search", "account", account or "all", found=len(page.lines))
    return page


@MAIL.operation(READ, get("/mail/counts"))
async def count_mail(database: Database, clock: Clock, /) -> StateCounts:
    """Count the actions that need approval, and those that failed or were undone in the last seven days."""
    return await count_states(database, clock)


@MAIL.operation(READ, get("/mail/{message}"))
async def read_message(by: Caller, policy: Policy, /, message: MessageName) -> MessageAnswer:
    """Read one message or event: its content, the decisions about it, its actions, and its story."""
    shown = await show_message(by.database, message, policy)
    if isinstance(shown, MailDetail):
        await by.audit_read("mail.read", "message", str(shown.id), level="full")
    return MessageAnswer(shown)


@MAIL.operation(
    ANSWER, post("/mail/{message}/actions", status=202, once=True), flow("/mail/{message}/do"), dialogue("do")
)
async def act_on_message(
    by: Caller,
    policy: Policy,
    /,
    message: MessageName,
    actions: Annotated[
        Sequence[Annotated[str, Argument(most=LONGEST_ACTION)]],
        Argument("What to do, as one: such as `archive`, `apply_label Receipts`, `snooze 3d`.", 1, MOST_ACTIONS),
    ],
) -> ActionOutcome:
    """Do something with a message. It is a person's own act, so no token may: programs propose actions over MCP."""
    return await request_action(by, message, read_actions(actions), policy)


def _describe_reclassified(asked: Reclassified, _given: Mapping[str, Any]) -> str:
    return "It is decided again, by today's rules and model." if asked.messages else "It is in line already."


def _describe_correction(corrected: Correction, _given: Mapping[str, Any]) -> str:
    learned = f"proposed as a rule: {corrected.proposed}" if corrected.proposed else "no rule could be proposed"
    return f"It is being undone; {learned}."


@MAIL.operation(
    OPERATE, post("/mail/{message}/reclassify", status=202), form("/mail/{message}/reclassify", _describe_reclassified)
)
async def reclassify_message(by: Caller, /, message: MessageName) -> Reclassified:
    """Decide again about a message, by today's rules and model. Safe to repeat while it is in line."""
    return await reclassify(by, [await find_message(by.database, message)])


@MAIL.operation(
    STEER, post("/actions/{action}/undo", status=202), form("/mail/{message}/undo", opens="action"), dialogue("undo")
)
async def undo(by: Caller, /, action: ActionId) -> UndoAnswer:
    """Take an action back. Safe to repeat: it is undone once, by the same job."""
    requested = await undo_action(by, action)
    return UndoAnswer(undo_words(requested), requested.state, requested.job_id)


@MAIL.operation(
    ANSWER,
    post("/actions/{action}/wrong", status=202),
    form("/mail/{message}/wrong", _describe_correction, opens="action_id"),
)
async def undo_wrong(by: Caller, /, action: ActionId) -> Correction:
    """Take back what a decision did, and let Postroom propose a rule that would have prevented it."""
    return await undo_and_learn(by, action)

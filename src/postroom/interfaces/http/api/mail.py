"""Mail and events: what came in, what was decided and why, and what can be done about it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from postroom.core.access import ANSWER, OPERATE, STEER
from postroom.core.lifecycle import ActionState
from postroom.core.mail.categories import CATEGORIES
from postroom.core.mail.search import LONGEST_QUERY
from postroom.core.views import Page
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.forms import Arguments, Done, Filter, Nothing, Paged, Text
from postroom.interfaces.http.api.handwritten import Noun
from postroom.interfaces.http.cursors import opened, sealed
from postroom.operations.actions.corrections import Correction, undo_and_learn
from postroom.operations.actions.undo import undo_action, undo_words
from postroom.operations.mail.mail_actions import ActionOutcome, read_actions, request_action
from postroom.operations.mail.mail_ids import find_message
from postroom.operations.mail.mail_lines import (
    TIERS,
    MailLine,
    MailQuestion,
    StateCounts,
    count_states,
    list_lines,
    read_since,
)
from postroom.operations.mail.mail_page import EventDetail, MailDetail, show_message
from postroom.operations.mail.reclassify import Reclassified, reclassify

MAIL = Noun("Mail and events")
LIST = "mail"
MOST_ACTIONS = 10


class MailQuery(Paged):
    q: Text | None = Field(None, min_length=1, max_length=LONGEST_QUERY, description="Words to search for.")
    kind: Literal["all", "mail", "event"] = Field("all", description="Mail, events, or both.")
    tier: Filter | None = Field(None, description=f"One of {', '.join(TIERS)}.")
    state: Literal["asking", "failed", "undone", "done"] | None = Field(None, description="What became of it.")
    by: Literal["rule", "model", "you", "agent"] | None = Field(None, description="Who decided.")
    account: Filter | None = Field(None, description="The address or the id of an account.")
    category: Filter | None = Field(None, description=f"One of {', '.join(CATEGORIES)}.")
    since: Filter | None = Field(None, description="1h, 24h, 7d, 30d, or a time such as 2026-11-01.")


class MessagePath(Arguments):
    message: Text = Field(
        min_length=1, max_length=998, description="An id of the message: ours, short or whole, Gmail's, or Message-ID."
    )


class ActionPath(Arguments):
    action: UUID = Field(description="The id of the action.")


class ActionsBody(Arguments):
    actions: list[Annotated[Text, Field(min_length=1, max_length=1_000)]] = Field(
        min_length=1,
        max_length=MOST_ACTIONS,
        description="What to do, as one: such as `archive`, `apply_label Receipts`, `snooze 3d`.",
    )


@dataclass(frozen=True, slots=True)
class MailPage(Page[MailLine]):
    """The newest first. `looked_back_to` is how far a search has looked, if it did not look at everything; while
    `is_indexing`, older mail may be missing."""

    looked_back_to: datetime | None
    is_indexing: bool


@dataclass(frozen=True, slots=True)
class UndoAnswer(Done):
    """The undo of an action: the same for every request, until it fails."""

    state: Annotated[ActionState, "queued, executing, or completed if it was undone before."]
    job: Annotated[UUID, "The job that undoes it."]


@dataclass(frozen=True, slots=True)
class MessageAnswer:
    message: MailDetail | EventDetail


@MAIL.get("/mail")
async def read_mail_list(call: Call, query: MailQuery) -> MailPage:
    """Mail and events, the newest first, with what was decided and what became of it."""
    since = None if query.since is None else read_since(query.since, call.clock(), call.parts.policy.zone)
    before = opened(LIST, query.next)
    asked = MailQuestion(
        query.q, query.kind, query.tier, query.state, query.by, query.account, since, before, query.category
    )
    page = await list_lines(call.database, asked, query.limit)
    await call.audit_read("mail.search", "account", query.account or "all", found=len(page.lines))
    return MailPage(page.lines, sealed(LIST, page.older), page.looked_back_to, page.is_indexing)


@MAIL.get("/mail/counts")
async def read_mail_counts(call: Call) -> StateCounts:
    """How many actions wait for a yes, and how many failed or were undone in the last seven days."""
    return await count_states(call.database, call.clock)


@MAIL.get("/mail/{message}")
async def read_message(call: Call, path: MessagePath) -> MessageAnswer:
    """One message or event: its content, the decisions about it, its actions, and its story."""
    shown = await show_message(call.database, path.message, call.parts.policy)
    if isinstance(shown, MailDetail):
        await call.audit_read("mail.read", "message", str(shown.id), level="full")
    return MessageAnswer(shown)


@MAIL.post("/mail/{message}/actions", ANSWER, status=202, once=True)
async def act_on_message(call: Call, path: MessagePath, body: ActionsBody) -> ActionOutcome:
    """Do something with a message. It is a person's own act, so no token may: programs propose actions over MCP."""
    steps = read_actions(body.actions)
    return await request_action(call.by(), path.message, steps, call.parts.policy)


@MAIL.post("/mail/{message}/reclassify", OPERATE, status=202)
async def reclassify_message(call: Call, path: MessagePath, body: Nothing) -> Reclassified:
    """Decide again about a message, by today's rules and model. Safe to repeat while it is in line."""
    message = await find_message(call.database, path.message)
    return await reclassify(call.by(), [message], None)


@MAIL.post("/actions/{action}/undo", STEER, status=202)
async def undo(call: Call, path: ActionPath, body: Nothing) -> UndoAnswer:
    """Take an action back. Safe to repeat: it is undone once, by the same job."""
    undo = await undo_action(call.by(), path.action)
    return UndoAnswer(undo_words(undo), undo.state, undo.job_id)


@MAIL.post("/actions/{action}/wrong", ANSWER, status=202)
async def undo_wrong(call: Call, path: ActionPath, body: Nothing) -> Correction:
    """Take back what a decision did, and let Postroom propose a rule that would have prevented it."""
    return await undo_and_learn(call.by(), path.action)

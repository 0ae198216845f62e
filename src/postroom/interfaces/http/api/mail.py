"""Mail and events: what came in, what was decided and why, and what can be done about it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from pydantic import BeforeValidator, Field

from postroom.core.access import ANSWER, OPERATE, STEER
from postroom.core.lifecycle import ActionState
from postroom.core.mail.categories import CATEGORIES
from postroom.core.mail.search import LONGEST_QUERY
from postroom.interfaces.http.api.call import Call
from postroom.interfaces.http.api.cursors import opened, sealed
from postroom.interfaces.http.api.forms import Answer, Arguments, Done, Filter, Nothing, Page, Paged, Text
from postroom.interfaces.http.api.operation import Noun
from postroom.operations.actions.corrections import undo_and_learn
from postroom.operations.actions.undo import undo_action, undo_words
from postroom.operations.mail.mail_actions import read_actions, request_action
from postroom.operations.mail.mail_ids import find_message
from postroom.operations.mail.mail_lines import TIERS, MailQuestion, count_states, list_lines, read_since
from postroom.operations.mail.mail_page import EventDetail, show_message
from postroom.operations.mail.reclassify import reclassify

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


class UntrustedLine(Answer):
    sender: str
    sender_name: str
    subject: str
    what: str
    by: str
    why: str
    error: str
    excerpt: str


class MailLineForm(Answer):
    """A message or an event. `undo_id` is the action that can be taken back now."""

    id: UUID
    short_id: str
    kind: Literal["mail", "event"]
    at: datetime
    account: str
    tier: str
    tier_rule: str
    why_tier: str
    state: str
    undo_id: UUID | None
    is_in_inbox: bool
    untrusted: UntrustedLine


class MailPage(Page):
    """The newest first. `looked_back_to` is how far a search has looked, if it did not look at everything; while
    `is_indexing`, older mail may be missing."""

    lines: list[MailLineForm]
    looked_back_to: datetime | None
    is_indexing: bool


class MailCounts(Answer):
    """Counted up to a thousand."""

    asking: int
    failed: int
    undone: int


@dataclass(frozen=True, slots=True)
class UndoForm(Done):
    """The undo of an action: the same for every request, until it fails."""

    state: Annotated[ActionState, "queued, executing, or completed if it was undone before."]
    job: Annotated[UUID, "The job that undoes it."]


def _weighed(given: Any) -> object:
    """Read an alternative as the views have it, an action and a confidence."""
    pair = cast("tuple[str, float]", given)
    return {"what": pair[0], "confidence": pair[1]} if isinstance(given, tuple) else given


class AlternativeForm(Answer):
    """Another action that the model weighed, and its confidence in it."""

    what: str
    confidence: float


class UntrustedDecision(Answer):
    what: str
    by: str
    why: str
    other_rules: list[str]
    alternatives: list[Annotated[AlternativeForm, BeforeValidator(_weighed)]]


class DecisionForm(Answer):
    """A decision, how sure the model was, and how sure it had to be."""

    at: datetime
    model: str | None
    confidence: float | None
    needed: float | None
    verdict: str
    reasons: list[str]
    is_shadow: bool
    untrusted: UntrustedDecision


class UntrustedAction(Answer):
    what: str
    by: str
    error: str


class ActionForm(Answer):
    """An action. `action_hash` is set while it waits for a yes, which holds for exactly this action."""

    id: UUID
    short_id: str
    at: datetime
    state: str
    can_be_undone: bool
    why_not: str
    action_hash: str | None
    expires_at: datetime | None
    untrusted: UntrustedAction


class StoryLineForm(Answer):
    at: datetime | None
    text: str


class FileForm(Answer):
    name: str
    size: int | None


def _pair(given: Any) -> object:
    """Read a header as the views have it, a name and a value."""
    pair = cast("tuple[str, str]", given)
    return {"name": pair[0], "value": pair[1]} if isinstance(given, tuple) else given


class HeaderForm(Answer):
    name: str
    value: str


class UntrustedMail(Answer):
    subject: str
    sender: str
    sender_name: str
    headers: list[Annotated[HeaderForm, BeforeValidator(_pair)]]
    labels: list[str]
    attachments: list[FileForm]
    text: str
    story: list[StoryLineForm]


class MailForm(Answer):
    """A message. Without a text, `no_text` says why; `is_cut` says that it is longer."""

    kind: Literal["mail"] = "mail"
    id: UUID
    short_id: str
    account: str
    sent_at: datetime
    arrived_at: datetime
    tier: str
    is_gone: bool
    is_cut: bool
    no_text: str
    decisions: list[DecisionForm]
    shadows: list[DecisionForm]
    actions: list[ActionForm]
    provider_message_id: str
    untrusted: UntrustedMail


class UntrustedEvent(Answer):
    event_kind: str | None
    text: str


class EventForm(Answer):
    """An event of a queue, or mail that is not stored yet."""

    kind: Literal["event"] = "event"
    line: MailLineForm
    queue: str
    channel: str
    attempts: int
    ended_at: datetime | None
    linked_to: UUID | None
    untrusted: UntrustedEvent


class MessageAnswer(Answer):
    message: Annotated[MailForm | EventForm, Field(discriminator="kind")]


class UntrustedOutcome(Answer):
    what: str


class ActionOutcomeForm(Answer):
    """How far the action has got. It is done by a worker: ask for the message again to see its end."""

    action_id: UUID
    message_id: UUID
    state: ActionState
    untrusted: UntrustedOutcome


class UntrustedCorrection(Answer):
    proposed: str | None


class CorrectionForm(Answer):
    """The action that is taken back, and the name of the rule that is proposed, if one could be made."""

    action_id: UUID
    untrusted: UntrustedCorrection


class ReclassifiedForm(Answer):
    """`messages` is 0 if it is in line already."""

    messages: int
    batch_id: UUID


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
    return MailPage(
        lines=[MailLineForm.of(each) for each in page.lines],
        looked_back_to=page.looked_back_to,
        is_indexing=page.is_indexing,
        next=sealed(LIST, page.older),
    )


@MAIL.get("/mail/counts")
async def read_mail_counts(call: Call) -> MailCounts:
    """How many actions wait for a yes, and how many failed or were undone in the last seven days."""
    return MailCounts.of(await count_states(call.database, call.clock))


@MAIL.get("/mail/{message}")
async def read_message(call: Call, path: MessagePath) -> MessageAnswer:
    """One message or event: its content, the decisions about it, its actions, and its story."""
    shown = await show_message(call.database, path.message, call.parts.policy)
    if isinstance(shown, EventDetail):
        return MessageAnswer(message=EventForm.of(shown))
    await call.audit_read("mail.read", "message", str(shown.id), level="full")
    return MessageAnswer(message=MailForm.of(shown))


@MAIL.post("/mail/{message}/actions", ANSWER, status=202, once=True)
async def act_on_message(call: Call, path: MessagePath, body: ActionsBody) -> ActionOutcomeForm:
    """Do something with a message. It is a person's own act, so no token may: programs propose actions over MCP."""
    steps = read_actions(body.actions)
    asked = await request_action(call.database, path.message, steps, call.parts.policy, call.signed(), call.clock)
    return ActionOutcomeForm.of(asked)


@MAIL.post("/mail/{message}/reclassify", OPERATE, status=202)
async def reclassify_message(call: Call, path: MessagePath, body: Nothing) -> ReclassifiedForm:
    """Decide again about a message, by today's rules and model. Safe to repeat while it is in line."""
    message = await find_message(call.database, path.message)
    return ReclassifiedForm.of(await reclassify(call.database, [message], None, call.signed(), clock=call.clock))


@MAIL.post("/actions/{action}/undo", STEER, status=202)
async def undo(call: Call, path: ActionPath, body: Nothing) -> UndoForm:
    """Take an action back. Safe to repeat: it is undone once, by the same job."""
    undo = await undo_action(call.database, path.action, call.signed(), call.clock)
    return UndoForm(done=undo_words(undo), state=undo.state, job=undo.job_id)


@MAIL.post("/actions/{action}/wrong", ANSWER, status=202)
async def undo_wrong(call: Call, path: ActionPath, body: Nothing) -> CorrectionForm:
    """Take back what a decision did, and let Postroom propose a rule that would have prevented it."""
    return CorrectionForm.of(await undo_and_learn(call.database, path.action, call.signed(), call.clock))

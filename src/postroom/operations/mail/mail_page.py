"""All about one message or event for its page: facts, content, decisions, actions and the way from arrival to now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.access import READ
from postroom.core.actions.safety import Policy
from postroom.core.actions.steps import steps_of
from postroom.core.actions.undo import why_not_undoable
from postroom.core.errors import NotFound
from postroom.core.mail.headers import values
from postroom.core.mail.ingestion import IngestionPolicy
from postroom.core.short_ids import part_of_id, short_id
from postroom.core.views import Internal, Shown, Untrusted
from postroom.operations.mail.mail_html import why_no_html
from postroom.operations.mail.mail_ids import MessageName, find_message
from postroom.operations.mail.mail_lines import MailLine, ShownMail, head_of, line_of_event
from postroom.operations.mail.mail_story import Alternative, StoryLine, tell, weighed
from postroom.operations.nouns import MAIL
from postroom.operations.operation import command, dialogue
from postroom.store.actions.actions import ActionView
from postroom.store.actions.decisions import Decision, DecisionView
from postroom.store.engine.database import Database
from postroom.store.intake.ingestion_rules import list_ingestion_rules
from postroom.store.mail import mail_lists
from postroom.store.mail.labels import list_labels
from postroom.store.mail.mail_views import (
    AttachedFile,
    MailRecord,
    MailRow,
    UndoView,
    attachments_of,
    mail_record,
    text_of,
)
from postroom.words import actions as action_words
from postroom.words.states import Mood, state_of

HEADERS = ("to", "cc", "reply-to", "list-id")


class Header(NamedTuple):
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class DecidedLine:
    """A decision: what it says, who made it and why, and how sure the model was against what the action needs."""

    at: datetime
    what: Untrusted[str]
    by: Untrusted[str]
    why: Untrusted[str]
    model: str | None
    confidence: float | None
    needed: float | None
    """The confidence that the action needs by today's settings; None where none is needed."""
    verdict: str
    reasons: Sequence[str]
    other_rules: Untrusted[Sequence[str]]
    is_shadow: bool
    alternatives: Untrusted[Sequence[Alternative]] = ()


@dataclass(frozen=True, slots=True)
class ActionLine:
    """An action: its state, with what was undone never called done, and whether it can be taken back.

    `action_hash` is set while it waits for a yes, which holds for exactly this action.
    """

    id: UUID
    short_id: str
    at: datetime
    what: Untrusted[str]
    by: Untrusted[str]
    state: str
    mood: Internal[Mood]
    error: Untrusted[str]
    can_be_undone: bool
    why_not: str
    undo: Internal[UndoView | None]
    action_hash: str | None
    expires_at: datetime | None
    decision_id: Internal[UUID | None]


@dataclass(frozen=True, slots=True)
class MailDetail(ShownMail):
    """A message. Without `text`, `no_text` says why."""

    headers: Untrusted[Sequence[Header]]
    sent_at: datetime
    arrived_at: datetime
    labels: Untrusted[Sequence[str]]
    known_labels: Internal[Sequence[str]]
    attachments: Untrusted[Sequence[AttachedFile]]
    is_gone: bool
    text: Untrusted[str]
    is_cut: bool
    no_text: str
    no_html: Internal[str]
    """Why its HTML is not shown, as far as is known without asking the mailbox."""
    decisions: Sequence[DecidedLine]
    shadows: Sequence[DecidedLine]
    actions: Sequence[ActionLine]
    story: Untrusted[Sequence[StoryLine]]
    provider_message_id: str

    @property
    def kind(self) -> Shown[Literal["mail"]]:
        return "mail"

    @property
    def undoable(self) -> ActionLine | None:
        """The action that is taken back first: the last one."""
        return next((each for each in self.actions if each.can_be_undone), None)

    @property
    def correctable(self) -> ActionLine | None:
        """The last action that a decision led to and that can be called wrong."""
        return next((each for each in self.actions if each.can_be_undone and each.decision_id is not None), None)


@dataclass(frozen=True, slots=True)
class EventDetail:
    """An event of a queue, or mail that is not stored yet."""

    line: MailLine
    queue: str
    channel: str
    event_kind: Untrusted[str | None]
    attempts: int
    ended_at: datetime | None
    linked_to: UUID | None
    text: Untrusted[str]

    @property
    def kind(self) -> Shown[Literal["event"]]:
        return "event"


async def show_message(database: Database, name: str, policy: Policy) -> MailDetail | EventDetail:
    """Show the message with this id of any kind, or the event with this id. Raise NotFound, BadInput."""
    try:
        return await show_mail(database, policy, name)
    except NotFound:
        if (event := await _event(database, name)) is not None:
            return event
        raise


@MAIL.operation(READ, command("mail show {message}"), dialogue("mail why"))
async def show_mail(database: Database, policy: Policy, /, message: MessageName) -> MailDetail:
    """Read one message: its headers, labels, attachments and text."""
    id = await find_message(database, message)
    record = await database.run(mail_record(id))
    came = record.mail
    rules = [view.rule for view in await database.run(list_ingestion_rules()) if view.enabled]
    attached = await database.run(attachments_of(id)) if came.has_attachment else []
    text, is_cut, no_text = await _text(database, came)
    labels = await database.run(list_labels(came.account_id))
    live = [each for each in record.decisions if not each.decision.shadow]
    shadows = [each for each in record.decisions if each.decision.shadow]
    return MailDetail(
        *head_of(came),
        [Header(name, value) for name in HEADERS for value in values(came.headers, name)],
        came.sent_at,
        came.accepted_at or came.stored_at,
        came.labels,
        sorted(each.name for each in labels if each.kind == "user"),
        attached,
        came.is_gone,
        text,
        is_cut,
        no_text,
        why_no_html(came),
        [_decided_line(each, policy) for each in reversed(live)],
        [_decided_line(each, policy) for each in shadows],
        [_action(each, record) for each in reversed(record.actions) if each.actor != "undo"],
        list(tell(record, IngestionPolicy(rules))),
        came.provider_message_id,
    )


async def _event(database: Database, name: str) -> EventDetail | None:
    part = part_of_id(name.strip())
    if part is None or len(part.digits) != 32:
        return None
    found = await database.run(mail_lists.find_event(UUID(part.digits)))
    if found is None:
        return None
    return EventDetail(
        line_of_event(found),
        found.queue,
        found.channel,
        found.kind,
        found.attempts,
        found.ended_at,
        found.linked_to,
        found.text,
    )


async def _text(database: Database, came: MailRow) -> tuple[str, bool, str]:
    if came.pruned_at is not None:
        return "", False, f"Its content is no longer kept: its retention ended on {came.pruned_at.date()}."
    if came.ingestion_tier == "metadata":
        return "", False, "Only its headers were stored, by a filter; its text stayed in the mailbox."
    read = await database.run(text_of(came.id))
    return read.text, read.is_cut, "" if read.text.strip() else "It has no text."


def _decided_line(view: DecisionView, policy: Policy) -> DecidedLine:
    decision = view.decision
    safety: Mapping[str, Any] = decision.safety or {}
    refused: Mapping[str, Any] | None = safety.get("proposed")
    action_type, parameters = (
        (decision.action_type, decision.parameters)
        if refused is None
        else (str(refused["action"]), refused["parameters"])
    )
    is_model = decision.source == "llm"
    return DecidedLine(
        view.created_at,
        action_words.asked(action_type, parameters),
        _decider(decision),
        decision.rationale,
        decision.model,
        decision.confidence if is_model else None,
        _needed_confidence(action_type, parameters, policy) if is_model and action_type != "none" else None,
        str(safety.get("verdict", "")),
        [str(each) for each in safety.get("reasons", ())],
        [name for _, name in decision.other_rules],
        decision.shadow,
        weighed(decision),
    )


def _decider(decision: Decision) -> str:
    match decision.source:
        case "deterministic":
            return f"rule “{decision.rule_name or 'removed'}”"
        case "llm":
            return "model"
        case "none":
            return ""


def _needed_confidence(action_type: str, parameters: Mapping[str, Any], policy: Policy) -> float:
    """The confidence that every step of the action needs."""
    return max(policy.least_confidence(each.action_type) for each in steps_of(action_type, parameters))


def _action(each: ActionView, record: MailRecord) -> ActionLine:
    state, mood = state_of(each.state, each.undone)
    is_undone = each.undone in ("queued", "executing", "completed")
    why_not = why_not_undoable(each.action_type, each.state, each.undo_hint)
    waits = each.state == "approved_pending"
    return ActionLine(
        each.id,
        short_id(each.id),
        each.executed_at or each.created_at,
        action_words.asked(each.action_type, each.parameters),
        _doer(each),
        state,
        mood,
        each.error or "",
        why_not is None and not is_undone,
        "" if is_undone or why_not is None or each.state not in ("completed", "failed", "canceled") else why_not,
        record.undos.get(each.id),
        each.action_hash if waits else None,
        each.expires_at if waits else None,
        each.decision_id,
    )


def _doer(each: ActionView) -> str:
    match each.actor:
        case "rule":
            return f"rule “{each.rule_name or 'removed'}”"
        case "model":
            return f"model {each.confidence:.2f}" if each.confidence is not None else "model"
        case "user":
            return each.asked_by or "you"
        case "agent":
            return action_words.agent_named(each.agent, each.asked_by)
        case "undo":
            return "undo"

"""Stored mail as people see it: the row that every list has, and all that is recorded about one message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from postroom.core.actions.action import Actor, DecidedType
from postroom.core.budget_shares import ShareKind
from postroom.core.errors import NotFound
from postroom.core.lifecycle import ActionState
from postroom.core.mail.mail_head import MailHead
from postroom.core.mail.sender_doubt import SenderDoubt
from postroom.core.queue.envelope import IngestionTier, PolicyTier
from postroom.core.rules.rule import DecisionSource
from postroom.store.actions.actions import ActionView, list_actions
from postroom.store.actions.decisions import DecisionView, decisions_about
from postroom.store.engine.codecs import as_uuid, from_json
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_first, read_row, read_rows
from postroom.store.rules.outcomes import OutcomeView, outcomes_of

MOST_ACTIONS = 100
LONGEST_TEXT = 20_000

LastState = Literal["asking", "failed", "undone", "done"]
_LAST_STATES: Mapping[ActionState | None, LastState] = {
    "approved_pending": "asking",
    "failed": "failed",
    "completed": "done",
}


@dataclass(frozen=True, slots=True)
class MailRow(MailHead):
    """A stored message: as it came, the decision that holds, and the last action on it with the state of its undo.

    Every list of mail has these rows, and so has all that is shown of one message.
    """

    id: UUID
    account_id: UUID
    account: str
    provider_message_id: str
    headers: tuple[tuple[str, str], ...]
    label_ids: frozenset[str]
    labels: tuple[str, ...]
    """By name."""
    categories: frozenset[str]
    policy_tier: PolicyTier
    ingestion_tier: IngestionTier
    sent_at: datetime
    stored_at: datetime
    accepted_at: datetime | None
    deleted_at: datetime | None
    pruned_at: datetime | None
    on_demand: bool
    has_attachment: bool
    is_backfilled: bool
    is_contact: bool
    """Whether its sender is a contact now."""
    sender_doubt: SenderDoubt | None
    reply_to_mine: bool | None
    source: DecisionSource | None
    rule_name: str | None
    confidence: float | None
    rationale: str | None
    decided_type: DecidedType | None
    decided_parameters: Mapping[str, Any] | None
    safety: Mapping[str, Any] | None
    action_id: UUID | None
    actor: Actor | None
    action_type: DecidedType | None
    parameters: Mapping[str, Any] | None
    action_state: ActionState | None
    action_error: str | None
    undo_hint: Mapping[str, Any] | None
    asked_by: str | None
    agent: str | None
    action_rationale: str | None
    decided_action: bool
    """Whether the decision led to the action; otherwise somebody asked for it."""
    undone: ActionState | None
    excerpt: str = ""
    """The place that a search found."""

    @property
    def tier(self) -> str:
        return "history" if self.is_backfilled else self.policy_tier

    @property
    def state(self) -> LastState | None:
        """The state of its last action, as far as people look for it."""
        return "undone" if self.undone == "completed" else _LAST_STATES.get(self.action_state)

    @property
    def is_gone(self) -> bool:
        return self.deleted_at is not None


class MailText(NamedTuple):
    """The text of a message, truncated if long."""

    text: str
    is_cut: bool


class UndoView(NamedTuple):
    """The undo of an action: how far it got, and who asked for it."""

    action_id: UUID
    state: ActionState
    executed_at: datetime | None
    asked_by: str | None
    error: str | None


class ModelWait(NamedTuple):
    """The share of the model's budget that a message waits for, or has waited for."""

    kind: ShareKind
    waits_since: datetime


@dataclass(frozen=True, slots=True)
class MailRecord:
    """All that is recorded about a message: decisions and actions in the order in which they were made."""

    mail: MailRow
    decisions: Sequence[DecisionView]
    actions: Sequence[ActionView]
    undos: Mapping[UUID, UndoView]
    outcomes: Sequence[OutcomeView]
    model_wait: ModelWait | None = None


@query
def mail_record(id: UUID) -> Script[MailRecord]:
    """Read all about a message in one snapshot. Raises NotFound."""
    mail = yield from load_mail.script(id)
    decided = yield from decisions_about.script(id)
    done = yield from list_actions.script(MOST_ACTIONS, message_id=id)
    undos = read_rows(UndoView, (yield sql("select_undos_on", id)))
    return MailRecord(
        mail,
        sorted(decided, key=lambda each: (each.decision.generation, each.decision.shadow, each.created_at)),
        list(reversed(done)),
        {each.action_id: each for each in undos},
        (yield from outcomes_of.script(id)),
        read_first(ModelWait, (yield sql("select_model_wait", id))),
    )


class AttachedFile(NamedTuple):
    """An attachment, as the message describes it."""

    name: str
    size: int | None


@query
def attachments_of(id: UUID) -> Script[list[AttachedFile]]:
    """The attachments of a message, from the envelope that it came in; none when that is no longer kept."""
    found: list[AttachedFile] = []
    for (text,) in (yield sql("select_envelope_of", id)):
        payload: Mapping[str, Any] = from_json(text).get("payload") or {}
        attached: Sequence[Mapping[str, Any]] = payload.get("attachments") or ()
        found += [AttachedFile(str(each.get("filename") or "unnamed"), each.get("size")) for each in attached]
    return found


@query
def load_mail(id: UUID, account_id: UUID | None = None) -> Script[MailRow]:
    """A message. Raises NotFound, also for a message of another account."""
    for found in (yield from mail_rows([id])):
        if account_id in (None, found.account_id):
            return found
    raise no_such_message(id)


@query
def read_mail(id: UUID, account_id: UUID | None = None) -> Script[tuple[MailRow, MailText]]:
    """A message and its text. Raises NotFound, also for a message of another account, and for one no longer kept."""
    mail = yield from load_mail.script(id, account_id)
    if mail.pruned_at is not None:
        raise NotFound(f"the content of message {id} is no longer kept: its retention ended on {mail.pruned_at.date()}")
    return mail, (yield from text_of.script(id))


@query
def text_of(id: UUID) -> Script[MailText]:
    """The text of a message that exists."""
    text, length = (yield sql("select_text", id, LONGEST_TEXT))[0]
    return MailText(text, length > LONGEST_TEXT)


def no_such_message(id: UUID) -> NotFound:
    return NotFound(f"there is no message {id}")


def mail_rows(ids: Sequence[UUID]) -> Script[list[MailRow]]:
    """The messages with these ids that exist, in the same order."""
    if not ids:
        return []
    rows = list((yield sql("select_mail_rows", list(ids))).by_name())
    names = yield from _label_names({as_uuid(row["account_id"]) for row in rows})
    found = {row.id: row for row in (read_row(MailRow, each, labels=_named_labels(each, names)) for each in rows)}
    return [found[id] for id in ids if id in found]


def _label_names(accounts: set[UUID]) -> Script[Mapping[tuple[UUID, str], str]]:
    """The names of the accounts' labels, by account and id."""
    rows = yield sql("select_label_names", list(accounts))
    return {(as_uuid(account_id), str(id)): name for account_id, id, name in rows}


def _named_labels(row: Mapping[str, Any], names: Mapping[tuple[UUID, str], str]) -> tuple[str, ...]:
    account_id = as_uuid(row["account_id"])
    return tuple(sorted(names.get((account_id, str(id)), str(id)) for id in from_json(row["label_ids_json"])))

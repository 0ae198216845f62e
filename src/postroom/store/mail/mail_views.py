"""Stored mail as people see it: a list with what was done, and all that is recorded about one message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from postroom.core.actions.action import Actor, DecidedType
from postroom.core.budget_shares import ShareKind
from postroom.core.errors import NotFound
from postroom.core.lifecycle import ActionState
from postroom.core.mail.sender_doubt import SenderDoubt
from postroom.core.queue.envelope import IngestionTier, PolicyTier
from postroom.core.rules.rule import DecisionSource
from postroom.store.actions.actions import ActionView, list_actions
from postroom.store.actions.decisions import DecisionView, decisions_about
from postroom.store.engine.codecs import as_uuid, from_json
from postroom.store.engine.database import Script, query, sql
from postroom.store.engine.reading import read_first, read_row, read_rows
from postroom.store.mail.labels import AccountLabel, list_all_labels
from postroom.store.rules.outcomes import OutcomeView, outcomes_of

MOST_ACTIONS = 100


@dataclass(frozen=True, slots=True)
class ListedMail:
    """A message, the decision about it, and the last action on it. Without an action, it was left as it is."""

    id: UUID
    account: str
    sender: str
    headers: tuple[tuple[str, str], ...]
    subject: str
    sent_at: datetime
    labels: tuple[str, ...]
    policy_tier: PolicyTier
    ingestion_tier: IngestionTier
    source: DecisionSource | None
    rule_name: str | None
    action_id: UUID | None
    actor: Actor | None
    action_type: DecidedType | None
    parameters: Mapping[str, Any] | None
    action_state: ActionState | None
    undone: ActionState | None


@query
def list_mail(
    most: int,
    since: datetime,
    account_id: UUID | None = None,
    tier: str | None = None,
    only_kept: bool = False,
    category: str | None = None,
) -> Script[list[ListedMail]]:
    """The newest mail that is still in the mailbox; with `only_kept`, mail on which nothing was ever done."""
    account = None if account_id is None else str(account_id)
    rows = yield sql("select_mail_list", account, tier, only_kept, category, since, most)
    names = label_names((yield from list_all_labels.script()))
    return [read_row(ListedMail, row, labels=named_labels(row, names)) for row in rows.by_name()]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message as it came, and its present state. `is_contact` says whether its sender is a contact now."""

    id: UUID
    account: str
    provider_message_id: str
    policy_tier: PolicyTier
    ingestion_tier: IngestionTier
    sender: str
    subject: str
    headers: tuple[tuple[str, str], ...]
    labels: tuple[str, ...]
    sent_at: datetime
    stored_at: datetime
    accepted_at: datetime | None
    deleted_at: datetime | None
    pruned_at: datetime | None
    on_demand: bool
    is_backfilled: bool
    is_contact: bool
    sender_doubt: SenderDoubt | None
    reply_to_mine: bool | None
    has_attachment: bool


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

    arrival: Arrival
    decisions: Sequence[DecisionView]
    actions: Sequence[ActionView]
    undos: Mapping[UUID, UndoView]
    outcomes: Sequence[OutcomeView]
    model_wait: ModelWait | None = None


@query
def mail_record(id: UUID) -> Script[MailRecord]:
    """Read all about a message in one snapshot. Raises NotFound."""
    arrival = yield from arrival_of.script(id)
    decided = yield from decisions_about.script(id)
    done = yield from list_actions.script(MOST_ACTIONS, message_id=id)
    undos = read_rows(UndoView, (yield sql("select_undos_on", id)))
    return MailRecord(
        arrival,
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
def arrival_of(id: UUID) -> Script[Arrival]:
    """A message as it came. Raises NotFound."""
    for row in (yield sql("select_arrival", id)).by_name():
        names = label_names((yield from list_all_labels.script()))
        return read_row(Arrival, row, labels=named_labels(row, names))
    raise NotFound(f"there is no message {id}")


LabelNames = dict[tuple[UUID, str], str]


def label_names(labels: Sequence[AccountLabel]) -> LabelNames:
    """The names of labels by account and id."""
    return {(each.account_id, each.provider_label_id): each.name for each in labels}


def named_labels(row: Mapping[str, Any], names: LabelNames) -> tuple[str, ...]:
    """The labels of a message by name."""
    account_id = as_uuid(row["account_id"])
    return tuple(sorted(names.get((account_id, str(id)), str(id)) for id in from_json(row["labels_json"])))

"""Learns from the user's own changes: suggests rules, with their evidence, and never applies them unasked.

**Reversed.** The user reverses an action of a rule or the model: suggest an exception for that sender.

**Repeated.** The user does the same by hand with all recent mail of one origin (a sender, a list, a domain), at least
three times, and has treated none of it differently: suggest a rule that does it. Mail that they have not looked at yet,
and mail on which we have acted ourselves, is no evidence either way.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

import orjson

from postroom.core.actions.action import ActionType
from postroom.core.errors import BadInput
from postroom.core.mail.headers import Headers, values
from postroom.core.mail.senders import SHARED_DOMAINS
from postroom.core.rules.agreement import OwnerLabelChange
from postroom.core.rules.draft import LONGEST_NAME, RuleDraft, as_document, read_draft

ENOUGH = 3
WITHIN = timedelta(days=30)
MOST_MESSAGES_NAMED = 20
LONGEST_LIST_ID = 255
BEFORE_THE_MODEL = 90
OriginKind = Literal["sender", "list", "domain"]
ORIGIN_KINDS: tuple[OriginKind, ...] = ("sender", "list", "domain")


class OwnerChange(NamedTuple):
    """An action that the user did by hand, and the id of its label, if any."""

    action_type: ActionType
    label_id: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message comes from. Empty means unknown."""

    sender: str
    domain: str
    list_id: str

    def of(self, kind: OriginKind) -> str:
        match kind:
            case "sender":
                return self.sender
            case "list":
                return self.list_id
            case "domain":
                return "" if self.domain in SHARED_DOMAINS else self.domain


@dataclass(frozen=True, slots=True)
class HandledMessage:
    """A recent message: its labels on arrival and now. `touched` means that we have acted on it ourselves."""

    id: UUID
    origin: Origin
    arrived: frozenset[str]
    labels: frozenset[str]
    deleted: bool
    touched: bool


@dataclass(frozen=True, slots=True)
class ReversedDecision:
    """A decision of ours that the user has just reversed, and the rule that made it, unless it was the model."""

    decision_id: UUID
    message_id: UUID
    origin: Origin
    action: str
    """The action in words."""
    what: str
    change: OwnerLabelChange
    rule_name: str | None = None
    conditions: Mapping[str, Any] | None = None
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class RuleSuggestion:
    """A rule to propose. The evidence holds ids and counts, but no content of the mail."""

    account_id: UUID
    draft: RuleDraft
    evidence: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """Equal for the same rule, so that it is not proposed again."""
        content = [str(self.account_id), self.draft.conditions, self.draft.action_type, self.draft.parameters]
        return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def list_of(headers: Headers) -> str:
    """The id of the mailing list that a message came through; empty when there is none."""
    for value in values(headers, "list-id"):
        _, opened, rest = value.rpartition("<")
        id = (rest.partition(">")[0] if opened else value).strip().casefold()
        return id[:LONGEST_LIST_ID] if id.isprintable() and "@" not in id and " " not in id else ""
    return ""


def owner_changes(change: OwnerLabelChange, own_labels: Mapping[str, str]) -> list[OwnerChange]:
    """The user's actions, the most telling first. Marking as spam is left out: the provider learns from that."""
    if change.place == "trash":
        return [OwnerChange("trash")]
    found = [OwnerChange("apply_label", label) for label in sorted(change.added & own_labels.keys())]
    if change.place == "archive":
        found.append(OwnerChange("archive"))
    return [*found, *([OwnerChange("star")] if "STARRED" in change.added else [])]


def repeated(
    account_id: UUID,
    action: OwnerChange,
    origin: Origin,
    recent: Sequence[HandledMessage],
    own_labels: Mapping[str, str],
) -> RuleSuggestion | None:
    """The narrowest rule that repeats the user's own treatment of all recent mail of this origin."""
    for kind in ORIGIN_KINDS:
        value = origin.of(kind)
        same = [each for each in recent if value and each.origin.of(kind) == value]
        verdicts = {each.id: is_evidence(action, each) for each in same}
        proof = [each for each in same if verdicts[each.id]]
        if len(proof) < ENOUGH or False in verdicts.values():
            continue
        if kind != "sender" and len({each.origin.sender for each in proof}) < 2:
            continue
        evidence = _evidence("repeated", [each.id for each in proof], by=kind, days=WITHIN.days)
        return _suggest(account_id, _repeating(account_id, action, kind, value, own_labels), evidence)
    return None


def is_evidence(action: OwnerChange, message: HandledMessage) -> bool | None:
    """Whether the user did this with the message (True), something else (False), or that is unclear (None)."""
    gone = message.deleted or bool({"TRASH", "SPAM"} & message.labels)
    if message.touched:
        return None
    match action.action_type:
        case "archive":
            if "INBOX" not in message.arrived:
                return None
            done = not gone and "INBOX" not in message.labels
        case "trash":
            done = message.deleted or "TRASH" in message.labels - message.arrived
        case "star":
            done = "STARRED" in message.labels - message.arrived
        case _:
            done = action.label_id in message.labels - message.arrived
    if not done and not gone and {"INBOX", "UNREAD"} <= message.labels:
        return None
    return done


def exception_for(account_id: UUID, reversal: ReversedDecision, own_labels: Mapping[str, str]) -> RuleSuggestion | None:
    """A rule that would have spared the user this reversal: it goes before the one that decided."""
    sender = reversal.origin.sender
    if not sender:
        return None
    about: dict[str, Any] = {"sender_email": sender}
    conditions = about if reversal.conditions is None else {"and": [about, dict(reversal.conditions)]}
    instead = sorted(reversal.change.added & own_labels.keys())
    by = f"the rule {reversal.rule_name!r}" if reversal.rule_name is not None else "the model"
    label = own_labels[instead[0]] if instead else None
    draft = RuleDraft(
        _cut(f"Label mail from {sender} {label}" if label else f"No {reversal.action} for mail from {sender}"),
        conditions,
        "apply_label" if label else "none",
        {"label": label} if label else {},
        f"You took back what {by} did ({reversal.action}).",
        "account",
        str(account_id),
        BEFORE_THE_MODEL if reversal.priority is None else reversal.priority - 1,
    )
    evidence = _evidence("taken_back", [reversal.message_id], decision=str(reversal.decision_id), did=reversal.what)
    return _suggest(account_id, draft, evidence)


def merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Merge new evidence for the same rule into the old."""
    known: list[str] = list(before.get("messages", []))
    new = [each for each in after["messages"] if each not in known]
    count = max(int(before.get("count", 0)) + len(new), int(after["count"]))
    return {**after, "messages": [*known, *new][:MOST_MESSAGES_NAMED], "count": count}


def _repeating(
    account_id: UUID, action: OwnerChange, kind: OriginKind, value: str, own_labels: Mapping[str, str]
) -> RuleDraft:
    field = {"sender": "sender_email", "list": "list_id", "domain": "sender_domain"}[kind]
    whose = {"sender": f"from {value}", "list": f"of the list {value}", "domain": f"from {value}"}[kind]
    verb = {"archive": "Archive", "trash": "Trash", "star": "Star"}.get(action.action_type, "Label")
    label = own_labels.get(action.label_id)
    return RuleDraft(
        _cut(f"{verb} mail {whose}" + (f" {label}" if label else "")),
        {field: value},
        action.action_type,
        {"label": label} if label else {},
        f"You did this by hand at least {ENOUGH} times in {WITHIN.days} days, and nothing else with such mail.",
        "account",
        str(account_id),
    )


def _suggest(account_id: UUID, draft: RuleDraft, evidence: Mapping[str, Any]) -> RuleSuggestion | None:
    """The suggestion, or None if the draft is invalid: an address may hold anything."""
    try:
        read_draft(as_document(draft))
    except BadInput:
        return None
    return RuleSuggestion(account_id, draft, evidence)


def _evidence(kind: str, messages: Sequence[UUID], **more: object) -> dict[str, Any]:
    named = [str(each) for each in messages[:MOST_MESSAGES_NAMED]]
    return {"kind": kind, "messages": named, "count": len(messages), **more}


def _cut(name: str) -> str:
    return name[:LONGEST_NAME]

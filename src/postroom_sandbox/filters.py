"""The filters of a mailbox. All that match new mail apply, in the order in which they were created.

A filter sees what those before it did: one may star a message, and the next look for `is:starred`
(https://webapps.stackexchange.com/q/1608). Limits are those of
https://developers.google.com/workspace/gmail/api/guides/filter_settings.
"""

import base64
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from typing import Any

from postroom_sandbox.labels import Labels, after_change
from postroom_sandbox.mime import Mail
from postroom_sandbox.query import parse_all, parse_any, parse_field
from postroom_sandbox.refusal import failed_precondition, invalid, missing
from postroom_sandbox.search_terms import Setting, Test, every, opposite, term

Json = dict[str, Any]

MOST_FILTERS = 1_000
REMOVABLE = frozenset({"INBOX", "UNREAD", "SPAM", "IMPORTANT"})
NOT_ADDABLE = frozenset({"SPAM", "SENT", "DRAFT", "CHAT"})

# With these marks a subject is an expression; without, it is one phrase.
_EXPRESSION = re.compile(r'[(){}"]|\bOR\b|(?:^|\s)-')


@dataclass(frozen=True)
class Criteria:
    """The conditions of a filter; a message must meet all of them."""

    sender: str = ""
    recipient: str = ""
    subject: str = ""
    query: str = ""
    negated_query: str = ""
    has_attachment: bool = False
    exclude_chats: bool = False
    size: int = 0
    size_comparison: str = ""

    def as_json(self) -> Json:
        return _without_empty(
            {
                "from": self.sender,
                "to": self.recipient,
                "subject": self.subject,
                "query": self.query,
                "negatedQuery": self.negated_query,
                "hasAttachment": self.has_attachment,
                "excludeChats": self.exclude_chats,
                "size": self.size,
                "sizeComparison": self.size_comparison,
            }
        )

    def test(self, setting: Setting) -> Test:
        return every(list(self._tests(setting)))

    def _tests(self, setting: Setting) -> Iterator[Test]:
        if self.sender:
            yield parse_field("from", self.sender, setting)
        if self.recipient:
            yield parse_field("to", self.recipient, setting)
        if self.subject:
            is_expression = _EXPRESSION.search(self.subject)
            yield (
                parse_field("subject", self.subject, setting)
                if is_expression
                else term("subject", self.subject, setting, quoted=True)
            )
        if self.query:
            yield parse_all(self.query, setting)
        if self.negated_query:
            # The search box writes "Doesn't have: a b" as -{a b}: none of the words may be there.
            yield opposite(parse_any(self.negated_query, setting))
        if self.has_attachment:
            yield lambda message: message.mail.has_attachment
        if self.size_comparison == "larger":
            yield lambda message: len(message.mail.raw) > self.size
        if self.size_comparison == "smaller":
            yield lambda message: len(message.mail.raw) < self.size


@dataclass(frozen=True)
class Action:
    """The actions of a filter, taken on every message that meets its criteria."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    forward: str = ""

    def as_json(self) -> Json:
        return _without_empty(
            {"addLabelIds": list(self.add), "removeLabelIds": list(self.remove), "forward": self.forward}
        )


@dataclass(frozen=True)
class Filter:
    id: str
    criteria: Criteria
    action: Action

    def as_json(self) -> Json:
        return {"id": self.id, "criteria": self.criteria.as_json(), "action": self.action.as_json()}


@dataclass(frozen=True)
class Arriving:
    """New mail before it is in the mailbox."""

    mail: Mail
    labels: frozenset[str]
    received_at: datetime


class Filters:
    """The filters of one mailbox, and the verified addresses to which they may forward."""

    def __init__(self, rng: Random, labels: Callable[[], Labels], setting: Callable[[], Setting]) -> None:
        self._rng = rng
        self._labels = labels
        self._setting = setting
        self._by_id: dict[str, Filter] = {}
        self.forwarding: set[str] = set()

    def all(self) -> list[Filter]:
        return list(self._by_id.values())

    def get(self, filter_id: str) -> Filter:
        if filter_id not in self._by_id:
            raise missing()
        return self._by_id[filter_id]

    def create(self, criteria: Criteria, action: Action) -> Filter:
        """Add a filter. Gmail has none that changes one: it is deleted and created anew."""
        self._check(criteria, action)
        if any((each.criteria, each.action) == (criteria, action) for each in self.all()):
            raise failed_precondition("Filter already exists")
        if len(self._by_id) >= MOST_FILTERS:
            raise failed_precondition(f"Too many filters: at most {MOST_FILTERS}")
        id = "ANe1Bm" + base64.urlsafe_b64encode(self._rng.randbytes(24)).decode()
        self._by_id[id] = Filter(id, criteria, action)
        return self._by_id[id]

    def delete(self, filter_id: str) -> None:
        self.get(filter_id)
        del self._by_id[filter_id]

    def drop_label(self, label_id: str) -> None:
        """Take a deleted label out of all filters. They stay, even without any action."""
        for each in self.all():
            kept = tuple(label for label in each.action.add if label != label_id)
            self._by_id[each.id] = replace(each, action=replace(each.action, add=kept))

    def clear(self) -> None:
        self._by_id.clear()
        self.forwarding.clear()

    def applied(self, mail: Arriving) -> tuple[frozenset[str], list[str]]:
        """The labels of new mail after all filters, and the addresses to which it is forwarded."""
        setting, matched, changed = self._setting(), list[Action](), mail
        for each in self.all():
            if each.criteria.test(setting)(changed):
                matched.append(each.action)
                labels = after_change(changed.labels, frozenset(each.action.add), frozenset(each.action.remove))
                changed = replace(changed, labels=labels)
        labels = changed.labels
        removed = {label for action in matched for label in action.remove}
        if "SPAM" in mail.labels and "SPAM" not in labels and "TRASH" not in labels and "INBOX" not in removed:
            labels |= {"INBOX"}
        forwards = [action.forward for action in matched if action.forward and "SPAM" not in labels]
        return labels, list(dict.fromkeys(forwards))

    def _check(self, criteria: Criteria, action: Action) -> None:
        if not _without_empty(vars(criteria)):
            raise invalid("A filter needs criteria")
        if not action.as_json():
            raise invalid("A filter needs an action")
        self._labels().check_known(frozenset(action.add + action.remove))
        if refused := [label for label in action.add if label in NOT_ADDABLE]:
            raise invalid(f"Invalid label {refused[0]} in AddLabelIds")
        if refused := [label for label in action.remove if label not in REMOVABLE]:
            raise invalid(f"Invalid label(s) {', '.join(refused)} in RemoveLabelIds")
        if sum(label.startswith("Label_") for label in action.add) > 1:
            raise invalid("A filter adds at most one user-defined label")
        if action.forward and action.forward.lower() not in self.forwarding:
            raise failed_precondition("Unrecognized forwarding address")
        criteria.test(self._setting())


def _without_empty(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value}

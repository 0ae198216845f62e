"""The plan that makes the stored rules equal to those in a file: additions, changes and removals, in order.

A rule made by a plan has the origin `apply:` with a digest of the applied rule, so that a change by hand is noticed.
Rules of equal priority are tried in the order of their ids; a plan gives rules new ids where the file's order differs.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from uuid import UUID

from postroom.core.rules.draft import RuleDraft, as_document

ORIGIN = "apply"
Sign = Literal["+", "~", "-"]


class StoredRule(Protocol):
    """A rule as it is stored."""

    @property
    def id(self) -> UUID: ...
    @property
    def origin(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def draft(self) -> RuleDraft: ...


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One change of a plan. `fields` has the values before and after of those that change.

    `by_hand` says that the stored rule differs from the last applied one; `taken_over`, that no plan made it; `moved`,
    that it gets a new id, since its place in the order changes.
    """

    sign: Sign
    name: str
    draft: RuleDraft | None = None
    id: UUID | None = None
    version: int = 0
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    by_hand: bool = False
    taken_over: bool = False
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes, in the order of the file, removals last; how many rules stay as they are, and how many others are
    left alone, since no plan made them. `basis` has the version of every stored rule, by id: for other rules the plan
    is no longer right.
    """

    changes: tuple[PlannedChange, ...]
    unchanged: int = 0
    left_alone: int = 0
    basis: Mapping[UUID, int] = field(default_factory=dict[UUID, int])

    def count(self, sign: Sign) -> int:
        return sum(each.sign == sign for each in self.changes)


def make_plan(drafts: Sequence[RuleDraft], stored: Sequence[StoredRule], *, prune_all: bool = False) -> Plan:
    """Plan the changes. Stored rules that a plan made, and that the file no longer has, are removed; others only with
    `prune_all`.
    """
    named = {each.draft.name: each for each in stored}
    wanted = {draft.name for draft in drafts}
    moved = _rules_to_move(drafts, named)
    changes: list[PlannedChange] = []
    for draft in drafts:
        before = named.get(draft.name)
        if before is None:
            changes.append(PlannedChange("+", draft.name, draft))
        elif (change := _change(draft, before, draft.name in moved)) is not None:
            changes.append(change)
    unchanged = len(drafts) - len(changes)
    others = [each for each in stored if each.draft.name not in wanted]
    removed = [each for each in others if prune_all or _is_applied(each)]
    changes += [
        PlannedChange("-", each.draft.name, None, each.id, each.version, by_hand=_by_hand(each)) for each in removed
    ]
    basis = {each.id: each.version for each in stored}
    return Plan(tuple(changes), unchanged, len(others) - len(removed), basis)


def applied_origin(draft: RuleDraft) -> str:
    """The origin of a rule that was applied as this draft."""
    text = json.dumps(as_document(draft), sort_keys=True, ensure_ascii=True)
    return f"{ORIGIN}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _change(draft: RuleDraft, before: StoredRule, moved: bool) -> PlannedChange | None:
    old, new = as_document(before.draft), as_document(draft)
    names = [*new, *(name for name in old if name not in new)]
    fields = {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}
    taken_over = not _is_applied(before)
    if not fields and not taken_over and not moved:
        return None
    return PlannedChange("~", draft.name, draft, before.id, before.version, fields, _by_hand(before), taken_over, moved)


def _rules_to_move(drafts: Sequence[RuleDraft], named: Mapping[str, StoredRule]) -> frozenset[str]:
    """The rules that need new ids, so that those of equal priority are tried in the order of the file. New ids are
    higher than all earlier ones, so all rules after a new or moved one move too.
    """
    highest: dict[int, UUID | None] = {}
    found: list[str] = []
    for draft in drafts:
        before, last = named.get(draft.name), highest.get(draft.priority, UUID(int=0))
        if before is None:
            highest[draft.priority] = None
        elif last is None or before.id < last:
            highest[draft.priority] = None
            found.append(draft.name)
        else:
            highest[draft.priority] = before.id
    return frozenset(found)


def _is_applied(stored: StoredRule) -> bool:
    return stored.origin.partition(":")[0] == ORIGIN


def _by_hand(stored: StoredRule) -> bool:
    return _is_applied(stored) and stored.origin != applied_origin(stored.draft)

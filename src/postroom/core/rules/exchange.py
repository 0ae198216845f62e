"""The results of importing and exporting foreign rules: the rules, and a report of what was left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from postroom.core.actions.action import DecidedType
from postroom.core.errors import BadInput
from postroom.core.rules.draft import LONGEST_NAME, REVIEWED, RuleDraft, check_rule

FIRST_PRIORITY = 100


class LeftOut(NamedTuple):
    """Something that could not be translated: where it is, what it is, and why."""

    where: str
    what: str
    why: str


@dataclass(slots=True)
class Imported:
    """Imported rules in their order, and what could not be translated."""

    drafts: list[RuleDraft] = field(default_factory=list[RuleDraft])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    _names: set[str] = field(default_factory=set[str])

    def add(
        self,
        where: str,
        name: str,
        conditions: Mapping[str, Any],
        action: str,
        parameters: Mapping[str, Any],
        review: str | None = None,
    ) -> None:
        """Add a rule if it is valid; disabled for review if its action cannot be undone, or if `review` says why."""
        try:
            check_rule(conditions, action, parameters)
        except BadInput as error:
            self.left_out.append(LeftOut(where, name, str(error)))
            return
        draft = RuleDraft(
            self._unused(one_line(name)),
            conditions,
            cast("DecidedType", action),
            parameters,
            priority=FIRST_PRIORITY + len(self.drafts),
        )
        if review is not None:
            draft = draft.for_review(review)
        elif action in REVIEWED:
            draft = draft.for_review()
        self.drafts.append(draft)

    def _unused(self, name: str) -> str:
        unused, number = name, 2
        while unused in self._names:
            unused = f"{name[: LONGEST_NAME - 8]} ({number})"
            number += 1
        self._names.add(unused)
        return unused


class Exported(NamedTuple):
    """The exported text, and the rules that it cannot express."""

    text: str
    left_out: list[LeftOut]


class Inexpressible(Exception):
    """The other format cannot express this."""


def one_line(text: str, longest: int = LONGEST_NAME) -> str:
    shown = " ".join(text.split())
    shown = shown if shown.isprintable() else "".join(each for each in shown if each.isprintable())
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def all_of(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else {"and": list(parts)}


def any_of(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return parts[0] if len(parts) == 1 else {"or": list(parts)}


def why_not_exportable(draft: RuleDraft) -> str | None:
    """Why the rule cannot be exported at all, whatever its conditions; None when it can."""
    if not draft.enabled:
        return "it is disabled"
    if draft.shadow:
        return "it runs in shadow"
    if draft.needs_approval:
        return "it asks before it acts"
    return "it is for one account" if draft.scope == "account" else None


def conditions_with_scope(draft: RuleDraft) -> dict[str, Any]:
    """The conditions, with the scope as one of them."""
    if draft.scope in ("domain", "sender"):
        kind = "sender_domain" if draft.scope == "domain" else "sender_email"
        return {"and": [{kind: draft.scope_ref}, dict(draft.conditions)]}
    return dict(draft.conditions)

"""The results of importing and exporting foreign rules: the rules, and a report on each part."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from postroom.core.actions.steps import MOST_STEPS, Step, combined, steps_of
from postroom.core.errors import BadInput
from postroom.core.rules.draft import LONGEST_NAME, RuleDraft, check_rule
from postroom.core.rules.implications import decided_before, exclusive
from postroom.core.rules.logic import Logic

FIRST_PRIORITY = 100
IMPORTED = "imported; review and enable"
TOO_MANY_STEPS = (
    f"one message gets at most {MOST_STEPS} actions; of mail that matches this and many rules before it, those of the "
    "last rules are left out"
)
APPLIES_TO_ALL = "it applies to all mail, and a rule needs a condition"

Verdict = Literal["came over", "came over with a note", "refused", "can never fire"]


class LeftOut(NamedTuple):
    """An untranslated part: its place, its text, and the reason."""

    where: str
    what: str
    why: str


class Came(NamedTuple):
    """A part of a file and its result: a line or an entry, the name of its rule, and the reason or a note."""

    where: str
    what: str
    verdict: Verdict
    why: str = ""


@dataclass(slots=True)
class Imported:
    """Imported rules in their order, with the place and the notes of each, and the untranslated parts.

    Every rule is disabled until a person has reviewed it. `unreachable` are rules, or parts that made none, that no
    message can reach.
    """

    drafts: list[RuleDraft] = field(default_factory=list[RuleDraft])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    unreachable: list[LeftOut] = field(default_factory=list[LeftOut])
    places: dict[str, str] = field(default_factory=dict[str, str])
    notes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(
        self,
        where: str,
        name: str,
        condition: Logic,
        steps: Sequence[Step],
        *,
        continues: bool = False,
        notes: Iterable[str] = (),
    ) -> bool:
        """Add a rule, disabled for review, and return True; if it is not valid, report that and return False."""
        if isinstance(condition, bool):
            self._cannot(where, name, condition)
            return False
        action_type, parameters = combined(steps)
        try:
            check_rule(condition, action_type, parameters)
        except BadInput as error:
            self.refuse(where, name, str(error))
            return False
        draft = RuleDraft(
            self._unused_name(one_line(name)),
            condition,
            action_type,
            parameters,
            priority=FIRST_PRIORITY + len(self.drafts),
            continues=continues and bool(steps),
        ).for_review(IMPORTED)
        self.drafts.append(draft)
        self.places[draft.name] = where
        self.notes[draft.name] = list(dict.fromkeys(notes))
        return True

    def refuse(self, where: str, what: str, why: str) -> None:
        """Report something that is not imported, once."""
        found = LeftOut(where, one_line(what), why)
        if found not in self.left_out[-50:]:
            self.left_out.append(found)

    def never(self, where: str, what: str, why: str) -> None:
        """Report something that no message reaches, once."""
        found = LeftOut(where, one_line(what), why)
        if found not in self.unreachable:
            self.unreachable.append(found)

    def report(self, earlier: Sequence[RuleDraft] = ()) -> list[Came]:
        """The table of all parts: rules in their order, then refused parts.

        `earlier` are existing rules that come before the imported ones.
        """
        deciding = [(each.name, each.conditions) for each in earlier if _decides(each)]
        overfull = first_overfull(self.drafts)
        found: list[Came] = []
        for draft in self.drafts:
            noted = (*self.notes.get(draft.name, ()), *((TOO_MANY_STEPS,) if draft is overfull else ()))
            where, notes = self.places.get(draft.name, ""), "; ".join(noted)
            before = decided_before(draft.conditions, deciding)
            if before is not None:
                found.append(Came(where, draft.name, "can never fire", f"{before!r} decides about all its mail first"))
            else:
                found.append(Came(where, draft.name, "came over with a note" if notes else "came over", notes))
            if not draft.continues:
                deciding.append((draft.name, draft.conditions))
        found += [Came(where, what, "can never fire", why) for where, what, why in self.unreachable]
        return found + [Came(where, what, "refused", why) for where, what, why in self.left_out]

    def _cannot(self, where: str, name: str, condition: bool) -> None:
        if condition:
            self.refuse(where, name, APPLIES_TO_ALL)
        else:
            self.never(where, name, "its tests contradict each other")

    def _unused_name(self, name: str) -> str:
        unused, number = name, 2
        while unused in self.places:
            unused = f"{name[: LONGEST_NAME - 8]} ({number})"
            number += 1
        return unused


def _decides(draft: RuleDraft) -> bool:
    """Whether the rules after it are not tried for the mail of its conditions, from any sender to any account."""
    return draft.enabled and not draft.shadow and not draft.continues and draft.scope == "global"


def first_overfull(drafts: Sequence[RuleDraft]) -> RuleDraft | None:
    """The first rule for whose mail it and the rules that continue before it may have too many actions together."""
    before: list[RuleDraft] = []
    for draft in drafts:
        own = _steps(draft)
        together = own.union(*(_steps(each) for each in before))
        if len(together) > MOST_STEPS:
            joining = [each for each in before if not exclusive(each.conditions, draft.conditions)]
            if len(own.union(*map(_steps, joining))) > MOST_STEPS:
                return draft
        if draft.continues:
            before.append(draft)
    return None


def _steps(draft: RuleDraft) -> frozenset[str]:
    """The actions of a rule, in words: those of several rules that are the same are done once."""
    return frozenset(map(str, steps_of(draft.action_type, draft.parameters)))


class Exported(NamedTuple):
    """The exported text, and the rules that it cannot express."""

    text: str
    left_out: list[LeftOut]


def one_line(text: str, longest: int = LONGEST_NAME) -> str:
    shown = " ".join(text.split())
    shown = shown if shown.isprintable() else "".join(each for each in shown if each.isprintable())
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def why_not_exportable(draft: RuleDraft) -> str | None:
    """Why the rule cannot be exported with any conditions; None when it can."""
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

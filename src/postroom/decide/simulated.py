"""What a simulation found: which decisions change and how often, samples of each change, and what it costs."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.errors import NotFound
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.rule import Rule
from postroom.decide.simulate import (
    ANSWERED_AGAIN,
    ForeseenDecision,
    Progress,
    SimulatedPair,
    SimulatedRules,
    load_context,
    needed_by,
    replay,
)
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.rules import RuleView
from postroom.store.simulation import PastMessage, Wanted, call_cost

MOST_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """A message that would be decided otherwise, and by which rules."""

    message_id: UUID
    sender: str
    subject: str
    sent_at: datetime | None
    rule_before: str | None
    rule_after: str | None


@dataclass(slots=True)
class Change:
    """How often one decision becomes another."""

    before: str
    after: str
    count: int = 0
    samples: list[Sample] = field(default_factory=list[Sample])


@dataclass(slots=True)
class Side:
    """What one set of rules leads to, in numbers."""

    model_calls: int = 0
    approvals: int = 0
    refused: int = 0
    answers_held_back: int = 0
    by_rule: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, foreseen: ForeseenDecision) -> None:
        self.model_calls += foreseen.source == "llm"
        self.approvals += foreseen.ruling == "approve"
        self.refused += foreseen.ruling == "refuse"
        self.answers_held_back += foreseen.held_back
        if foreseen.rule_name is not None:
            self.by_rule[foreseen.rule_name] = self.by_rule.get(foreseen.rule_name, 0) + 1


@dataclass(slots=True)
class SimulationResult:
    """The two sides, and every kind of change between them, the most frequent first."""

    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)
    messages: int = 0
    other_rule: int = 0
    """Messages with which the same is done, by another rule."""
    call_micros: float | None = None
    """What a call of the model has cost of late; None when there was none."""
    broken: tuple[tuple[str, str], ...] = ()
    _changes: dict[tuple[str, str], Change] = field(default_factory=dict[tuple[str, str], Change])

    def add(self, past: PastMessage, before: ForeseenDecision, after: ForeseenDecision) -> None:
        self.before.add(before)
        self.after.add(after)
        if not _differs(before, after):
            self.other_rule += before.rule_name != after.rule_name
            return
        said = before.said, after.said
        change = self._changes.setdefault(said, Change(*said))
        change.count += 1
        if len(change.samples) < MOST_SAMPLES:
            change.samples.append(_sample(past, before, after))

    @property
    def changes(self) -> list[Change]:
        return sorted(self._changes.values(), key=lambda each: (-each.count, each.before, each.after))

    @property
    def changed(self) -> int:
        return sum(each.count for each in self._changes.values())


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """Which rules are to be compared, over which mail, under which policy, with or without a model."""

    before: Sequence[Rule]
    after: Sequence[Rule]
    wanted: Wanted
    policy: Policy
    has_model: bool
    answered_again: timedelta = ANSWERED_AGAIN
    """How long one sender is not answered a second time."""


async def simulate(
    database: Database, question: SimulationRequest, now: datetime, progress: Progress = lambda _done, _total: None
) -> SimulationResult:
    """Compares the rules before and after a change over stored mail. Nothing is written."""
    setting = await load_context(database, question.policy, question.has_model, now, question.answered_again)
    worlds = SimulatedPair(SimulatedRules(question.before, setting), SimulatedRules(question.after, setting))
    found = SimulationResult(broken=tuple((rule.name, why) for rule, why in worlds.broken))
    needed = needed_by(question.before, question.after)
    found.messages = await replay(database, worlds, question.wanted, needed, found.add, progress)
    found.call_micros = (await database.run(call_cost())).micros
    return found


def _differs(before: ForeseenDecision, after: ForeseenDecision) -> bool:
    return (before.said, before.parameters) != (after.said, after.parameters)


def _sample(past: PastMessage, before: ForeseenDecision, after: ForeseenDecision) -> Sample:
    seen = past.message.facts
    return Sample(past.message.id, seen.sender, seen.subject, seen.sent_at, before.rule_name, after.rule_name)


@dataclass(frozen=True, slots=True)
class ChangeOfRules:
    """Rules that come in, by their names; or that take the place of all; names that go; names that are switched on."""

    drafts: Sequence[RuleDraft] = ()
    replaces_all: bool = False
    without: Sequence[str] = ()
    switched_on: Sequence[str] = ()

    def applied_to(self, stored: Sequence[RuleView]) -> list[Rule]:
        """The rules that would be in use. One that keeps its name keeps its place among rules of equal priority."""
        named = {view.name: view for view in stored}
        for name in (*self.without, *self.switched_on):
            if name not in named:
                raise NotFound(f"there is no rule {name!r}; `postroom rules list` shows those there are")
        rules: dict[str, Rule] = {}
        for view in stored:
            if view.name in self.switched_on:
                rules[view.name] = replace(view.rule, shadow=False)
            elif view.enabled and not self.replaces_all and view.name not in self.without:
                rules[view.name] = view.rule
        fresh = sorted(new_id() for _ in self.drafts)
        for id, draft in zip(fresh, self.drafts, strict=True):
            rules.pop(draft.name, None)
            if draft.enabled:
                rules[draft.name] = draft.as_rule(named[draft.name].id if draft.name in named else id)
        return sorted(rules.values(), key=lambda each: each.order)

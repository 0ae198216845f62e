"""The result of a simulation: which decisions change and how often, samples of each change, and the cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.errors import NotFound
from postroom.core.mail.mail_head import MailHead
from postroom.core.rules.draft import RuleDraft
from postroom.core.rules.rule import Rule
from postroom.store.engine.database import Database
from postroom.store.engine.ids import new_id
from postroom.store.mail.simulation import MessageSelection, PastMessage, call_cost
from postroom.store.rules.rules import RuleView
from postroom.triage.decide.simulate import (
    ANSWERED_AGAIN,
    ForeseenDecision,
    Progress,
    SimulatedPair,
    SimulatedRules,
    load_context,
    needed_by,
    replay,
)

MOST_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Sample(MailHead):
    """A message with a different decision after the change, and the rules that decide."""

    message_id: UUID
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
    """The results of one set of rules, in numbers."""

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
    """Messages with the same decision, but by another rule."""
    call_micros: float | None = None
    """The recent average cost of a call of the model; None when there was none."""
    broken: tuple[tuple[str, str], ...] = ()
    _changes: dict[tuple[str, str], Change] = field(default_factory=dict[tuple[str, str], Change])

    def add(self, past: PastMessage, before: ForeseenDecision, after: ForeseenDecision) -> None:
        self.before.add(before)
        self.after.add(after)
        if not _differs(before, after):
            self.other_rule += before.rule_name != after.rule_name
            return
        key = before.summary, after.summary
        change = self._changes.setdefault(key, Change(*key))
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
    """The rules to compare, the mail, the policy, and whether there is a model."""

    before: Sequence[Rule]
    after: Sequence[Rule]
    wanted: MessageSelection
    policy: Policy
    has_model: bool
    answered_again: timedelta = ANSWERED_AGAIN
    """The time after which the same sender may be answered again."""


async def simulate(
    database: Database, request: SimulationRequest, now: datetime, progress: Progress = lambda _done, _total: None
) -> SimulationResult:
    """Compare the rules before and after a change on stored mail. Nothing is written."""
    context = await load_context(database, request.policy, request.has_model, now, request.answered_again)
    pair = SimulatedPair(SimulatedRules(request.before, context), SimulatedRules(request.after, context))
    result = SimulationResult(broken=tuple((rule.name, why) for rule, why in pair.broken))
    needed = needed_by(request.before, request.after)
    result.messages = await replay(database, pair, request.wanted, needed, result.add, progress)
    result.call_micros = (await database.run(call_cost())).micros
    return result


def _differs(before: ForeseenDecision, after: ForeseenDecision) -> bool:
    return (before.summary, before.parameters) != (after.summary, after.parameters)


def _sample(past: PastMessage, before: ForeseenDecision, after: ForeseenDecision) -> Sample:
    facts = past.message.facts
    return Sample(facts.sender, facts.subject, past.message.id, facts.sent_at, before.rule_name, after.rule_name)


@dataclass(frozen=True, slots=True)
class ChangeOfRules:
    """A change of rules: those to add or replace by name, or to replace all; names to remove; names to activate."""

    drafts: Sequence[RuleDraft] = ()
    replaces_all: bool = False
    without: Sequence[str] = ()
    switched_on: Sequence[str] = ()

    def applied_to(self, stored: Sequence[RuleView]) -> list[Rule]:
        """The rules that would be active. One that keeps its name keeps its place among rules of equal priority."""
        named = {view.name: view for view in stored}
        for name in (*self.without, *self.switched_on):
            if name not in named:
                raise NotFound(f"there is no rule {name!r}; see `postroom rules list`")
        rules: dict[str, Rule] = {}
        for view in stored:
            if view.name in self.switched_on:
                rules[view.name] = replace(view.rule, shadow=False)
            elif view.decides and not self.replaces_all and view.name not in self.without:
                rules[view.name] = view.rule
        fresh = sorted(new_id() for _ in self.drafts)
        for id, draft in zip(fresh, self.drafts, strict=True):
            rules.pop(draft.name, None)
            if draft.enabled:
                rules[draft.name] = draft.as_rule(named[draft.name].id if draft.name in named else id)
        return sorted(rules.values(), key=lambda each: each.order)

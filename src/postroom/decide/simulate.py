"""What a change of rules would have done: stored mail is decided once more by the rules before and after the change.

The messages come in the order in which they were accepted, each as it was on arrival and at the time of its arrival.
Both sets of rules have a world of their own, in which a decision has its effects on the ones after it: the irreversible
actions that the hour has seen, and who was answered of late. Everything is judged by the same court as live mail.
Nothing is written, and no model is asked: that it would be is the prediction.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from postroom.core.actions.action import IRREVERSIBLE
from postroom.core.actions.safety import Policy
from postroom.core.rules.rule import Outcome, Rule, kinds_used
from postroom.core.rules.rulebook import Rulebook
from postroom.decide.engine import Safeguards, Verdict, unknown_conditions
from postroom.store.engine.database import Database
from postroom.store.mail import StoredMessage
from postroom.store.protection import HOUR, Restraints, restraints
from postroom.store.simulation import (
    BEGINNING,
    END,
    MessagePlace,
    Needed,
    PastMessage,
    Wanted,
    back_from,
    label_names,
    past_after,
)

# Of messages, and of the characters of their texts: whichever is reached first ends a page.
PAGE = 500
PAGE_TEXT = 16 * 2**20
STRIDE = 50_000
ANSWERED_AGAIN = timedelta(days=7)
NO_LABELS: Mapping[str, str] = {}

Progress = Callable[[int, int], None]
"""Is told how many messages were replayed, and of how many."""


@dataclass(frozen=True, slots=True)
class ForeseenDecision:
    """What would be decided about a message, as the decision would be recorded. `ruling` is safety's verdict on it."""

    source: str
    action_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ruling: str | None = None
    safety: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rule_name: str | None = None
    held_back: bool = False

    @property
    def said(self) -> str:
        """In a few words."""
        if self.source == "llm":
            return "ask the model"
        wanted = self.safety["proposed"] if self.ruling == "refuse" else None
        action = self.action_type if wanted is None else wanted["action"]
        parameters = self.parameters if wanted is None else wanted["parameters"]
        named = f"{action} {parameters['label']}" if "label" in parameters else action
        match self.ruling:
            case "approve":
                return f"{named} (needs approval)"
            case "refuse":
                return f"{named} (refused)"
            case _:
                return "stay" if action == "none" else named


@dataclass(frozen=True, slots=True)
class SimulationContext:
    """What decides besides rules: restraints, the user's policy, and whether there is a model."""

    restraints: Restraints
    labels: Mapping[UUID, Mapping[str, str]]
    policy: Policy
    has_model: bool
    answered_again: timedelta = ANSWERED_AGAIN

    def named(self, message: StoredMessage) -> StoredMessage:
        """With its labels by id and by name, as rules may call them."""
        held, names = message.facts.labels, self.labels.get(message.account_id, NO_LABELS)
        known = held | {names[id].casefold() for id in held if id in names}
        return replace(message, facts=replace(message.facts, labels=known))


class SimulatedRules:
    """One set of rules, and what its decisions have brought about so far."""

    def __init__(self, rules: Sequence[Rule], setting: SimulationContext) -> None:
        self.rules = rules
        self.setting = setting
        self._begun: defaultdict[UUID, deque[datetime]] = defaultdict(deque)
        self._answered: dict[tuple[UUID, str], datetime] = {}

    def decide(self, message: StoredMessage, outcome: Outcome, at: datetime) -> ForeseenDecision:
        """What would be decided about the next message; its effects are there for those that follow."""
        if outcome.matched is None and self.setting.has_model and message.ingestion_tier == "full":
            return ForeseenDecision("llm", "none")
        court = Safeguards(self._restraints(message.account_id, at), self.setting.policy)
        verdict = court.by_rules(message, outcome)
        is_done = verdict.ruling is not None and verdict.ruling.verdict == "allow"
        held_back = is_done and not self._take_effect(message, verdict, at)
        return ForeseenDecision(
            verdict.decision.source,
            verdict.decision.action_type,
            verdict.decision.parameters,
            None if verdict.ruling is None else verdict.ruling.verdict,
            verdict.decision.safety or {},
            verdict.decision.rule_name,
            held_back,
        )

    def _restraints(self, account_id: UUID, at: datetime) -> Restraints:
        begun = self._begun[account_id]
        while begun and begun[0] <= at - HOUR:
            begun.popleft()
        return replace(self.setting.restraints, irreversible_this_hour=len(begun))

    def _take_effect(self, message: StoredMessage, verdict: Verdict, at: datetime) -> bool:
        """False for an answer that is not sent, since the sender was answered of late."""
        action = verdict.decision.action_type
        if action in IRREVERSIBLE:
            self._begun[message.account_id].append(at)
        if action != "auto_reply":
            return True
        whom = (message.account_id, message.facts.sender)
        last = self._answered.get(whom)
        if last is not None and last > at - self.setting.answered_again:
            return False
        self._answered[whom] = at
        return True


class SimulatedPair:
    """Two worlds in which most rules are the same: those are tried once for both."""

    def __init__(self, before: SimulatedRules, after: SimulatedRules) -> None:
        self._before, self._after = before, after
        known = {rule.id: rule for rule in before.rules}
        self._new = [rule for rule in after.rules if known.get(rule.id) != rule]
        kept = {rule.id for rule in after.rules} - {rule.id for rule in self._new}
        self._old = {id(rule) for rule in before.rules if rule.id not in kept}
        self._fresh = {id(rule) for rule in self._new}
        self._book = Rulebook([*before.rules, *self._new])

    @property
    def broken(self) -> tuple[tuple[Rule, str], ...]:
        """The rules after the change that make no sense."""
        return tuple((rule, why) for rule, why in self._book.broken if id(rule) not in self._old)

    def decide(self, past: PastMessage) -> tuple[ForeseenDecision, ForeseenDecision]:
        """What each world would decide about the next message."""
        message = self._before.setting.named(past.message)
        before, after = self._outcomes(message, past.at)
        return self._before.decide(message, before, past.at), self._after.decide(message, after, past.at)

    def _outcomes(self, message: StoredMessage, at: datetime) -> tuple[Outcome, Outcome]:
        before, after = _Finding(self._fresh), _Finding(self._old)
        for rule in self._book.matching(message.account_id, message.facts, at, unknown_conditions(message)):
            before.offer(rule)
            after.offer(rule)
            if before.matched is not None and after.matched is not None:
                break
        return before.outcome, after.outcome


class _Finding:
    """The first of the rules that match and are not another world's; and those in shadow before it."""

    def __init__(self, foreign: Set[int]) -> None:
        self._foreign = foreign
        self._shadowed: list[Rule] = []
        self.matched: Rule | None = None

    def offer(self, rule: Rule) -> None:
        if self.matched is None and id(rule) not in self._foreign:
            if rule.shadow:
                self._shadowed.append(rule)
            else:
                self.matched = rule

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.matched, (), tuple(self._shadowed))


OnDecision = Callable[[PastMessage, ForeseenDecision, ForeseenDecision], None]


async def load_context(
    database: Database, policy: Policy, has_model: bool, now: datetime, answered_again: timedelta = ANSWERED_AGAIN
) -> SimulationContext:
    """As it is now. The hour of a simulation begins empty, whatever has happened in this one."""
    labels = await database.run(label_names())
    # They are the same for every account, but for what its hour has seen.
    found = await database.run(restraints(UUID(int=0), now))
    return SimulationContext(found, labels, policy, has_model, answered_again)


async def replay(
    database: Database,
    worlds: SimulatedPair,
    wanted: Wanted,
    needed: Needed,
    tell: OnDecision,
    progress: Progress = lambda _done, _total: None,
) -> int:
    """Decides about each message in both worlds, and tells what each foresees; returns how many messages there were."""
    place, total = await _start(database, wanted)
    done = 0
    while page := await database.run(past_after(place, wanted, needed, PAGE, PAGE_TEXT)):
        # In a thread, so that a server that simulates still answers.
        await asyncio.to_thread(_replay_page, page, worlds, tell)
        place, done = page[-1].place, done + len(page)
        progress(done, max(total, done))
    return done


async def _start(database: Database, wanted: Wanted) -> tuple[MessagePlace, int]:
    """The place after which the wanted messages begin, and how many they are: found in strides, each of them short,
    however large the archive is."""
    place, passed = END, 0
    while passed <= wanted.newest:
        stride = min(STRIDE, wanted.newest + 1 - passed)
        found, place = await database.run(back_from(place, wanted, stride))
        passed += found
        if found < stride:
            return BEGINNING, passed
    return place, wanted.newest


def _replay_page(page: Sequence[PastMessage], worlds: SimulatedPair, tell: OnDecision) -> None:
    for past in page:
        tell(past, *worlds.decide(past))


def needed_by(*sets: Sequence[Rule]) -> Needed:
    """What of messages any of the rules looks at."""
    kinds = frozenset(kind for rules in sets for rule in rules for kind in kinds_used(rule.conditions))
    return Needed(text="body_contains" in kinds, recipients="to" in kinds)

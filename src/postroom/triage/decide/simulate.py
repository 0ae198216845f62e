"""Simulates a change of rules: decides stored mail again, by the rules before and after the change.

Messages are replayed in accepted order, each as it was on arrival and at the time of its arrival. Each set of rules has
its own state, in which decisions affect later ones: the irreversible actions of the past hour, and who was answered
recently. The same safeguards apply as for live mail. Nothing is written, and no model is asked: the prediction only
says that it would be.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from postroom.core.actions.safety import Policy
from postroom.core.actions.steps import is_irreversible, sending_step, shown
from postroom.core.rules.needs import ABOUT_RECIPIENTS, ABOUT_THE_SENDER, READ_THE_TEXT
from postroom.core.rules.rule import Outcome, Rule, kinds_used
from postroom.core.rules.rulebook import Matches, Rulebook
from postroom.store.actions.protection import HOUR, Restraints, restraints
from postroom.store.engine.database import Database
from postroom.store.mail.mail import StoredMessage
from postroom.store.mail.simulation import (
    BEGINNING,
    END,
    MessagePlace,
    MessageSelection,
    NeededFields,
    PastMessage,
    back_from,
    label_names,
    past_after,
)
from postroom.triage.decide.engine import Safeguards, Verdict, unknown_conditions

# Limits of a page, in messages and in characters of text: it ends at whichever is reached first.
PAGE = 500
PAGE_TEXT = 16 * 2**20
STRIDE = 50_000
ANSWERED_AGAIN = timedelta(days=7)
NO_LABELS: Mapping[str, str] = {}

Progress = Callable[[int, int], None]
"""Called with the number of messages replayed so far, and their total."""


@dataclass(frozen=True, slots=True)
class ForeseenDecision:
    """A predicted decision about a message, as it would be recorded. `ruling` is the verdict of safety."""

    source: str
    action_type: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    ruling: str | None = None
    safety: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rule_name: str | None = None
    held_back: bool = False

    @property
    def summary(self) -> str:
        """The decision in a few words."""
        if self.source == "llm":
            return "ask the model"
        refused = self.safety["proposed"] if self.ruling == "refuse" else None
        action = self.action_type if refused is None else refused["action"]
        parameters = self.parameters if refused is None else refused["parameters"]
        named = shown(action, parameters)
        match self.ruling:
            case "approve":
                return f"{named} (needs approval)"
            case "refuse":
                return f"{named} (refused)"
            case _:
                return "stay" if action == "none" else named


@dataclass(frozen=True, slots=True)
class SimulationContext:
    """Everything besides rules that affects decisions: restraints, labels, the policy, whether there is a model."""

    restraints: Restraints
    labels: Mapping[UUID, Mapping[str, str]]
    policy: Policy
    has_model: bool
    answered_again: timedelta = ANSWERED_AGAIN


def with_label_names(message: StoredMessage, labels: Mapping[UUID, Mapping[str, str]]) -> StoredMessage:
    """The message with its labels by id and by name, since rules may use either."""
    ids, names = message.facts.labels, labels.get(message.account_id, NO_LABELS)
    found = ids | {names[id].casefold() for id in ids if id in names}
    return replace(message, facts=replace(message.facts, labels=found))


class SimulatedRules:
    """One set of rules, and the effects of its decisions so far."""

    def __init__(self, rules: Sequence[Rule], context: SimulationContext) -> None:
        self.rules = rules
        self.context = context
        self._begun: defaultdict[UUID, deque[datetime]] = defaultdict(deque)
        self._answered: dict[tuple[UUID, str], datetime] = {}

    def decide(self, message: StoredMessage, outcome: Outcome, at: datetime) -> ForeseenDecision:
        """Predict the decision about the next message, and record its effects for those that follow."""
        is_whole = message.ingestion_tier == "full" and not message.is_own
        if outcome.matched is None and self.context.has_model and is_whole:
            return ForeseenDecision("llm", "none")
        safeguards = Safeguards(self._restraints(message.account_id, at), self.context.policy)
        verdict = safeguards.by_rules(message, outcome)
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
        restraints = self.context.restraints
        if restraints.irreversible_this_hour == len(begun):  # for most messages
            return restraints
        return replace(restraints, irreversible_this_hour=len(begun))

    def _take_effect(self, message: StoredMessage, verdict: Verdict, at: datetime) -> bool:
        """Record the effects. False for a reply that is not sent, since the sender was answered recently."""
        decision = verdict.decision
        if is_irreversible(decision.action_type, decision.parameters):
            self._begun[message.account_id].append(at)
        sending = sending_step(decision.action_type, decision.parameters)
        if sending is None or sending.action_type != "auto_reply":
            return True
        sender = (message.account_id, message.facts.sender)
        last = self._answered.get(sender)
        if last is not None and last > at - self.context.answered_again:
            return False
        self._answered[sender] = at
        return True


class SimulatedPair:
    """Two sets of rules, most of which are the same: those are tried once for both."""

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
        """The invalid rules after the change."""
        return tuple((rule, why) for rule, why in self._book.broken if id(rule) not in self._old)

    def decide(self, past: PastMessage) -> tuple[ForeseenDecision, ForeseenDecision]:
        """Predict the decision of each set of rules about the next message."""
        message = with_label_names(past.message, self._before.context.labels)
        before, after = self._outcomes(message, past.at)
        return self._before.decide(message, before, past.at), self._after.decide(message, after, past.at)

    def _outcomes(self, message: StoredMessage, at: datetime) -> tuple[Outcome, Outcome]:
        before, after = Matches(), Matches()
        for rule in self._book.matching(message.account_id, message.facts, at, unknown_conditions(message)):
            if id(rule) not in self._fresh:
                before.offer(rule)
            if id(rule) not in self._old:
                after.offer(rule)
            if before.is_settled and after.is_settled:
                break
        return before.outcome(), after.outcome()


OnDecision = Callable[[PastMessage, ForeseenDecision, ForeseenDecision], None]


async def load_context(
    database: Database, policy: Policy, has_model: bool, now: datetime, answered_again: timedelta = ANSWERED_AGAIN
) -> SimulationContext:
    """Load the present context. The hour of a simulation begins empty, whatever has happened in the real one."""
    labels = await database.run(label_names())
    # They are the same for every account, except for the actions of the past hour.
    found = await database.run(restraints(UUID(int=0), now))
    return SimulationContext(found, labels, policy, has_model, answered_again)


async def replay(
    database: Database,
    pair: SimulatedPair,
    wanted: MessageSelection,
    needed: NeededFields,
    on_decision: OnDecision,
    progress: Progress = lambda _done, _total: None,
) -> int:
    """Replay each message through both sets of rules and report their decisions. Returns the number of messages."""
    done = 0
    async for page, total in past_pages(database, wanted, needed):
        # In a thread, so that the server still answers meanwhile.
        await asyncio.to_thread(_replay_page, page, pair, on_decision)
        done += len(page)
        progress(done, max(total, done))
    return done


async def past_pages(
    database: Database, wanted: MessageSelection, needed: NeededFields
) -> AsyncIterator[tuple[Sequence[PastMessage], int]]:
    """Yield the wanted messages in accepted order, some at a time, with how many there are altogether."""
    place, total = await _start(database, wanted)
    while page := await database.run(past_after(place, wanted, needed, PAGE, PAGE_TEXT)):
        yield page, total
        place = page[-1].place


async def _start(database: Database, wanted: MessageSelection) -> tuple[MessagePlace, int]:
    """The place after which the wanted messages begin, and their number: found in strides, each of them short however
    large the archive is."""
    place, passed = END, 0
    while passed <= wanted.newest:
        stride = min(STRIDE, wanted.newest + 1 - passed)
        found, place = await database.run(back_from(place, wanted, stride))
        passed += found
        if found < stride:
            return BEGINNING, passed
    return place, wanted.newest


def _replay_page(page: Sequence[PastMessage], pair: SimulatedPair, on_decision: OnDecision) -> None:
    for past in page:
        on_decision(past, *pair.decide(past))


def needed_by(*sets: Sequence[Rule]) -> NeededFields:
    """The parts of messages that any of the rules needs."""
    kinds = frozenset(kind for rules in sets for rule in rules for kind in kinds_used(rule.conditions))
    return NeededFields(
        text=bool(kinds & READ_THE_TEXT),
        recipients=bool(kinds & ABOUT_RECIPIENTS),
        sender=bool(kinds & ABOUT_THE_SENDER),
    )

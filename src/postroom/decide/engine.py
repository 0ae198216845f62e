"""Decides about one message: rules first, then a model, and over both the same safety.

Mail of which only the metadata is here is decided by rules alone, and only by those that look at what is here. What
runs in shadow (a rule, a category of mail, the model) decides too: that is remembered, and nothing is touched.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from postroom.core.actions.safety import Policy, Proposed, Ruling, safety_ruling
from postroom.core.mail.categories import categories_of
from postroom.core.mail.ingestion import IngestionFacts
from postroom.core.mail.tiers import Known
from postroom.core.rules.model_decision import ModelDecision
from postroom.core.rules.rule import Outcome, Rule
from postroom.core.rules.rulebook import Rulebook
from postroom.store.decisions import Decision
from postroom.store.engine.ids import new_id
from postroom.store.mail import StoredMessage
from postroom.store.protection import Restraints, surroundings

# What of a message each part of it tells: conditions on what is not here are neither true nor false.
TOLD_BY_ITS_TEXT = frozenset({"body_contains", "has_attachment"})
TOLD_BY_ITS_HEAD = frozenset({"header_match", "list_id", "label_present", "to"})
NO_RULE = "no rule matched; it stays where it is"


@dataclass(frozen=True, slots=True)
class Advice:
    """What a model decided, and which."""

    decision: ModelDecision
    model: str
    prompt_version: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision that counts, what safety made of it, and what was decided in shadow. Without a ruling that allows
    it or asks for approval nothing follows."""

    decision: Decision
    ruling: Ruling | None = None
    shadows: tuple[Decision, ...] = field(default=())

    @property
    def has_action(self) -> bool:
        return self.ruling is not None and self.ruling.verdict != "refuse"


@dataclass(frozen=True, slots=True)
class Safeguards:
    """What every decision is judged by: the restraints of the account, and the user's policy."""

    restraints: Restraints
    policy: Policy = field(default_factory=Policy)
    generation: int = 1

    def by_rules(self, message: StoredMessage, outcome: Outcome) -> Verdict:
        """The first rule that matches decides, with full confidence; without one the message stays where it is."""
        shadows = self._shadows(message, outcome)
        if outcome.matched is None:
            return Verdict(self._nothing(message, NO_RULE), None, shadows)
        decision = self._of_rule(message, outcome.matched)
        return self._judged(message, decision, "rule", shadows)

    def by_model(self, message: StoredMessage, advice: Advice, outcome: Outcome) -> Verdict:
        """What the model decided where no rule did."""
        shadows = self._shadows(message, outcome)
        decision = Decision(
            new_id(),
            message.account_id,
            message.id,
            "llm",
            advice.decision.action_type,
            advice.decision.parameters,
            advice.decision.confidence,
            advice.decision.rationale,
            needs_approval=advice.decision.needs_approval,
            generation=self.generation,
            model=advice.model,
            prompt_version=advice.prompt_version,
        )
        if self.restraints.model_in_shadow:
            kept = _in_shadow(decision, "model")
            return Verdict(self._nothing(message, "the model runs in shadow"), None, (*shadows, kept))
        return self._judged(message, decision, "model", shadows)

    def left_alone(self, message: StoredMessage, reason: str, outcome: Outcome) -> Verdict:
        """No rule matched, and no model could say."""
        shadows = self._shadows(message, outcome)
        return Verdict(self._nothing(message, reason), None, shadows)

    def _judged(
        self, message: StoredMessage, decision: Decision, source: Any, shadows: tuple[Decision, ...]
    ) -> Verdict:
        if decision.action_type == "none":
            return Verdict(decision, None, shadows)
        if shadowed := self._shadowed_category(message):
            reason = f"mail of the category {shadowed} is decided in shadow"
            kept = _in_shadow(decision, category_shadow_reason(shadowed))
            return Verdict(self._nothing(message, reason), None, (*shadows, kept))
        proposed = Proposed(
            decision.action_type, decision.parameters, decision.confidence, source, decision.needs_approval
        )
        ruling = safety_ruling(proposed, surroundings(message, self.restraints), self.policy)
        if ruling.verdict == "refuse":
            return Verdict(self._refused(decision, ruling), ruling, shadows)
        judged = replace(decision, needs_approval=ruling.verdict == "approve", safety=ruling.as_json())
        return Verdict(judged, ruling, shadows)

    def _refused(self, decision: Decision, ruling: Ruling) -> Decision:
        """Nothing is done, and it is told what would have been."""
        wanted: Mapping[str, Any] = {"action": decision.action_type, "parameters": decision.parameters}
        return replace(
            decision,
            action_type="none",
            parameters={},
            needs_approval=False,
            rationale=f"{decision.action_type} is not done: {'; '.join(ruling.reasons)}",
            safety={**ruling.as_json(), "proposed": wanted},
        )

    def _shadowed_category(self, message: StoredMessage) -> str | None:
        if not self.restraints.shadowed_categories:
            return None
        facts = IngestionFacts(message.facts.sender, message.facts.headers)
        known = Known(frozenset(message.own_addresses))
        found = set(categories_of(facts, known)) & self.restraints.shadowed_categories
        return sorted(found)[0] if found else None

    def _shadows(self, message: StoredMessage, outcome: Outcome) -> tuple[Decision, ...]:
        return tuple(_in_shadow(self._of_rule(message, rule), "rule") for rule in outcome.shadowed)

    def _of_rule(self, message: StoredMessage, rule: Rule) -> Decision:
        return Decision(
            new_id(),
            message.account_id,
            message.id,
            "deterministic",
            rule.action_type,
            rule.parameters,
            1.0,
            "the first rule to match",
            needs_approval=rule.needs_approval,
            rule_id=rule.id,
            rule_name=rule.name,
            generation=self.generation,
        )

    def _nothing(self, message: StoredMessage, reason: str) -> Decision:
        return Decision(
            new_id(),
            message.account_id,
            message.id,
            "none",
            "none",
            {},
            0.0,
            reason,
            generation=self.generation,
        )


def category_shadow_reason(category: str) -> str:
    """Why a decision about mail of a category is in shadow, as it is kept with the decision."""
    return f"category:{category}"


def _in_shadow(decision: Decision, why: str) -> Decision:
    """Only remembered, and why: a rule's, a category's or the model's report counts what is in shadow because of it."""
    return replace(decision, shadow=True, safety={"shadow": why})


def apply_rules(message: StoredMessage, rules: Rulebook, now: datetime) -> Outcome:
    """By what of the message is here."""
    return rules.decide(message.account_id, message.facts, now, unknown_conditions(message))


def unknown_conditions(message: StoredMessage) -> frozenset[str]:
    """The conditions about which this message, as far as it is here, says nothing."""
    if message.ingestion_tier == "full":
        return frozenset()
    return TOLD_BY_ITS_TEXT if message.facts.headers else TOLD_BY_ITS_TEXT | TOLD_BY_ITS_HEAD

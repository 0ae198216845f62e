"""Decides about one message: rules first, then a model, with the same safety check for both.

Mail of which only the metadata is stored is decided by rules alone, and only by those that need no more than that. A
rule, a category of mail or the model in shadow decides too: the decision is recorded, and the message is not touched.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from postroom.core.actions.safety import Policy, Proposed, Ruling, safety_ruling
from postroom.core.actions.steps import combined
from postroom.core.rules.in_sight import message_categories
from postroom.core.rules.model_decision import ModelDecision
from postroom.core.rules.needs import NEED_THE_HEADERS, NEED_THE_TEXT, unknown_kinds
from postroom.core.rules.rule import Outcome, Rule
from postroom.core.rules.rulebook import Rulebook
from postroom.store.actions.decisions import BEFORE_ACTING, Decision, refused_decision
from postroom.store.actions.protection import Restraints, safety_facts
from postroom.store.engine.ids import new_id
from postroom.store.mail.mail import StoredMessage

OWN_MAIL = "you sent it"
NO_RULE = "no rule matched; it stays where it is"
OLD_MAIL = "it was brought in later: what is decided about old mail is only recorded"
NOT_YET = "its account does not act on mail of that time: what is decided is only recorded"


@dataclass(frozen=True, slots=True)
class Advice:
    """A model's decision, and which model made it."""

    decision: ModelDecision
    model: str
    prompt_version: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision that counts, the safety ruling on it, and the decisions in shadow. Only a ruling that allows it or
    asks for approval leads to an action."""

    decision: Decision
    ruling: Ruling | None = None
    shadows: tuple[Decision, ...] = field(default=())

    @property
    def has_action(self) -> bool:
        return self.ruling is not None and self.ruling.verdict != "refuse"


@dataclass(frozen=True, slots=True)
class Safeguards:
    """The safety check on every decision: the restraints of the account, and the user's policy."""

    restraints: Restraints
    policy: Policy = field(default_factory=Policy)
    generation: int = 1
    now: datetime | None = None
    """The time of the decision. Without it, every snooze that a model proposes is judged as a long one."""

    def by_rules(self, message: StoredMessage, outcome: Outcome) -> Verdict:
        """The verdict of the rules that decide, with full confidence; without any the message is left alone, and so is
        the user's own mail.
        """
        if message.is_own:
            return Verdict(self._nothing(message, OWN_MAIL))
        shadows = self._shadows(message, outcome)
        if outcome.matched is None:
            return Verdict(self._nothing(message, NO_RULE), None, shadows)
        decision = self._of_rules(message, outcome)
        return self._judge(message, decision, "rule", shadows)

    def by_model(self, message: StoredMessage, advice: Advice, outcome: Outcome) -> Verdict:
        """The verdict of the model, where no rule matched."""
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
            alternatives=[each.as_json() for each in advice.decision.alternatives],
        )
        if self.restraints.model_in_shadow:
            kept = _in_shadow(decision, "model")
            return Verdict(self._nothing(message, "the model runs in shadow"), None, (*shadows, kept))
        return self._judge(message, decision, "model", shadows)

    def left_alone(self, message: StoredMessage, reason: str, outcome: Outcome) -> Verdict:
        """The verdict where no rule matched and no model decided."""
        shadows = self._shadows(message, outcome)
        return Verdict(self._nothing(message, reason), None, shadows)

    def _judge(self, message: StoredMessage, decision: Decision, source: Any, shadows: tuple[Decision, ...]) -> Verdict:
        if decision.action_type == "none":
            return Verdict(decision, None, shadows)
        if not message.may_act:
            why = _why_not(message)
            reason = NOT_YET if why == BEFORE_ACTING else OLD_MAIL
            return Verdict(self._nothing(message, reason), None, (*shadows, _in_shadow(decision, why)))
        if shadowed := self._shadowed_category(message):
            reason = f"mail of the category {shadowed} is decided in shadow"
            kept = _in_shadow(decision, category_shadow_reason(shadowed))
            return Verdict(self._nothing(message, reason), None, (*shadows, kept))
        proposed = Proposed(
            decision.action_type, decision.parameters, decision.confidence, source, decision.needs_approval
        )
        facts = safety_facts(message, self.restraints, proposed, self.now)
        ruling = safety_ruling(proposed, facts, self.policy)
        if ruling.verdict == "refuse":
            return Verdict(refused_decision(decision, ruling), ruling, shadows)
        judged = replace(decision, needs_approval=ruling.verdict == "approve", safety=ruling.as_json())
        return Verdict(judged, ruling, shadows)

    def _shadowed_category(self, message: StoredMessage) -> str | None:
        if not self.restraints.shadowed_categories:
            return None
        found = message_categories(message.facts) & self.restraints.shadowed_categories
        return sorted(found)[0] if found else None

    def _shadows(self, message: StoredMessage, outcome: Outcome) -> tuple[Decision, ...]:
        return tuple(_in_shadow(self._of_rule(message, rule), "rule") for rule in outcome.shadowed)

    def _of_rules(self, message: StoredMessage, outcome: Outcome) -> Decision:
        """The decision of all rules that contribute; it is recorded under the first of them."""
        first, *others = outcome.rules
        decision = self._of_rule(message, first)
        if not others:
            return decision
        steps, left_out = outcome.joined
        action_type, parameters = combined(steps)
        names = [repr(rule.name) for rule in outcome.rules]
        together = f"the rules {', '.join(names[:-1])} and {names[-1]} match"
        return replace(
            decision,
            action_type=action_type,
            parameters=parameters,
            rationale="; ".join((together, *left_out)),
            needs_approval=any(rule.needs_approval for rule in outcome.rules),
            other_rules=tuple((rule.id, rule.name) for rule in others),
        )

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


def _why_not(message: StoredMessage) -> str:
    """The reason stored with a decision about a message that may not be acted on."""
    if message.on_demand:
        return "on_demand"
    return BEFORE_ACTING if message.backfill_job_id is None else "backfill"


def category_shadow_reason(category: str) -> str:
    """The reason stored with a decision that is in shadow because of the category of the mail."""
    return f"category:{category}"


def _in_shadow(decision: Decision, why: str) -> Decision:
    """The decision, marked as shadow with the reason: the report on a rule, a category or the model counts by it."""
    return replace(decision, shadow=True, safety={"shadow": why})


def apply_rules(message: StoredMessage, rules: Rulebook, now: datetime) -> Outcome:
    """Apply the rules to what is stored of the message."""
    return rules.decide(message.account_id, message.facts, now, unknown_conditions(message))


def unknown_conditions(message: StoredMessage) -> frozenset[str]:
    """The kinds of conditions that cannot be evaluated, since that part of the message is not stored."""
    unknown = unknown_kinds(message.facts)
    if message.ingestion_tier == "full":
        return unknown
    unknown |= NEED_THE_TEXT
    return unknown if message.facts.headers else unknown | NEED_THE_HEADERS

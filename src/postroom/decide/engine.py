"""Decides about one message by the deterministic rules. Unmatched mail stays where it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from postroom.core.actions import action_hash
from postroom.core.rules import Outcome, Rule, first_match
from postroom.store.actions import Decision, NewAction
from postroom.store.ids import new_id
from postroom.store.mail import StoredMessage


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision, the action that follows from it if any, and the rules that turned out to be broken."""

    decision: Decision
    action: NewAction | None
    outcome: Outcome


def decide(message: StoredMessage, rules: Sequence[Rule]) -> Verdict:
    """The first rule that matches decides, with full confidence; without one the message is kept as it is."""
    live = [rule for rule in rules if not rule.shadow]
    outcome = first_match(live, message.account_id, message.subject)
    rule = outcome.matched
    if rule is None:
        decision = Decision(
            new_id(), message.account_id, message.id, "none", "none", {}, 0.0, "no rule matched; it stays where it is"
        )
        return Verdict(decision, None, outcome)
    decision = Decision(
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
    )
    return Verdict(decision, _action(message, rule), outcome)


def _action(message: StoredMessage, rule: Rule) -> NewAction | None:
    if rule.action_type == "none":
        return None
    state = "approved_pending" if rule.needs_approval else "queued"
    return NewAction(new_id(), "rule", state, action_hash(message.id, rule.action_type, rule.parameters))

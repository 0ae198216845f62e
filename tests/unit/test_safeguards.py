"""What happens to decisions of rules and models: checked by safety, recorded in shadow, or nothing done."""

from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.action import DecidedType
from postroom.core.actions.safety import Policy, Protected
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.model_decision import ModelDecision
from postroom.core.rules.rule import Outcome, Rule
from postroom.store.actions.protection import Restraints
from postroom.store.mail.mail import StoredMessage
from postroom.triage.decide.engine import Advice, Safeguards

NOTHING = Restraints(Protected(), frozenset(), model_in_shadow=False, irreversible_this_hour=0)
NEWS = (("From", "ann@shop.example"), ("To", "me@home.example"), ("Subject", "Our new garden chairs"))
LETTER = (("From", "ann@shop.example"), ("To", "me@home.example"), ("Subject", "Your invoice"))


def message(headers: tuple[tuple[str, str], ...] = LETTER) -> StoredMessage:
    subject = MessageFacts("ann@shop.example", dict(headers)["Subject"], headers, frozenset({"INBOX"}))
    return StoredMessage(UUID(int=1), UUID(int=2), "18c2", subject, "full", "me@home.example")


def rule(action: DecidedType = "archive", number: int = 1, **more: Any) -> Rule:
    return Rule(
        UUID(int=number), f"rule {number}", "global", None, number, {}, action, more.pop("parameters", {}), **more
    )


def advice(action: DecidedType, confidence: float = 0.95, **parameters: Any) -> Advice:
    return Advice(ModelDecision(action, parameters, confidence, "because"), "a-model", "1")


def test_a_rule_that_matches_is_carried_out() -> None:
    verdict = Safeguards(NOTHING).by_rules(message(), Outcome(rule()))
    assert verdict.has_action
    assert (verdict.decision.source, verdict.decision.confidence) == ("deterministic", 1.0)
    assert verdict.decision.safety == {"verdict": "allow", "reasons": []}


def test_what_no_rule_matches_stays_where_it_is() -> None:
    verdict = Safeguards(NOTHING).by_rules(message(), Outcome(None))
    assert not verdict.has_action
    assert (verdict.decision.source, verdict.decision.action_type) == ("none", "none")


def test_a_rule_that_does_nothing_ends_there() -> None:
    verdict = Safeguards(NOTHING).by_rules(message(), Outcome(rule("none")))
    assert not verdict.has_action
    assert verdict.decision.rule_name == "rule 1"


def test_what_is_refused_is_reported_with_what_was_wanted() -> None:
    safeguards = Safeguards(Restraints(Protected(senders=frozenset({"ann@shop.example"})), frozenset(), False, 0))
    verdict = safeguards.by_rules(message(), Outcome(rule("apply_label", parameters={"label": "X"})))
    assert not verdict.has_action
    assert (verdict.decision.action_type, verdict.decision.parameters) == ("none", {})
    assert "protected" in verdict.decision.rationale
    assert (verdict.decision.safety or {})["proposed"] == {"action": "apply_label", "parameters": {"label": "X"}}


def test_an_automatic_answer_to_a_list_is_refused_also_for_the_users_own_rule() -> None:
    listed = (*LETTER, ("List-Id", "<dev.lists.example>"))
    safeguards = Safeguards(NOTHING, Policy(trust_rules=True))
    answer = rule("auto_reply", parameters={"text": "I am away."})
    assert not safeguards.by_rules(message(listed), Outcome(answer)).has_action
    assert safeguards.by_rules(message(), Outcome(answer)).has_action


def test_rules_in_shadow_are_remembered_beside_what_counts() -> None:
    verdict = Safeguards(NOTHING).by_rules(message(), Outcome(rule(), (), (rule("trash", 2, shadow=True),)))
    assert [(each.rule_name, each.action_type, each.shadow) for each in verdict.shadows] == [("rule 2", "trash", True)]
    assert verdict.has_action


@pytest.mark.parametrize(("category", "shadowed"), [("finance", True), ("travel", False)])
def test_mail_of_a_category_in_shadow_is_only_remembered(category: str, shadowed: bool) -> None:
    safeguards = Safeguards(Restraints(Protected(), frozenset({category}), False, 0))
    verdict = safeguards.by_rules(message(), Outcome(rule()))
    assert verdict.has_action is not shadowed
    assert [each.action_type for each in verdict.shadows] == (["archive"] if shadowed else [])


def test_what_the_model_says_is_judged_like_everything() -> None:
    safeguards = Safeguards(NOTHING)
    sure = safeguards.by_model(message(NEWS), advice("archive"), Outcome(None))
    assert (sure.decision.source, sure.decision.model, sure.decision.prompt_version) == ("llm", "a-model", "1")
    assert sure.has_action
    assert not sure.decision.needs_approval
    assert safeguards.by_model(message(NEWS), advice("archive", 0.4), Outcome(None)).decision.needs_approval
    assert safeguards.by_model(message(), advice("delete"), Outcome(None)).decision.needs_approval
    assert not safeguards.by_model(message(), advice("forward", to="x@evil.example"), Outcome(None)).has_action


def test_a_model_in_shadow_is_only_remembered() -> None:
    safeguards = Safeguards(
        Restraints(Protected(), frozenset(), model_in_shadow=True, irreversible_this_hour=0), generation=3
    )
    verdict = safeguards.by_model(message(), advice("archive"), Outcome(None))
    assert not verdict.has_action
    assert [(each.source, each.shadow, each.generation) for each in verdict.shadows] == [("llm", True, 3)]
    assert verdict.decision.generation == 3


def test_why_a_decision_is_in_shadow_is_kept_with_it() -> None:
    dark = Outcome(rule(), (), (rule("trash", 2, shadow=True),))
    in_finance = Safeguards(Restraints(Protected(), frozenset({"finance"}), False, 0)).by_rules(message(), dark)
    assert [each.safety for each in in_finance.shadows] == [{"shadow": "rule"}, {"shadow": "category:finance"}]
    in_model = Safeguards(Restraints(Protected(), frozenset({"finance"}), True, 0))
    asked = in_model.by_model(message(), advice("archive"), Outcome(None))
    assert [each.safety for each in asked.shadows] == [{"shadow": "model"}]

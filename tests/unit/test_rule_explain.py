"""Why a rule matches, or does not, in words."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given

from postroom.core.rules.explain import explain
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.rule import Rule
from support.matching import matches
from support.rule_strategies import trees

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
MAIL = MessageFacts(
    "ida@shop.example", "Invoice 42", (("List-Id", "<n.example>"),), frozenset({"INBOX"}), "pay", sent_at=NOW
)


def told(conditions: Any, scope: str = "global", ref: str | None = None) -> tuple[str, str]:
    rule = Rule(UUID(int=1), "rule", scope, ref, 100, conditions, "archive", {})
    explained = explain(rule, None, MAIL, NOW)
    return explained.result, explained.why


@pytest.mark.parametrize(
    ("conditions", "result", "why"),
    [
        ({"sender_domain": "x.example"}, "does not match", "sender_domain x.example: it is from ida@shop.example"),
        ({"subject_contains": "x"}, "does not match", "subject_contains x: it is not in the subject"),
        ({"label_present": "x"}, "does not match", "label_present x: it has INBOX"),
        ({"has_attachment": True}, "does not match", "has_attachment true: it has none"),
        ({"header_match": {"name": "X-Odd"}}, "does not match", "header_match X-Odd: it is missing"),
        ({"list_id": "club"}, "does not match", "list_id club: no value of it matches"),
        ({"not": {"subject_contains": "invoice"}}, "does not match", "not, but subject_contains invoice"),
        ({"subject_regex": "("}, "is broken", "if.subject_regex: is not an RE2 expression"),
        ({"or": [{"to": "a@b.example"}, {"body_contains": "PAY"}]}, "matches", "body_contains PAY"),
        (
            {"and": [{"body_contains": "pay"}, {"or": [{"to": "@b.example"}, {"older_than": "1h"}]}]},
            "does not match",
            "to @b.example: it is to no one; older_than 1h: it was sent at 2026-11-15 08:00:00+00:00",
        ),
    ],
)
def test_a_rule_is_explained(conditions: Any, result: str, why: str) -> None:
    found, words = told(conditions)
    assert found == result
    assert words.startswith(why)


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, "; and 1 more")])
def test_of_many_choices_that_fail_three_are_reported_and_the_rest_is_counted(count: int, more: str) -> None:
    _, why = told({"or": [{"body_contains": f"x{number}"} for number in range(count)]})
    assert why.count("body_contains") == 3
    assert why.endswith(more)
    assert ("more" in why) == bool(more)


def test_a_rule_for_other_mail_says_whose_it_is_for() -> None:
    assert told({"body_contains": "pay"}, "domain", "x.example") == (
        "is for other mail",
        "its scope is the domain x.example",
    )


def test_a_rule_that_looks_at_what_is_not_here_is_skipped() -> None:
    rule = Rule(UUID(int=1), "rule", "global", None, 100, {"not": {"body_contains": "x"}}, "archive", {})
    explained = explain(rule, None, MAIL, NOW, frozenset({"body_contains"}))
    assert (explained.result, "body_contains" in explained.why) == ("is skipped", True)


@given(trees())
def test_every_rule_is_explained_as_it_is_decided(conditions: dict[str, Any]) -> None:
    result, why = told(conditions)
    assert (result == "matches") is matches(conditions, MAIL, NOW)
    assert why

"""Rules: the tree of conditions, scopes, order, and what happens to the broken."""

import time
from typing import Any
from uuid import UUID

import pytest

from postroom.core.rules import KINDS, BrokenRule, Rule, Subject, first_match, matches

ACCOUNT = UUID(int=1)
MAIL = Subject(
    "shop@store.example",
    "Your Invoice 42",
    (("List-Id", "<news.store.example>"), ("Precedence", "list")),
    frozenset({"INBOX"}),
    "Please pay.",
    has_attachment=True,
)


def rule(number: int, conditions: Any, **fields: Any) -> Rule:
    given: dict[str, Any] = {"scope": "global", "scope_ref": None, "priority": 100, **fields}
    return Rule(
        UUID(int=number), f"rule {number}", conditions=conditions, action_type="archive", parameters={}, **given
    )


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"sender_email": "SHOP@store.example"}, True),
        ({"sender_email": "other@store.example"}, False),
        ({"sender_domain": "Store.Example"}, True),
        ({"sender_domain": "tore.example"}, False),
        ({"subject_contains": "INVOICE"}, True),
        ({"subject_contains": "receipt"}, False),
        ({"subject_regex": r"invoice \d+$"}, True),
        ({"subject_regex": r"^\d"}, False),
        ({"body_contains": "PAY"}, True),
        ({"header_match": {"name": "list-id"}}, True),
        ({"header_match": {"name": "X-Other"}}, False),
        ({"header_match": {"name": "Precedence", "pattern": "^(bulk|list)$"}}, True),
        ({"label_present": "INBOX"}, True),
        ({"label_present": "Inbox"}, False),
        ({"list_id": "store.example"}, True),
        ({"has_attachment": True}, True),
        ({"has_attachment": False}, False),
        ({"not": {"label_present": "INBOX"}}, False),
        ({"and": [{"label_present": "INBOX"}, {"subject_contains": "invoice"}]}, True),
        ({"or": [{"label_present": "SPAM"}, {"subject_contains": "invoice"}]}, True),
    ],
)
def test_a_condition_holds_or_not(condition: dict[str, Any], expected: bool) -> None:
    assert matches(condition, MAIL) is expected


@pytest.mark.parametrize(
    "condition",
    [
        {},
        [],
        None,
        {"a": 1, "b": 2},
        {"unknown": "x"},
        {"subject_regex": "("},
        {"subject_regex": r"(a)\1"},
        {"subject_contains": ""},
        {"and": []},
        {"header_match": "Precedence"},
        {"header_match": {"pattern": "x"}},
    ],
)
def test_a_condition_that_makes_no_sense_is_broken(condition: object) -> None:
    with pytest.raises(BrokenRule):
        matches(condition, MAIL)


def test_conditions_cannot_be_nested_without_end() -> None:
    nested: dict[str, Any] = {"label_present": "INBOX"}
    for _ in range(50):
        nested = {"not": nested}
    with pytest.raises(BrokenRule, match="nested"):
        matches(nested, MAIL)


def test_a_hostile_pattern_takes_no_longer_than_its_text_is_long() -> None:
    started = time.process_time()
    matches({"subject_regex": "(a+)+$"}, Subject("a@b", "a" * 100_000 + "!", (), frozenset()))
    assert time.process_time() - started < 2


def test_lower_priority_comes_first_and_equals_in_the_order_they_were_made() -> None:
    everything = {"label_present": "INBOX"}
    rules = [rule(3, everything), rule(2, everything), rule(1, everything, priority=200)]
    matched = first_match(rules, ACCOUNT, MAIL).matched
    assert matched is not None
    assert matched.name == "rule 2"


def test_a_broken_rule_is_told_and_skipped() -> None:
    outcome = first_match([rule(1, {"nonsense": 1}), rule(2, {"label_present": "INBOX"})], ACCOUNT, MAIL)
    assert outcome.matched is not None
    assert outcome.matched.name == "rule 2"
    ((broken, reason),) = outcome.broken
    assert broken.name == "rule 1"
    assert "nonsense" in reason


@pytest.mark.parametrize(
    ("scope", "ref", "applies"),
    [
        ("account", str(ACCOUNT), True),
        ("account", str(UUID(int=9)), False),
        ("domain", "STORE.example", True),
        ("domain", "other.example", False),
        ("sender", "Shop@store.example", True),
        ("sender", "other@store.example", False),
    ],
)
def test_a_rule_counts_in_its_scope_only(scope: str, ref: str, applies: bool) -> None:
    outcome = first_match([rule(1, {"label_present": "INBOX"}, scope=scope, scope_ref=ref)], ACCOUNT, MAIL)
    assert (outcome.matched is not None) is applies


def test_every_kind_that_is_offered_is_understood() -> None:
    for kind in KINDS:
        with pytest.raises(BrokenRule) as broken:
            matches({kind: object()}, MAIL)
        assert "unknown" not in str(broken.value)

"""Rules: the tree of conditions, scopes, order, and invalid rules."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from postroom.core.rules.conditions import KINDS
from postroom.core.rules.facts import MessageFacts, recipients
from postroom.core.rules.leaf import BrokenRule
from postroom.core.rules.rule import Outcome, Rule
from postroom.core.rules.rulebook import Rulebook
from support.matching import matches
from support.processor_time import MILLION, within_turns

ACCOUNT = UUID(int=1)
NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
MAIL = MessageFacts(
    "shop@store.example",
    "Your Invoice 42",
    (("List-Id", "<news.store.example>"), ("Precedence", "list")),
    frozenset({"INBOX", "receipts"}),
    "Please pay.",
    has_attachment=True,
    to=("mara@lindqvist.example",),
    sent_at=NOW - timedelta(days=7),
)


def rule(number: int, conditions: Any, **fields: Any) -> Rule:
    given: dict[str, Any] = {"scope": "global", "scope_ref": None, "priority": 100, **fields}
    return Rule(
        UUID(int=number), f"rule {number}", conditions=conditions, action_type="archive", parameters={}, **given
    )


def decided(rules: list[Rule]) -> Outcome:
    return Rulebook(rules).decide(ACCOUNT, MAIL, NOW)


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
        ({"label_present": "RECEIPTS"}, True),
        ({"to": "Mara@Lindqvist.example"}, True),
        ({"to": "@lindqvist.example"}, True),
        ({"to": "@qvist.example"}, False),
        ({"older_than": "7d"}, True),
        ({"older_than": "1w"}, True),
        ({"older_than": "200h"}, False),
        ({"not": {"label_present": "INBOX"}}, False),
        ({"and": [{"label_present": "INBOX"}, {"subject_contains": "invoice"}]}, True),
        ({"or": [{"label_present": "SPAM"}, {"subject_contains": "invoice"}]}, True),
    ],
)
def test_a_condition_holds_or_not(condition: dict[str, Any], expected: bool) -> None:
    assert matches(condition, MAIL, NOW) is expected


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
        {"header_match": {"name": "x", "patern": "y"}},
        {"or": [{"label_present": "INBOX"}, {"unknown": "x"}]},
        {"to": "nobody"},
        {"sender_email": "nobody"},
        {"sender_domain": "a@b"},
        {"older_than": "0d"},
        {"older_than": 7},
        {"subject_contains": "\ud800"},
    ],
)
def test_a_condition_that_is_invalid_is_broken(condition: object) -> None:
    with pytest.raises(BrokenRule):
        matches(condition, MAIL)


def test_conditions_cannot_be_nested_without_end() -> None:
    nested: dict[str, Any] = {"label_present": "INBOX"}
    for _ in range(50):
        nested = {"not": nested}
    with pytest.raises(BrokenRule, match="nested"):
        matches(nested, MAIL)


def test_a_hostile_pattern_takes_no_longer_than_its_text_is_long() -> None:
    hostile = MessageFacts("a@b", "a" * 100_000 + "!", (), frozenset())
    within_turns(40 * MILLION, lambda: matches({"subject_regex": "(a+)+$"}, hostile))


def test_lower_priority_comes_first_and_equals_in_the_order_they_were_made() -> None:
    everything = {"label_present": "INBOX"}
    rules = [rule(3, everything), rule(2, everything), rule(1, everything, priority=200)]
    matched = decided(rules).matched
    assert matched is not None
    assert matched.name == "rule 2"


def test_a_broken_rule_is_reported_and_skipped() -> None:
    outcome = decided([rule(1, {"nonsense": 1}), rule(2, {"label_present": "INBOX"})])
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
    outcome = decided([rule(1, {"label_present": "INBOX"}, scope=scope, scope_ref=ref)])
    assert (outcome.matched is not None) is applies


def test_every_kind_that_is_offered_is_understood() -> None:
    for kind in KINDS:
        with pytest.raises(BrokenRule) as broken:
            matches({kind: object()}, MAIL)
        assert "unknown" not in str(broken.value)


def test_to_whom_a_message_is_addressed_is_read_from_to_and_cc_each_once() -> None:
    headers = (
        ("To", "Mara <MARA@x.example>, b@x.example"),
        ("cc", "mara@x.example, c@x.example"),
        ("Bcc", "d@x.example"),
    )
    assert recipients(headers) == ("mara@x.example", "b@x.example", "c@x.example")

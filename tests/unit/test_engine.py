"""Which rules may decide about a message, given how much of it is stored."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from postroom.core.actions.safety import Protected
from postroom.core.queue.envelope import IngestionTier
from postroom.core.rules.facts import MessageFacts
from postroom.core.rules.needs import NEED_THE_HEADERS, NEED_THE_TEXT
from postroom.core.rules.rule import Rule, kinds_used
from postroom.core.rules.rulebook import Rulebook
from postroom.store.actions.protection import Restraints
from postroom.store.mail.mail import StoredMessage
from postroom.triage.decide.engine import Safeguards, apply_rules, unknown_conditions

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
HEADERS = (("From", "a@b.example"), ("Subject", "Sale"), ("List-Id", "<sale>"))


def a_message(tier: IngestionTier = "metadata", headers: tuple[tuple[str, str], ...] = HEADERS) -> StoredMessage:
    subject = MessageFacts(
        "a@b.example",
        "Sale",
        headers,
        frozenset({"INBOX"} if headers else ()),
        size=1_000,
        attachments=(),
        own_addresses=frozenset({"mara@x.example"}),
        categories=frozenset(),
        sender_in_contacts=False,
        sender_seen_before=False,
        reply_to_mine=False,
    )
    return StoredMessage(UUID(int=1), UUID(int=2), "18c2", subject, tier)


def decider(message: StoredMessage, *conditions: Mapping[str, Any]) -> str | None:
    """The name of the rule that decides: its place among those given."""
    rules = [Rule(UUID(int=n), str(n), "global", None, n, each, "archive", {}) for n, each in enumerate(conditions)]
    matched = apply_rules(message, Rulebook(rules), NOW).matched
    return None if matched is None else matched.name


@pytest.mark.parametrize(
    "conditions",
    [
        {"header_match": {"name": "List-Id", "pattern": "sale"}},
        {"list_id": "sale"},
        {"label_present": "INBOX"},
        {"subject_contains": "sale"},
        {"sender_domain": "b.example"},
        {"not": {"label_present": "STARRED"}},
    ],
    ids=str,
)
def test_what_the_metadata_tells_decides(conditions: Mapping[str, Any]) -> None:
    assert decider(a_message(), conditions) == "0"


@pytest.mark.parametrize(
    "conditions",
    [
        {"not": {"body_contains": "invoice"}},
        {"has_attachment": False},
        {"or": [{"subject_contains": "nothing like it"}, {"not": {"has_attachment": True}}]},
    ],
    ids=str,
)
def test_a_rule_that_looks_at_the_text_judges_no_mail_without_one(conditions: Mapping[str, Any]) -> None:
    assert decider(a_message(), conditions) is None
    assert decider(a_message(), conditions, {"list_id": "sale"}) == "1"
    assert decider(a_message("full"), conditions, {"list_id": "sale"}) == "0"


@pytest.mark.parametrize("kind", sorted(NEED_THE_HEADERS))
def test_of_mail_that_came_without_headers_only_sender_and_subject_are_judged(kind: str) -> None:
    arguments = {
        "header_match": {"name": "X-Keep"},
        "address_match": {"name": "X-Keep", "pattern": "x"},
        "category": "promotions",
        **dict.fromkeys(("from_me", "to_me", "cc_me", "bcc_me"), True),
    }
    conditions = {"not": {kind: arguments.get(kind, "uta@x.example")}}
    assert decider(a_message(), conditions, {"subject_contains": "sale"}) == "0"
    assert decider(a_message(headers=()), conditions, {"subject_contains": "sale"}) == "1"


@pytest.mark.parametrize("conditions", [None, [], {"and": [1, {"zzz": {}}]}, {"label_present": [{}]}, {1: 2}], ids=str)
def test_conditions_without_sense_look_at_nothing_that_is_missing(conditions: object) -> None:
    assert kinds_used(conditions) <= {"and", "label_present"}


def test_nothing_of_a_whole_message_is_unseen() -> None:
    assert unknown_conditions(a_message("full", headers=())) == frozenset()
    assert unknown_conditions(a_message()) == NEED_THE_TEXT


def test_decisions_about_old_mail_that_was_brought_in_later_are_only_recorded() -> None:
    rule = Rule(UUID(int=3), "sale", "global", None, 0, {"list_id": "sale"}, "archive", {})
    safeguards = Safeguards(Restraints(Protected(), frozenset(), False, 0))
    message = replace(a_message("full"), may_act=False)
    verdict = safeguards.by_rules(message, apply_rules(message, Rulebook([rule]), NOW))
    assert (verdict.decision.source, verdict.has_action) == ("none", False)
    (shadow,) = verdict.shadows
    assert (shadow.action_type, shadow.rule_name, shadow.shadow) == ("archive", "sale", True)
    assert safeguards.by_rules(a_message("full"), apply_rules(message, Rulebook([rule]), NOW)).has_action
